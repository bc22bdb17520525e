"""A process and all that descends from it, found by a word in their environment: also when the first has died."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

MARK = "UACCEL_TEST_FAMILY"
PATIENCE = 240.0
"""Seconds until something has begun, on a computer that has other work."""
SOON = 8.0
"""Seconds until everything has ended."""


class Family:
    """``first`` is the process that the test started."""

    def __init__(self, command: Sequence[str], cwd: Path | None = None) -> None:
        self._mark = f"{MARK}={secrets.token_hex(8)}".encode()
        name, _, value = self._mark.decode().partition("=")
        environment = {**os.environ, name: value}
        pipe = subprocess.PIPE
        self.first = subprocess.Popen(command, cwd=cwd, env=environment, stdout=pipe, stderr=pipe, text=True)

    def members(self) -> dict[int, str]:
        """Command lines of those that live."""
        found = {}
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if folder.name.isdigit() and self._mark in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_text(errors="replace").replace("\0", " ")
        return found

    def wait_for(self, happened: Callable[[dict[int, str]], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not happened(self.members()):
            assert self.first.poll() is None, self.first.communicate()
            assert time.monotonic() < end, self.members()
            time.sleep(0.01)

    def must_be_gone(self) -> None:
        end = time.monotonic() + SOON
        while self.members() and time.monotonic() < end:
            time.sleep(0.02)
        assert self.members() == {}

    def kill(self) -> None:
        for pid in self.members():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.first.communicate()


@contextmanager
def family(command: Sequence[str], cwd: Path | None = None) -> Iterator[Family]:
    """Nobody of it outlives the test."""
    started = Family(command, cwd)
    try:
        yield started
    finally:
        started.kill()
