"""Holds what running a compiled model takes, as plain data: its archive, its firmware's identity, its memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from uaccel.build.archive_reader import Metadata
from uaccel.model import TensorSpec
from uaccel.session.description import Identity, Kinds, Tensors
from uaccel.session.tensors import TensorType
from uaccel.util.text import round_up

ARRAY_ALIGNMENT: Final = 16  # Bytes; that of arrays with tensors, where no device wants more.


@dataclass(frozen=True)
class Firmware:
    """Describes a compiled model to those who build and run its firmware.

    ``files`` gives the archive's files by path, ``archive`` is their digest. ``layers``: how many outputs each layer
    has. ``arena``, ``io``: bytes of the arena, and of inputs and outputs in the application. ``fed``: bytes of an input
    that is handed over in pieces."""

    name: str
    files: Callable[[], Mapping[str, bytes]]
    archive: str
    identity: Identity
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    layers: tuple[int, ...]
    arena: int
    io: int
    fed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Returns all but the files."""
        return {
            "name": self.name,
            "archive": self.archive,
            "model": self.identity.model_hash.hex(),
            "build": self.identity.build.hex(),
            "tensors": _all_rows(self.identity.tensors),
            "inputs": _named(self.inputs),
            "outputs": _named(self.outputs),
            "layers": list(self.layers),
            "arena": self.arena,
            "io": self.io,
            "fed": self.fed,
        }

    @classmethod
    def of(cls, metadata: Metadata, archive: str, files: Callable[[], Mapping[str, bytes]]) -> Firmware:
        """Describes what an archive's firmware is, as its metadata state it."""
        own, main, layers = metadata.at("uaccel"), metadata.main, metadata.at("uaccel", "layers")
        sides = [metadata.at("uaccel", side) for side in ("inputs", "outputs")]
        kinds = [_kinds((row["shape"], row["dtype"]) for row in side.values()) for side in sides]
        made = tuple(_kinds((row["shape"], row["dtype"]) for row in layer["outputs"]) for layer in layers)
        types = [
            _types((name, row["shape"], row["dtype"], row.get("range")) for name, row in side.items()) for side in sides
        ]
        devices = [engine for engine in metadata.at("uaccel", "accelerators") if engine.get("device", True)]
        alignment = max([ARRAY_ALIGNMENT, *(engine.get("alignment", 1) for engine in devices)])
        sizes = {name: row["size"] for name, row in main["inputs"].items()}
        fed = sizes.pop(own.get("fed"), 0)
        apart = [] if metadata.workspace_io else [*sizes.values(), *(row["size"] for row in main["outputs"].values())]
        model, build = metadata.at("uaccel", "model", "sha256"), metadata.at("uaccel", "build")
        return cls(
            metadata.model,
            files,
            archive,
            Identity(bytes.fromhex(model), bytes.fromhex(build), (kinds[0], kinds[1], made)),
            types[0],
            types[1],
            tuple(map(len, made)),
            main["workspace_size_bytes"],
            sum(round_up(size, alignment) for size in apart),
            fed,
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any], files: Callable[[], Mapping[str, bytes]]) -> Firmware:
        inputs, outputs, layers = data["tensors"]
        tensors = (_kinds(inputs), _kinds(outputs), tuple(map(_kinds, layers)))
        return cls(
            data["name"],
            files,
            data["archive"],
            Identity(bytes.fromhex(data["model"]), bytes.fromhex(data["build"]), tensors),
            _types(data["inputs"]),
            _types(data["outputs"]),
            tuple(data["layers"]),
            data["arena"],
            data["io"],
            data["fed"],
        )


def tensor_types(specs: Iterable[TensorSpec]) -> list[TensorType]:
    """Returns name, shape and type of each tensor, as sessions use them."""
    return [TensorType(spec.name, spec.info.shape, spec.info.dtype, spec.range) for spec in specs]


def _all_rows(tensors: Tensors | None) -> list[Any]:
    inputs, outputs, layers = tensors or ((), (), ())
    return [_rows(inputs), _rows(outputs), [_rows(kinds) for kinds in layers]]


def _rows(kinds: Kinds) -> list[Any]:
    return [[list(shape), dtype] for shape, dtype in kinds]


def _kinds(rows: Iterable[Sequence[Any]]) -> Kinds:
    return tuple((tuple(shape), dtype) for shape, dtype in rows)


def _named(tensors: Iterable[TensorType]) -> list[Any]:
    return [[tensor.name, list(tensor.shape), tensor.dtype, tensor.range] for tensor in tensors]


def _types(rows: Iterable[Sequence[Any]]) -> tuple[TensorType, ...]:
    return tuple(
        TensorType(name, tuple(shape), dtype, tuple(fits) if fits is not None else None)
        for name, shape, dtype, fits in rows
    )
