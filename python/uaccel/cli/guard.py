"""Runs commands that read models or load accelerators in a process of their own, so that a crash of native code, or
code that ends the process without a result, becomes a one-line error.

The process is forked before anything else is loaded, which takes a millisecond or two. Signals that the parent gets are
passed on; if the parent is killed, the child is killed too. The child writes where it crashed into a file in memory
that both have open. Its status counts once it has written that into another one: ``os._exit(0)`` is no success.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

from uaccel.errors import ModelError, UaccelError

READING: Final = {"compile", "evaluate", "explain", "export", "quantize", "report", "run", "tune"}
LOADING: Final = {"accelerators", "check", "sweep", "synth"}
_FORWARDED: Final = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_FROM_TERMINAL: Final = 0x80  # ``si_code`` of signals from the terminal, which go to both processes anyway.
_TIMED_OUT: Final = b"Timeout ("
_PR_SET_PDEATHSIG: Final = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command as :func:`uaccel.cli.app.main` does, in a child process if it reads models.

    Signals are blocked before the fork. So none is lost between it and the wait, which takes them one by one."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    if not sys.platform.startswith("linux") or not args or args[0] not in READING | LOADING:
        return _command(args)
    signals = {*_FORWARDED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    parent, words, ending = os.getpid(), os.memfd_create("uaccel"), os.memfd_create("uaccel")
    child = os.fork()
    if child == 0:
        _die_with(parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _tell_crashes(words)
        return _ended_with(_command(args), ending, parent)
    status = _wait(child, signals)
    told = os.pread(words, 1 << 16, 0)
    if os.WIFSIGNALED(status):
        return _fail(args, _crashed(args, os.WTERMSIG(status), told))
    if told.startswith(_TIMED_OUT):
        from uaccel.frontend.limits import late

        return _fail(args, late(_model(args), _seconds(args)))
    ended = os.pread(ending, 8, 0)
    return int(ended) if ended else _fail(args, _unfinished(os.WEXITSTATUS(status)), UaccelError)


def _ended_with(status: int, ending: int, parent: int) -> int:
    """Notes the status of a command that came to its end, unless this is a copy that foreign code forked."""
    if os.getppid() == parent:
        os.pwrite(ending, b"%d" % status, 0)
    return status


def _unfinished(status: int) -> str:
    return (
        f"the process ended before its result, with exit status {status}: code that it loads, such as an "
        "accelerator's, calls exit; raise an error there instead"
    )


def _command(args: Sequence[str]) -> int:
    from uaccel.cli import app

    return app.main(args)


def _die_with(parent: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def _tell_crashes(words: int) -> None:
    import faulthandler

    from uaccel.frontend.limits import asked

    asked.words = words
    faulthandler.enable(words, all_threads=False)


def _wait(child: int, signals: set[signal.Signals]) -> int:
    """Waits for the child, passes signals on, and returns its status as ``waitpid`` has it.

    The check comes before each wait: SIGCHLD stays pending while blocked, so that an end in between wakes the wait."""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        info = signal.sigwaitinfo(signals)
        if info.si_signo != signal.SIGCHLD and info.si_code != _FROM_TERMINAL:
            os.kill(child, info.si_signo)


def _crashed(args: Sequence[str], number: int, told: bytes) -> str:
    """Says how the child ended, with the last line of uaccel's own code that native code was called from."""
    import re

    name = signal.Signals(number).name
    place = re.search(rb'"[^"]*/(uaccel/[\w/]+\.py)", line (\d+)', told)
    where = f" at {place[1].decode()}:{place[2].decode()}" if place else ""
    if number == signal.SIGKILL:
        return f"{_model(args)}: the process that works on it was killed, as systems do that run out of memory"
    return (
        f"{_model(args)} crashes native code that uaccel calls ({name}{where}): is the file damaged? "
        "If it comes from a converter, please report it with this line"
    )


def _model(args: Sequence[str]) -> str:
    from uaccel.frontend import SUFFIXES

    endings = tuple(SUFFIXES.split(", "))
    return next((word for word in args[1:] if word.lower().endswith(endings)), args[0])


def _seconds(args: Sequence[str]) -> float | None:
    import re

    text = " ".join(args)
    found = re.search(r"--limit-seconds[ =]([\d.]+)", text)
    return float(found[1]) if found else None


def _fail(args: Sequence[str], message: str, kind: type[UaccelError] = ModelError) -> int:
    from uaccel.cli import app

    return app.fail(kind(message), as_json="--json" in args)
