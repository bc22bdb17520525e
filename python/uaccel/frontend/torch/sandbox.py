"""What the two processes of an import may do and say; loads no TVM."""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from uaccel.model import Array

# What a process gives up before it looks at a file: from here on it computes, and does nothing else.
#
# The reader of files needs none of it. This stands behind the reader, for the day on which it errs.

# Beginnings of what Python calls these events.
_REFUSED: Final = (
    *("socket.", "subprocess.", "pty.", "shutil.", "ftplib.", "http.", "urllib.", "smtplib.", "sqlite3."),
    *("os.chflags", "os.chmod", "os.chown", "os.exec", "os.fork", "os.kill", "os.link", "os.lockf", "os.mkdir"),
    *("os.posix_spawn", "os.putenv", "os.remove", "os.rename", "os.rmdir", "os.setxattr", "os.spawn", "os.startfile"),
    *("os.symlink", "os.system", "os.truncate", "os.unsetenv", "os.utime", "pickle.find_class", "tempfile."),
)
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def confine(memory: int, seconds: int) -> None:
    """No writing, no network, no other process, no unpickling; so many more bytes and so many seconds of a processor.

    What goes over a limit ends the process; what is forbidden raises PermissionError.
    """
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CPU, int(time.process_time()) + seconds, kill_after=5)
    _limit(resource.RLIMIT_AS, _used() + memory)
    sys.addaudithook(_refuse)


def _limit(what: int, most: int, kill_after: int = 0) -> None:
    """Or what is less already; some systems do not know all limits."""
    _, hard = resource.getrlimit(what)
    hardest = most + kill_after if hard == resource.RLIM_INFINITY else min(most + kill_after, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(what, (min(most, hardest), hardest))


def _used() -> int:
    """Bytes of address space."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 8 << 30  # not Linux, where the limit means little


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, mode, flags = arguments
        writing = bool(flags & _WRITING) if isinstance(flags, int) else any(letter in str(mode) for letter in "wax+")
        if writing and path != os.devnull:
            raise PermissionError(f"a file may not be written here: {path!r}")
    elif event.startswith(_REFUSED):
        raise PermissionError(f"this may not be done here: {event}")


# What two processes say to each other: a JSON object, and arrays as the bytes that they are.

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
