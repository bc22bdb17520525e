"""What the user allows the import of a model to take: memory and seconds, for native code that asks nobody too."""

from __future__ import annotations

import faulthandler
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from uaccel.errors import ModelError

GRACE: Final = 2.0  # Seconds after which a process ends whose native code never came back to Python.


@dataclass
class Limits:
    """``words``: a descriptor that whoever watches this process reads, after native code has ended it."""

    memory: int | None = None
    seconds: float | None = None
    words: int | None = None


asked: Final = Limits()  # Of this process: set once, by its command line.


class _LateError(BaseException):
    """Nothing on its way takes it for an error of its own."""


def _late(_number: int, _frame: FrameType | None) -> None:
    raise _LateError


@contextmanager
def limited(path: Path) -> Iterator[None]:
    """The import of this file; going over a limit is a ModelError, if there is time to say so."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    if asked.memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (_within(_used() + asked.memory, before[1]), before[1]))
    try:
        with _timed():
            yield
    except _LateError:
        raise ModelError(late(str(path), asked.seconds)) from None
    except Exception as error:
        if asked.memory is None or not (isinstance(error, MemoryError) or "bad_alloc" in str(error)):
            raise
        raise ModelError(
            f"importing {path} takes more than {asked.memory} bytes beside uaccel's own; --limit-memory gives it more"
        ) from error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def late(path: str, seconds: float | None) -> str:
    return f"importing {path} takes more than {seconds or 0:g} s; --limit-seconds gives it more"


@contextmanager
def _timed() -> Iterator[None]:
    if asked.seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, asked.seconds)
    if asked.words is not None:
        faulthandler.dump_traceback_later(asked.seconds + GRACE, exit=True, file=asked.words)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


def _within(wanted: int, hard: int) -> int:
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _used() -> int:
    """Bytes of address space; a system that does not tell it knows no such limit either."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 40
