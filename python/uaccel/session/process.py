"""Firmware as a process of this computer: its standard input and output are the line."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from typing import IO, Final

from uaccel.errors import DeviceError
from uaccel.session.fair_clock import FairClock
from uaccel.session.message import shown
from uaccel.session.streams import StreamTransport
from uaccel.toolchain.children import start

PATIENCE: Final = 2.0
"""Seconds that a process has to end by itself after its input has."""
CLOSING: Final = 20.0
"""Seconds that it has after SIGTERM, by which it ends at once, unless it has a waveform to close."""
LOOKED_AT: Final = 1 << 16


def first_words(file: IO[bytes]) -> str:
    """The first line that a process wrote there; one of ornaments, as sanitizers begin with, says nothing."""
    file.seek(0)
    lines = file.read(LOOKED_AT).decode(errors="replace").splitlines()
    return next((shown(line.strip()) for line in lines if any(map(str.isalnum, line))), "it said nothing")


class ProcessTransport(StreamTransport):
    """Starts the process, and ends it with the session."""

    def __init__(self, command: Sequence[str], name: str = "the firmware") -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the transport
        pipe = subprocess.PIPE
        try:
            self._process = start(command, stdin=pipe, stdout=pipe, stderr=self._words)
        except OSError as error:
            self._words.close()
            raise DeviceError(f"cannot start {command[0]}: {error.strerror}") from error
        assert self._process.stdin is not None  # both are pipes
        assert self._process.stdout is not None
        self._clock = FairClock(self.pid)
        super().__init__(name, self._process.stdout.fileno(), self._process.stdin.fileno(), self._end)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def clock(self) -> float:
        """A process that a busy computer keeps waiting is no silent device."""
        return self._clock()

    def vanished(self, reason: str) -> DeviceError:
        """With the process's own last words."""
        try:
            status = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return super().vanished(reason)
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return DeviceError(f"{self.name} ended with {how}: {first_words(self._words)}")

    def _end(self) -> None:
        process = self._process
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        for ask, patience in ((process.terminate, PATIENCE), (process.kill, CLOSING)):
            try:
                process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                ask()
        process.wait()
        self._words.close()
