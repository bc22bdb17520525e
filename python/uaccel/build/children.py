"""Processes that this one starts: none outlives it, however it ends."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Final

ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
SHELL: Final = "/bin/sh"
# Whose parent had died before it could ask for a signal at that moment, does not begin.
_AS_MY_CHILD: Final = '[ "$PPID" = "$0" ] && exec "$@"'
_WATCH: Final = """
(while kill -s 0 "$1"; do kill -s 0 -- "$2" || exit; sleep 0.3; done; kill -s "$3" -- "$2") <&- >&- 2>&- &
"""


class EndedError(BaseException):
    """A signal asks this process to end; what it has begun is cleared away as the exception passes."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number
        """As shells have it."""


@contextmanager
def ending_signals() -> Iterator[list[EndedError]]:
    """SIGTERM and SIGHUP raise :class:`EndedError`, once; the list has it, whatever becomes of it on its way."""
    seen: list[EndedError] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return

    def end(number: int, _frame: FrameType | None) -> None:
        if not seen:  # clearing away is not to be broken off
            seen.append(EndedError(number))
            raise seen[0]

    changed = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, end)
    try:
        yield seen
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def start(
    command: Sequence[str], *, group: bool = False, by: signal.Signals = signal.SIGKILL, **options: Any
) -> subprocess.Popen[bytes]:
    """As :class:`subprocess.Popen` does. When this process dies, by whatever, the other one gets the signal ``by``.

    With ``group`` it leads a process group of its own, and all of that gets it: for programs that start others.
    """
    wrapper = None if group else _wrapper(by)
    if wrapper is None:
        process = subprocess.Popen(command, **options | ({"start_new_session": True} if group else {}))
        _watch(process.pid, by, group=group)
        return process
    _require_program(command[0], options.get("cwd"))
    return subprocess.Popen([*wrapper, str(os.getpid()), *command], **options)


def run(
    command: Sequence[str], *, timeout: float | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """A program and all that it starts, to its end; what it wrote to stderr stands with the rest of its output."""
    with start(
        command, group=True, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(list(command), process.returncode, output.decode(errors="replace"))


def _wrapper(by: signal.Signals) -> list[str] | None:
    """Words before a command, by which Linux sends it a signal when its parent ends.

    None where that is not to be had; and for a thread that may end before the process does, as Linux takes that one
    for the parent.
    """
    setpriv = _setpriv() if threading.current_thread() is threading.main_thread() else None
    return [setpriv, "--pdeathsig", by.name.removeprefix("SIG"), "--", SHELL, "-c", _AS_MY_CHILD] if setpriv else None


@cache
def _setpriv() -> str | None:
    """Of util-linux; others know less."""
    found = shutil.which("setpriv")
    trial = [found or "", "--pdeathsig", "KILL", "--", SHELL, "-c", ":"]
    works = found is not None and subprocess.run(trial, capture_output=True, check=False).returncode == 0
    return found if works else None


def _watch(pid: int, by: signal.Signals, *, group: bool) -> None:
    """The same by a process that looks now and then."""
    words = [str(os.getpid()), f"-{pid}" if group else str(pid), by.name.removeprefix("SIG")]
    subprocess.run([SHELL, "-c", _WATCH, SHELL, *words], start_new_session=True, check=False)


def _require_program(program: str, cwd: str | os.PathLike[str] | None) -> None:
    """What Popen would raise if it did not start another program first."""
    path = Path(cwd or ".") / program if "/" in program else Path(shutil.which(program) or program)
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
    if path.is_dir() or not os.access(path, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), program)
