"""A Project API server as a child process: one JSON object a line over two pipes, and a limit to every wait."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from uaccel.basics.documents import parse_json
from uaccel.errors import UaccelError
from uaccel.project.api_errors import ProjectApiError
from uaccel.toolchain.children import start

SCRIPT: Final = "microtvm_api_server.py"
LAUNCHER: Final = "launch_microtvm_api_server.sh"
CHUNK: Final = 1 << 16
LONGEST_REPLY: Final = 1 << 28
PATIENCE: Final = 5.0
"""Seconds that a server has to end once its input has, and then once it is told to."""
SHORT_PATIENCE: Final = 1.0
"""The same for one that has shown that it does not work."""
STDERR: Final = 2


def server_command(folder: Path) -> list[str]:
    """How the server of a template or a project is started: its launcher knows better than we do."""
    script, launcher = folder / SCRIPT, folder / LAUNCHER
    if launcher.is_file():
        return [str(launcher), str(script)]
    if script.is_file():
        return [sys.executable, str(script)]
    raise ProjectApiError(f"{folder} is no project and no template: it has neither {SCRIPT} nor {LAUNCHER}")


class ServerProcess:
    """One server; ``where`` is how messages call it. It is ended and waited for by :meth:`close`, whatever it does.

    With ``show`` what it prints goes to stderr as it comes; with ``debug`` it logs every request there too.
    """

    def __init__(self, folder: Path, *, show: bool = False, debug: bool = False) -> None:
        self.where = f"Project API server of {folder}"
        command = server_command(folder.resolve())
        their_input, our_output = os.pipe()
        our_input, their_output = os.pipe()
        command += ["--read-fd", str(their_input), "--write-fd", str(their_output), *(["--debug"] if debug else [])]
        self._input, self._output = our_input, our_output
        self._arrived = bytearray()
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._open = True
        try:
            self._process = start(
                command,
                by=signal.SIGTERM,  # it has children of its own to end
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=STDERR if show or debug else self._words,
                stderr=STDERR if show or debug else self._words,
                pass_fds=(their_input, their_output),
                start_new_session=True,
            )
        except OSError as error:
            self._release()
            raise ProjectApiError(f"{self.where} cannot be started: {command[0]}: {error.strerror}") from error
        finally:
            os.close(their_input)
            os.close(their_output)
        os.set_blocking(self._output, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    def exchange(self, request: dict[str, Any], limit: float) -> dict[str, Any]:
        """Send a request and return the reply to it; after a failure the server is no more."""
        if not self._open:
            raise ProjectApiError(f"{self.where} has ended; start another")
        method, end = str(request["method"]), time.monotonic() + limit
        try:
            self._send(json.dumps(request).encode() + b"\n", method, limit, end)
            return self._checked(self._line(method, limit, end), request["id"], method)
        except BaseException:
            self.close(SHORT_PATIENCE)
            raise

    def close(self, patience: float = PATIENCE) -> None:
        """End it: by the end of its input, by a signal, by force. May be called again."""
        if not self._open:
            return
        self._open = False
        os.close(self._output)
        os.close(self._input)
        self._end(patience)
        self._words.close()

    def _end(self, patience: float) -> None:
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                if number is not None:
                    os.killpg(self._process.pid, number)
                self._process.wait(patience)
                return
        self._process.wait()

    def _release(self) -> None:
        self._open = False
        for descriptor in (self._input, self._output):
            os.close(descriptor)
        self._words.close()

    def _send(self, data: bytes, method: str, limit: float, end: float) -> None:
        rest = memoryview(data)
        while rest:
            _, writable, _ = select.select([], [self._output], [], max(0.0, end - time.monotonic()))
            if not writable:
                raise self._late(method, limit)
            try:
                rest = rest[os.write(self._output, rest) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._ended(method) from error

    def _line(self, method: str, limit: float, end: float) -> bytes:
        searched = 0
        while (at := self._arrived.find(b"\n", searched)) < 0:
            searched = len(self._arrived)
            readable, _, _ = select.select([self._input], [], [], max(0.0, end - time.monotonic()))
            if not readable:
                raise self._late(method, limit)
            data = os.read(self._input, CHUNK)
            if not data:
                raise self._ended(method)
            self._arrived += data
            if len(self._arrived) > LONGEST_REPLY:
                raise ProjectApiError(f"{self.where}: {method}: the reply is longer than {LONGEST_REPLY} bytes")
        line = bytes(self._arrived[:at])
        del self._arrived[: at + 1]
        return line

    def _checked(self, line: bytes, number: int, method: str) -> dict[str, Any]:
        excerpt = line[:80].decode("utf-8", "replace")
        try:
            reply = parse_json(line)
        except ValueError:
            raise ProjectApiError(f"{self.where}: {method}: the reply is not JSON: {excerpt!r}") from None
        if not isinstance(reply, dict) or reply.get("jsonrpc") != "2.0" or not ("result" in reply or "error" in reply):
            raise ProjectApiError(f"{self.where}: {method}: the reply is not one of JSON-RPC 2.0: {excerpt!r}")
        if reply.get("id") != number and "error" not in reply:
            raise ProjectApiError(f"{self.where}: {method}: the reply has id {reply.get('id')!r}, wanted {number}")
        return reply

    def _late(self, method: str, limit: float) -> UaccelError:
        return ProjectApiError(f"{self.where} did not answer {method} within {limit:g} s and was ended{self._said()}")

    def _ended(self, method: str) -> UaccelError:
        """It has closed its end: how it ended, if it has, and its last words."""
        try:
            status = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return ProjectApiError(f"{self.where} closed its line in the middle of {method}{self._said()}")
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return ProjectApiError(f"{self.where} ended in the middle of {method} ({how}){self._said()}")

    def _said(self) -> str:
        """The last line that it wrote to stderr or stdout."""
        size = self._words.seek(0, 2)
        self._words.seek(max(0, size - CHUNK))
        lines = [line for line in self._words.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return f": {lines[-1].strip()}" if lines else ""
