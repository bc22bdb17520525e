"""A ``.pt2`` file as plain data. PyTorch's own loader never sees it: that one unpickles, evaluates and compiles.

Every record is of a name and form that this page lists, or the file is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from uaccel.errors import ModelError
from uaccel.frontend.torch.program_file import FileProgram, program_file
from uaccel.frontend.torch.records import RecordsError, names, records
from uaccel.frontend.torch.serialised import (
    MisfitError,
    TensorMeta,
    fields,
    need,
    parsed,
    path,
    tensor_meta,
    text,
    truth,
)

WANTED: Final = "give what torch.export.save(torch.export.export(model.eval(), inputs), path) writes"

_PROGRAM: Final = "models/model.json"
_WEIGHTS: Final = ("data/weights/", "model_weights_config.json", "weight_")
_CONSTANTS: Final = ("data/constants/", "model_constants_config.json", "tensor_")
"""A folder, what in it says where each tensor's bytes lie, and how the records of plain tensors begin."""
_CONFIGS: Final = (_WEIGHTS[0] + _WEIGHTS[1], _CONSTANTS[0] + _CONSTANTS[1])
_SAYS: Final = {
    "archive_format": rb"pt2",
    "archive_version": rb"0",
    "byteorder": rb"little",
    ".data/serialization_id": rb"[0-9]{1,64}",
    **dict.fromkeys(("version", ".data/version", ".format_version", ".storage_alignment"), rb"[0-9]{1,8}\n?"),
}
"""Small records, and what each may say."""
_IGNORED: Final = ("data/sample_inputs/model.pt",)
"""A pickle that every file has. Nobody opens it."""
_EXTRA: Final = "extra/"
"""Whatever the author put in beside the model. Nobody opens that either."""

_EXPANDED: Final = 1 << 24
"""Bytes that a tensor may have whose elements share places in the file."""


@dataclass(frozen=True)
class StoredTensor:
    """``meta`` holds numbers alone, and no element lies outside ``content``."""

    meta: TensorMeta
    content: memoryview


@dataclass(frozen=True)
class Stored:
    """All that a ``.pt2`` file says."""

    program: FileProgram
    tensors: Mapping[str, StoredTensor]


def read(where: Path, data: bytes) -> Stored:
    """What the file at ``where``, which holds ``data``, says; ModelError for whatever it should not."""
    if not data:
        raise ModelError(f"{where} is empty; {WANTED}")
    try:
        _check_kind(where, names(data))
        found = records(data)
        _check_names(where, found)
        weights, constants = _tensors(where, found, *_WEIGHTS), _tensors(where, found, *_CONSTANTS)
        need(weights.keys().isdisjoint(constants), "weights and constants share a name")
        _check_used(where, found, weights | constants)
        return Stored(program_file(found[_PROGRAM]), weights | constants)
    except RecordsError as error:
        if not data.startswith(b"PK"):
            seen = "a pickle" if data[:1] == b"\x80" else f"something that starts with {data[:4]!r}"
            raise ModelError(f"{where} is not an exported program but {seen}; {WANTED}") from error
        raise ModelError(f"{where} is damaged: {error}; {WANTED}") from error
    except MisfitError as error:
        raise ModelError(f"{where} cannot be read: its {error}; {WANTED}") from error


def _check_kind(where: Path, found: list[str]) -> None:
    if {_PROGRAM, "archive_format", *_CONFIGS} <= set(found):
        return
    others = {
        "constants.pkl": "a TorchScript module (torch.jit.save)",
        "data.pkl": "what torch.save writes, a state_dict or a pickled module",
    }
    kind = next((what for name, what in others.items() if name in found), "an archive without models/model.json")
    if _PROGRAM in found or "serialized_exported_program.json" in found:
        kind = "one of an older PyTorch, with pickled weights"
    raise ModelError(f"{where} is not an exported program of a current PyTorch but {kind}; {WANTED}")


def _check_names(where: Path, found: Mapping[str, memoryview]) -> None:
    """That each record is one of those that an exported program of plain tensors has."""
    plain = [re.compile(re.escape(folder + prefix) + r"[0-9]{1,9}") for folder, _, prefix in (_WEIGHTS, _CONSTANTS)]
    for name, content in found.items():
        if name in _SAYS:
            if not re.fullmatch(_SAYS[name], bytes(content[:100])):
                raise ModelError(f"{where}: its record {name} says {bytes(content[:20])!r}; {WANTED}")
        elif not (
            name in (_PROGRAM, *_CONFIGS, *_IGNORED)
            or name.startswith(_EXTRA)
            or any(pattern.fullmatch(name) for pattern in plain)
        ):
            raise ModelError(
                f"{where}: its record {name[:100]} is not one of an exported program of plain tensors, could hold any "
                f"code and is not loaded; {WANTED}"
            )


def _tensors(
    where: Path, found: Mapping[str, memoryview], folder: str, config: str, prefix: str
) -> dict[str, StoredTensor]:
    """Those of a folder by their names in the program."""
    (listing,) = fields(parsed(found[folder + config], config), config, "config")
    need(isinstance(listing, dict), f"{config} lists nothing")
    tensors = {}
    for name, entry in listing.items():
        path(name, "weight")
        file, is_parameter, use_pickle, meta = fields(
            entry, f"{config}: {name!r}", "path_name", "is_param", "use_pickle", "tensor_meta?"
        )
        truth(is_parameter, f"{config}: {name!r}")
        if use_pickle or not meta or not re.fullmatch(rf"{prefix}[0-9]{{1,9}}", text(file, config)):
            raise ModelError(
                f'{where}: weight "{name}" is pickled, which can hold any code and is not loaded; '
                "export the model with plain tensors as weights"
            )
        need(folder + file in found, f"weight {name!r} is missing")
        tensors[name] = _stored(tensor_meta(meta, f"weight {name!r}"), found[folder + file], name)
    return tensors


def _stored(meta: TensorMeta, content: memoryview, name: str) -> StoredTensor:
    """A view of the record's bytes that stays inside them."""
    numbers: list[Any] = [*meta.shape, *meta.strides, meta.offset]
    need(all(type(value) is int and value >= 0 for value in numbers), f"weight {name!r} has no fixed place")
    shape, strides = numbers[: len(meta.shape)], numbers[len(meta.shape) : -1]
    need(meta.dtype in SIZES, f"weight {name!r} has the unknown type {meta.dtype}")
    expanded = math.prod(max(size, 1) for size in shape) * SIZES[meta.dtype]
    need(expanded <= max(len(content), _EXPANDED), f"weight {name!r} has {expanded} bytes of the same few")
    last = numbers[-1] + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    inside = 0 in shape or (last + 1) * SIZES[meta.dtype] <= len(content)
    need(inside and len(content) % SIZES[meta.dtype] == 0, f"weight {name!r} is larger than its record")
    return StoredTensor(meta, content)


def _check_used(where: Path, found: Mapping[str, memoryview], tensors: Mapping[str, StoredTensor]) -> None:
    used = {id(tensor.content) for tensor in tensors.values()}
    for name, content in found.items():
        if name.startswith((_WEIGHTS[0], _CONSTANTS[0])) and name not in _CONFIGS and id(content) not in used:
            raise ModelError(f"{where}: its record {name} belongs to no weight; {WANTED}")


SIZES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 9: 4, 10: 8, 11: 16, 12: 1, 13: 2, 28: 2} | {
    **dict.fromkeys(range(29, 34), 1),
    34: 4,
    35: 8,
}
"""Bytes of an element, by PyTorch's number of its type."""
