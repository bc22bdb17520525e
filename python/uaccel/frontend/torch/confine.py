"""What a process gives up before it looks at a file: from here on it computes, and does nothing else.

The reader of files needs none of it. This stands behind the reader, for the day on which it errs.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any, Final

_REFUSED: Final = (
    *("socket.", "subprocess.", "pty.", "shutil.", "ftplib.", "http.", "urllib.", "smtplib.", "sqlite3."),
    *("os.chflags", "os.chmod", "os.chown", "os.exec", "os.fork", "os.kill", "os.link", "os.lockf", "os.mkdir"),
    *("os.posix_spawn", "os.putenv", "os.remove", "os.rename", "os.rmdir", "os.setxattr", "os.spawn", "os.startfile"),
    *("os.symlink", "os.system", "os.truncate", "os.unsetenv", "os.utime", "pickle.find_class", "tempfile."),
)
"""Beginnings of what Python calls these events."""
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
