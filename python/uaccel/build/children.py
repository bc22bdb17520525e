"""Starts processes that do not outlive this one, however it ends.

On Linux the kernel sends the child a signal when its parent dies (``setpriv --pdeathsig``). Elsewhere, for process
groups and from other threads than the main one, a small shell looks now and then whether the parent is alive.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final

ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
SHELL: Final = "/bin/sh"
# Closes a race: if the parent died before the child asked for the signal, the child has another parent, and ends.
_AS_MY_CHILD: Final = '[ "$PPID" = "$0" ] && exec "$@"'
# Sends signal $3 to process or group $2 once process $1 is gone; ends when $2 does.
_WATCH: Final = """
(while kill -s 0 "$1"; do kill -s 0 -- "$2" || exit; sleep 0.3; done; kill -s "$3" -- "$2") <&- >&- 2>&- &
"""


def temporary_file() -> IO[bytes]:
    """A file without a name for what a process prints; its owner closes it."""
    return tempfile.TemporaryFile()


class EndedError(BaseException):
    """Is raised when a signal asks this process to end, so that whatever is open is closed on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number  # as shells report it


@contextmanager
def ending_signals() -> Iterator[list[EndedError]]:
    """Make SIGTERM and SIGHUP raise :class:`EndedError`, once. The list has it even if somebody catches it."""
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
    """Start a process as :class:`subprocess.Popen` does. It gets the signal ``by`` when this process dies, however.

    With ``group`` it leads a process group of its own, all of which gets the signal: for programs that start others.
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
    """Run a program, and all that it starts, to its end; stderr is part of its output."""
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


@contextmanager
def environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables until the end of the block, for all that is started in it."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _wrapper(by: signal.Signals) -> list[str] | None:
    """Words before a command, by which Linux sends it a signal when its parent ends.

    None where ``setpriv`` is missing, and in all threads but the main one: Linux takes the thread for the parent, and
    would send the signal when it ends.
    """
    setpriv = _setpriv() if threading.current_thread() is threading.main_thread() else None
    return [setpriv, "--pdeathsig", by.name.removeprefix("SIG"), "--", SHELL, "-c", _AS_MY_CHILD] if setpriv else None


@cache
def _setpriv() -> str | None:
    """The path of ``setpriv``, if it is that of util-linux; others do not know the option."""
    found = shutil.which("setpriv")
    trial = [found or "", "--pdeathsig", "KILL", "--", SHELL, "-c", ":"]
    works = found is not None and subprocess.run(trial, capture_output=True, check=False).returncode == 0
    return found if works else None


def _watch(pid: int, by: signal.Signals, *, group: bool) -> None:
    """Start the shell that looks now and then whether this process is alive."""
    words = [str(os.getpid()), f"-{pid}" if group else str(pid), by.name.removeprefix("SIG")]
    subprocess.run([SHELL, "-c", _WATCH, SHELL, *words], start_new_session=True, check=False)


def _require_program(program: str, cwd: str | os.PathLike[str] | None) -> None:
    """Raise what Popen would raise for this program; it starts the wrapper instead, and would not notice."""
    path = Path(cwd or ".") / program if "/" in program else Path(shutil.which(program) or program)
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
    if path.is_dir() or not os.access(path, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), program)
