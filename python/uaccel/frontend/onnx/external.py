"""Weights that a model keeps in files beside it, read into it: from its own folder, and no more than is allowed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from uaccel.errors import ModelError
from uaccel.frontend.budget import LARGEST_FILE, read_file
from uaccel.frontend.onnx.package import onnx_package
from uaccel.frontend.onnx.structure import dtype_name, item_size, items, tensors_of

_LOCATION: Final = b"\x0a\x08location\x12"
"""As it stands in every file with such weights: most have none, and need no parser for that."""


def weight_files(path: Path) -> tuple[Path, ...]:
    """Those that the model keeps weights in, where they are there. What is wrong with one is said when it is read."""
    data = read_file(path)
    if _LOCATION not in data:
        return ()
    from google.protobuf.message import DecodeError

    onnx = onnx_package()
    model, found = onnx.ModelProto(), set()
    with suppress(DecodeError, RuntimeError, ValueError):
        model.ParseFromString(data)
    for tensor in tensors_of(model):
        for entry in tensor.external_data:
            if tensor.data_location == onnx.TensorProto.EXTERNAL and entry.key == "location":
                with suppress(ValueError):
                    found.add(_place(entry.value, path.parent))
    return tuple(sorted(file for file in found if file.is_file()))


def read_external(onnx: Any, model: Any, path: Path) -> bool:
    """Whether there were any."""
    total, found = 0, False
    for tensor in tensors_of(model):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        found = True
        dtype = dtype_name(onnx, tensor.data_type)
        size = items(tensor, dtype) * item_size(dtype)
        total += size
        if total > LARGEST_FILE:
            raise ModelError(
                f"{path} keeps more than {LARGEST_FILE} bytes of weights in other files; at most that is read"
            )
        try:
            tensor.raw_data = _content(tensor, size, path.parent)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ModelError(
                f'cannot read the weights "{tensor.name}" that {path} keeps in a file of their own: {reason}; '
                f"put this file into {path.parent}"
            ) from error
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.DEFAULT
    return found


def _content(tensor: Any, size: int, folder: Path) -> bytes:
    """ValueError and OSError say in words what is wrong."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    file = _place(location, folder)
    if not file.is_file():
        raise ValueError(f"{location} is {'no regular file' if file.exists() else 'not there'}")
    offset, length = _number(entries, "offset", 0), _number(entries, "length", size)
    if length != size or offset + size > file.stat().st_size:
        raise ValueError(f"{size} bytes are wanted at {offset} of {location}, which has {file.stat().st_size}")
    with file.open("rb") as stream:
        stream.seek(offset)
        data: bytes = stream.read(size)
    return data


def _place(location: str, folder: Path) -> Path:
    if not location or "\0" in location:
        raise ValueError(f"it names the file {location!r}")
    file = (folder / location).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise ValueError(f"{location} lies outside of the model's folder")
    return file


def _number(entries: dict[str, str], key: str, default: int) -> int:
    text = entries.get(key, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueError(f"{key} is {text[:40]!r}, wanted a number of bytes")
    return int(text)
