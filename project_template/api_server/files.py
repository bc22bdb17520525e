"""Reading files that anybody may have put there: regular ones alone, of bounded size, without waiting for a pipe."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

LONGEST = 1 << 30


def opened(path: Path, longest: int = LONGEST) -> IO[bytes]:
    """The open file; an OSError says why it is none to read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    found = os.fstat(descriptor)
    regular = stat.S_ISREG(found.st_mode)
    if regular and found.st_size <= longest:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if regular:
        raise OSError(errno.EFBIG, f"it has {found.st_size} bytes; wanted at most {longest}", str(path))
    raise OSError(errno.EINVAL, "it is a pipe or a device, and no regular file", str(path))


def read(path: Path) -> bytes:
    with opened(path) as stream:
        return stream.read(LONGEST)


def is_text(value: str) -> bool:
    """Whether the operating system can take it, as a path or a word of a command."""
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False
