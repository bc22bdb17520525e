"""What two processes say to each other: a JSON object, and arrays as the bytes that they are."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from typing import IO, Any, Final

import numpy as np

from uaccel.model import Array

_LENGTH: Final = struct.Struct("<Q")
_TYPES: Final = frozenset(
    {
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        "float16",
        "float32",
        "float64",
    }
)


class FrameError(Exception):
    """The stream ended, or said what makes no sense, or more than it may."""


def write_frame(stream: IO[bytes], document: dict[str, Any], arrays: Sequence[Array]) -> None:
    shown = [[str(array.dtype), list(array.shape)] for array in arrays]
    head = json.dumps({"document": document, "arrays": shown}).encode()
    stream.write(_LENGTH.pack(len(head)))
    stream.write(head)
    for array in arrays:
        stream.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    stream.flush()


def read_frame(stream: IO[bytes], most: int) -> tuple[dict[str, Any], list[Array]]:
    """``most``: the bytes that it may have."""
    (length,) = _LENGTH.unpack(_read(stream, _LENGTH.size, most))
    try:
        head = json.loads(_read(stream, length, most))
        document = dict(head["document"])
        shown = [(str(dtype), [int(extent) for extent in shape]) for dtype, shape in head["arrays"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FrameError("it says no JSON") from error
    left, arrays = most - length, []
    for dtype, shape in shown:
        if dtype not in _TYPES or any(extent < 0 for extent in shape):
            raise FrameError("it says no array")
        content = _read(stream, math.prod(shape) * np.dtype(dtype).itemsize, left)
        left -= len(content)
        arrays.append(np.frombuffer(content, dtype).reshape(shape))
    return document, arrays


def _read(stream: IO[bytes], count: int, most: int) -> bytes:
    if count > most:
        raise FrameError(f"it says more than {most} bytes")
    content = stream.read(count)
    if len(content) != count:
        raise FrameError("it ended early")
    return content
