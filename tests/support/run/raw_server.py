"""A Project API server spoken to line by line, so that a test can say what no client would."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from uaccel.util.files import data_dir

TEMPLATE = data_dir("project_template")
SECONDS = 30.0


class RawServer:
    """Runs without packages and without the user's settings: with nothing but Python. A context manager."""

    def __init__(
        self,
        folder: Path = TEMPLATE,
        *arguments: str,
        environment: dict[str, str] | None = None,
        python: str | Path = sys.executable,
    ) -> None:
        their_input, self.input = os.pipe()
        self.output, their_output = os.pipe()
        script = str(folder / "microtvm_api_server.py")
        command = [str(python), "-I", "-S", script, "--read-fd", str(their_input), "--write-fd", str(their_output)]
        self.process = subprocess.Popen(
            [*command, *arguments],
            cwd=folder,
            env=environment,
            pass_fds=(their_input, their_output),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(their_input)
        os.close(their_output)
        self._arrived = b""
        self._number = 0

    def __enter__(self) -> RawServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()
        self.process.kill()
        self.process.communicate()

    def hang_up(self) -> None:
        """As a client that ends."""
        for descriptor in (self.input, self.output):
            if descriptor >= 0:
                os.close(descriptor)
        self.input = self.output = -1

    def send(self, line: bytes | str) -> None:
        data = line.encode() if isinstance(line, str) else line
        os.write(self.input, data + b"\n")

    def reply(self) -> dict[str, Any]:
        """The next line, which must hold one object."""
        end = time.monotonic() + SECONDS
        while b"\n" not in self._arrived:
            ready, _, _ = select.select([self.output], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"no reply within {SECONDS} s"
            data = os.read(self.output, 1 << 16)
            assert data, "the server has ended"
            self._arrived += data
        line, _, self._arrived = self._arrived.partition(b"\n")
        reply = json.loads(line)
        assert isinstance(reply, dict)
        assert reply["jsonrpc"] == "2.0"
        return reply

    def is_silent(self, seconds: float = 0.3) -> bool:
        """Whether nothing comes for so long."""
        return not self._arrived and not select.select([self.output], [], [], seconds)[0]

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """A well-formed request, and its reply."""
        self._number += 1
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": self._number}))
        reply = self.reply()
        assert reply["id"] == self._number
        assert set(reply) == {"jsonrpc", "id", "error" if "error" in reply else "result"}
        return reply

    def result(self, method: str, **params: Any) -> Any:
        reply = self.ask(method, **params)
        assert "result" in reply, reply
        return reply["result"]

    def error(self, method: str, **params: Any) -> dict[str, Any]:
        reply = self.ask(method, **params)
        assert "error" in reply, reply
        error = reply["error"]
        assert set(error) == {"code", "message", "data"}
        assert "\n" not in error["message"]
        return dict(error)


def wait_for_end(pid: int, seconds: float = 10.0) -> None:
    """Until there is no such process any more, or only what is left of one that nobody waited for."""
    end = time.monotonic() + seconds
    while is_alive(pid):
        assert time.monotonic() < end, f"process {pid} goes on"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
