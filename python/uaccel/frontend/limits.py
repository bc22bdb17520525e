"""Limits the memory and seconds of an import as the user asked, also where native code never returns to Python."""

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
from uaccel.util.option import option, read_size

GRACE: Final = 2.0  # Seconds after which a process ends whose native code never came back to Python.


@dataclass
class Limits:
    """Holds a process's limits. ``words``: a descriptor for the watching process, written if native code is ended."""

    memory: int | None = option(
        None,
        "What importing the model may take beside uaccel's own memory, as 512M.",
        "--limit-memory",
        metavar="SIZE",
        read=read_size,
        rare=True,
    )
    seconds: float | None = option(
        None,
        "What importing the model may take on the clock.",
        "--limit-seconds",
        metavar="N",
        least=0.001,
        rare=True,
    )
    words: int | None = None


asked: Final = Limits()  # The limits of this process: set once, by its command line.


class _LateError(BaseException):
    """Ends an import that takes too long; as no Exception, no handler on its way swallows it."""


def _late(_number: int, _frame: FrameType | None) -> None:
    raise _LateError


@contextmanager
def limited(path: Path) -> Iterator[None]:
    """Runs the import of a file within the limits; exceeding one is a ModelError.

    SIGALRM interrupts Python code. Native code that does not come back within ``GRACE`` is ended with the process.
    """
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
    """Bytes of address space in use; without /proc it is 2**40, and the limit has no effect."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 40
