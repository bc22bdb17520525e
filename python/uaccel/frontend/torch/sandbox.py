"""Confines the process that reads a ``.pt2`` file, and defines how it talks with the one that started it.

Reading runs native code of PyTorch and TVM on data that somebody else made. So a worker process reads the file, after
it has given up all that computing does not need. What it answers is plain data, and its reader checks every size.
Loads no TVM.
"""

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

# Confinement: what a process gives up before it looks at a file. From then on it can compute, and read other files, but
# can neither write, start nor contact anything. So all that it learns can leave only in its answer.
#
# The reader already refuses files that could run code. This is a second line of defence, should the reader have a bug.
# Two mechanisms complement each other. The kernel's limits hold for native code, too, and cannot be raised again
# without privileges. An audit hook, which Python cannot remove, refuses actions of Python code, but not of native code.

# Audit events of Python that are refused, by the beginnings of their names.
_REFUSED: Final = (
    *("socket.", "subprocess.", "pty.", "shutil.", "ftplib.", "http.", "urllib.", "smtplib.", "sqlite3."),
    *("os.chflags", "os.chmod", "os.chown", "os.exec", "os.fork", "os.kill", "os.link", "os.lockf", "os.mkdir"),
    *("os.posix_spawn", "os.putenv", "os.remove", "os.rename", "os.rmdir", "os.setxattr", "os.spawn", "os.startfile"),
    *("os.symlink", "os.system", "os.truncate", "os.unsetenv", "os.utime", "pickle.find_class", "tempfile."),
)
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def confine(memory: int, seconds: int) -> None:
    """Forbid writing, network, other processes and unpickling; allow so many more bytes and CPU seconds.

    Too much CPU time ends the process by a signal, too much memory fails as an allocation, and what is forbidden raises
    PermissionError. Both allowances count from now, because loading PyTorch and TVM has taken its share already. Call
    this after all imports: loading a module later may take what is no longer allowed.
    """
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CPU, int(time.process_time()) + seconds, kill_after=5)
    _limit(resource.RLIMIT_AS, _used() + memory)
    sys.addaudithook(_refuse)


def _limit(what: int, most: int, kill_after: int = 0) -> None:
    """Lower a limit, unless it is lower already. Systems that lack this limit are left alone.

    The hard limit goes down with the soft one, so that the process cannot raise it. ``kill_after`` leaves a gap between
    them: at the soft limit of CPU time the kernel sends SIGXCPU, at the hard one SIGKILL.
    """
    _, hard = resource.getrlimit(what)
    hardest = most + kill_after if hard == resource.RLIM_INFINITY else min(most + kill_after, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(what, (min(most, hardest), hardest))


def _used() -> int:
    """Bytes of address space that the process has now, which is what RLIMIT_AS counts."""
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


# Frames: a message between the two processes, which is a JSON object and arrays.
#
# A frame is the length of its head in 8 bytes, the head in JSON (the object, and type and shape of each array), and
# then the elements of all arrays. Unlike a pickle it cannot name code.

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
    """Says that a stream ended early, holds no valid frame, or holds more bytes than are allowed."""


def write_frame(stream: IO[bytes], document: dict[str, Any], arrays: Sequence[Array]) -> None:
    shown = [[str(array.dtype), list(array.shape)] for array in arrays]
    head = json.dumps({"document": document, "arrays": shown}).encode()
    stream.write(_LENGTH.pack(len(head)))
    stream.write(head)
    for array in arrays:
        stream.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    stream.flush()


def read_frame(stream: IO[bytes], most: int) -> tuple[dict[str, Any], list[Array]]:
    """The object and the arrays of a frame of at most ``most`` bytes.

    Each part is measured against what is left of these before memory for it is allocated.
    """
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
