"""A ``.pt2`` file becomes an exported program; what is none is refused before PyTorch unpickles anything."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

from uaccel.errors import ModelError
from uaccel.frontend.torch.package import register_torchao, torch_package
from uaccel.quiet import quiet

WANTED = "give what torch.export.save(torch.export.export(model.eval(), inputs), path) writes"
_PAYLOADS = ("data/weights/model_weights_config.json", "data/constants/model_constants_config.json")
"""What says where each tensor's bytes lie. Older PyTorch pickled them instead."""
_PLAIN = ("weight_", "tensor_")
"""How the files of plain tensors begin; PyTorch unpickles others by their names."""


def load(path: Path) -> tuple[Any, bytes]:
    """The program and the file's bytes."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from error
    graph = _checked(path, data)
    torch = torch_package()
    if b"torch.ops.torchao." in graph:
        register_torchao()
    _check_samples(torch, path, data)
    try:
        with quiet():
            return torch.export.load(io.BytesIO(data)), data
    except Exception as error:  # damaged files make PyTorch raise anything
        raise ModelError(f"{path}: PyTorch {torch.__version__} cannot load it: {_reason(error)}; {WANTED}") from error


def _reason(error: Exception) -> str:
    """The first line of what PyTorch says; what follows is about its C++."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".;") if lines else type(error).__name__


def _checked(path: Path, data: bytes) -> bytes:
    """The program's JSON, where the file is an archive of one exported program and of plain tensors."""
    if not data:
        raise ModelError(f"{path} is empty; {WANTED}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = {name.partition("/")[2]: name for name in archive.namelist()}
            _check_kind(path, names)
            damaged = archive.testzip()
            if damaged is not None:
                raise zipfile.BadZipFile(f"the checksum of {damaged} is wrong")
            for name in _PAYLOADS:
                _check_tensors(path, json.loads(archive.read(names[name])))
            return archive.read(names["models/model.json"])
    except zipfile.BadZipFile as error:
        if not data.startswith(b"PK"):
            seen = "a pickle" if data[:1] == b"\x80" else f"something that starts with {data[:4]!r}"
            raise ModelError(f"{path} is not an exported program but {seen}; {WANTED}") from error
        raise ModelError(f"{path} is damaged: {_reason(error)}; {WANTED}") from error
    except (zlib.error, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"{path} is damaged: {_reason(error)}; {WANTED}") from error


def _check_kind(path: Path, names: dict[str, str]) -> None:
    if {"models/model.json", "archive_format", *_PAYLOADS} <= names.keys():
        return
    others = {
        "constants.pkl": "a TorchScript module (torch.jit.save)",
        "data.pkl": "what torch.save writes, a state_dict or a pickled module",
    }
    kind = next((what for name, what in others.items() if name in names), "an archive without models/model.json")
    if "models/model.json" in names or "serialized_exported_program.json" in names.values():
        kind = "one of an older PyTorch, with pickled weights"
    raise ModelError(f"{path} is not an exported program of a current PyTorch but {kind}; {WANTED}")


def _check_tensors(path: Path, config: Any) -> None:
    """Anything but a plain tensor is pickled, and unpickling runs whatever code the file's author liked."""
    entries = config.get("config") if isinstance(config, dict) else None
    if not isinstance(entries, dict):
        raise ValueError("its list of weights makes no sense")
    for name, entry in entries.items():
        plain = isinstance(entry, dict) and not entry.get("use_pickle") and entry.get("tensor_meta")
        if not plain or not str(entry.get("path_name")).startswith(_PLAIN):
            raise ModelError(
                f'{path}: weight "{name}" is pickled, which can hold any code and is not loaded; '
                "export the model with plain tensors as weights"
            )


def _check_samples(torch: Any, path: Path, data: bytes) -> None:
    """Sample inputs are pickled as well; PyTorch would unpickle anything, this only tensors."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.partition("/")[2].startswith("data/sample_inputs/") and name.endswith(".pt"):
                try:
                    with quiet():
                        torch.load(io.BytesIO(archive.read(name)), weights_only=True)
                except Exception as error:
                    raise ModelError(
                        f"{path}: its sample inputs are no plain tensors ({_reason(error)}) and are not loaded; "
                        "export the model with tensors as inputs"
                    ) from error
