"""The line to running firmware: a process's standard streams, a serial port, a TCP port."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

from .connection import CHUNK, Connection, Deadline
from .errors import IoTimeoutError, ServerError, TransportClosedError
from .programs import end, watch

PATIENCE = 2.0
MOST_ARRIVED = 1 << 24
"""Bytes that are taken in while the other end takes none."""
LOOKED_AT = 1 << 16


class Line:
    """Reads one descriptor and writes another, or the same."""

    def __init__(self, connection: Connection, name: str, reading: int, writing: int) -> None:
        self.name = name
        self._connection = connection
        self._reading = reading
        self._writing = writing
        self._arrived = bytearray()
        self._ended = ""
        for descriptor in (reading, writing):
            os.set_blocking(descriptor, False)

    def read(self, count: int, timeout: float | None) -> bytes:
        """What has arrived, at most ``count`` bytes: within ``timeout`` seconds a byte; without, all of them."""
        deadline = Deadline(timeout)
        least = count if timeout is None else 1
        while len(self._arrived) < least and not self._ended:
            if self._connection.wait([self._reading], [], deadline).reading:
                self._take()
            elif not self._arrived:
                raise IoTimeoutError(f"{self.name} sent nothing within {timeout:g} s")
        if not self._arrived:
            raise TransportClosedError(self._ended)
        data = bytes(self._arrived[:count])
        del self._arrived[:count]
        return data

    def write(self, data: bytes, timeout: float | None) -> None:
        """All of it; takes in meanwhile what arrives, so that no two ends wait for each other with full buffers."""
        deadline = Deadline(timeout)
        rest = memoryview(data)
        while rest:
            reading = [] if self._ended or len(self._arrived) >= MOST_ARRIVED else [self._reading]
            ready = self._connection.wait(reading, [self._writing], deadline)
            if not ready.writing and (not ready.reading or deadline.left() == 0):
                sent = len(data) - len(rest)
                raise IoTimeoutError(f"{self.name} took {sent} of {len(data)} bytes within {timeout:g} s")
            if ready.reading:
                self._take()
            if ready.writing:
                rest = rest[self._give(rest) :]

    def close(self) -> None:
        """Let go of the line."""
        for descriptor in {self._reading, self._writing}:
            os.close(descriptor)

    def _take(self) -> None:
        try:
            data = os.read(self._reading, CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            self._ended = self.last_words(error.strerror or str(error))
            return
        if data:
            self._arrived += data
        else:
            self._ended = self.last_words("the other end has closed the line")

    def _give(self, data: memoryview) -> int:
        try:
            return os.write(self._writing, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise TransportClosedError(self.last_words(error.strerror or str(error))) from error

    def last_words(self, reason: str) -> str:
        """Why nothing will come any more."""
        return f"{self.name} vanished: {reason}"


class ProcessLine(Line):
    """Starts a process and ends it; its standard input and output are the line.

    ``patience``: seconds that it has to end by itself once its input has.
    """

    def __init__(self, connection: Connection, command: list[str], folder: Path, patience: float) -> None:
        self._patience = patience
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the line
        try:
            self._process = subprocess.Popen(
                command,
                cwd=str(folder),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._words,
                start_new_session=True,
            )
        except OSError as error:
            self._words.close()
            raise ServerError(f"cannot start {command[0]}: {error.strerror}") from error
        watch(self._process)
        assert self._process.stdout is not None  # both are pipes
        assert self._process.stdin is not None
        name = Path(command[0]).name
        super().__init__(connection, name, self._process.stdout.fileno(), self._process.stdin.fileno())

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._wait(self._patience)
        end(self._process)
        self._words.close()

    def last_words(self, reason: str) -> str:
        if not self._wait(PATIENCE):
            return super().last_words(reason)
        self._words.seek(0)
        said = self._words.read(LOOKED_AT).decode("utf-8", "replace").strip().splitlines()
        status = self._process.returncode
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"{self.name} ended with {how}: {said[0] if said else 'it said nothing'}"

    def _wait(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
