"""A client of the Project API as those of microTVM were: it waits without a limit, leaves its child to itself, sends
every option that the server declares to every method, and knows errors by the name of a class.

Written after the behaviour of TVM 0.8 to 0.18, to see that such a client drives our server.
"""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VERSION = "0.18.0"
PROTOCOL_VERSION = 1
WATCHDOG_SECONDS = 120.0
"""The test's own: a client that waits for ever must not."""


class JSONRPCError(Exception):
    """What the server answered."""

    def __init__(self, code: int, message: str, data: Any) -> None:
        super().__init__(f"JSON-RPC error # {code}: {message}\n{data!r}")
        self.code, self.message, self.data = code, message, data


class ServerError(JSONRPCError):
    """Code -32000."""


class TransportClosedError(ServerError):
    """Known by its name."""


class IoTimeoutError(ServerError):
    """Known by its name."""


class UnsupportedTVMVersionError(ServerError):
    """Known by its name."""


BY_NAME = {kind.__name__: kind for kind in (TransportClosedError, IoTimeoutError, UnsupportedTVMVersionError)}


def error_from(error: Mapping[str, Any]) -> JSONRPCError:
    code, message, data = error["code"], error["message"], error.get("data")
    assert code in (-32000, -32700, -32600, -32601, -32602, -32603), "an original client knows no other code"
    if code != -32000:
        return JSONRPCError(code, message, data)
    return BY_NAME.get(message, ServerError)(code, message, data)


class OriginalClient:
    """One server, started in its folder: through its launcher where it has one."""

    def __init__(self, folder: Path) -> None:
        script, launcher = folder / "microtvm_api_server.py", folder / "launch_microtvm_api_server.sh"
        command = [sys.executable, str(script)]
        if launcher.is_file():
            command = [str(launcher), str(script)]
        their_input, our_output = os.pipe()
        our_input, their_output = os.pipe()
        command += ["--read-fd", str(their_input), "--write-fd", str(their_output)]
        self.process = subprocess.Popen(command, bufsize=0, pass_fds=(their_input, their_output), cwd=folder)
        os.close(their_input)
        os.close(their_output)
        self._reading = io.TextIOWrapper(os.fdopen(our_input, "rb", buffering=0), encoding="UTF-8")
        writing = os.fdopen(our_output, "wb", buffering=0)
        self._writing = io.TextIOWrapper(writing, encoding="UTF-8", write_through=True)
        self._watchdog = threading.Timer(WATCHDOG_SECONDS, self.process.kill)
        self._watchdog.start()
        self._number = 1

    def shut_down(self) -> None:
        """The original closes its files and never looks at the child again; this one at least waits."""
        self._reading.close()
        self._writing.close()
        self._watchdog.cancel()
        self.process.wait()

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": self._number}
        self._number += 1
        self._writing.write(json.dumps(request))
        self._writing.write("\n")
        line = self._reading.readline()
        assert line, "got EOF reading reply from API server"
        reply = json.loads(line)
        assert reply.get("jsonrpc") == "2.0"
        assert reply["id"] == request["id"]
        if "error" in reply:
            raise error_from(reply["error"])
        return reply["result"]

    def server_info_query(self) -> dict[str, Any]:
        reply = self.call("server_info_query", {"tvm_version": VERSION})
        assert reply["protocol_version"] == PROTOCOL_VERSION
        return dict(reply)

    def read_transport(self, count: int, timeout: float | None) -> bytes:
        reply = self.call("read_transport", {"n": count, "timeout_sec": timeout})
        return base64.b85decode(reply["data"])

    def write_transport(self, data: bytes, timeout: float | None) -> None:
        self.call("write_transport", {"data": str(base64.b85encode(data), "utf-8"), "timeout_sec": timeout})


class Folder:
    """A template or a project, as ``tvm.micro`` used one: options that nobody set are sent with their default."""

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        self.client = OriginalClient(folder)
        self.info = self.client.server_info_query()
        declared = {option["name"]: option["default"] for option in self.info["project_options"]}
        unknown = set(options) - set(declared)
        assert not unknown, f"{unknown} are not among the server's options"
        self.options = declared | dict(options)

    def generate_project(self, archive: Path, project: Path, crt: Path) -> Folder:
        assert self.info["is_template"]
        paths = {"model_library_format_path": archive, "standalone_crt_dir": crt, "project_dir": project}
        params = {name: str(path) for name, path in paths.items()}
        self.client.call("generate_project", {**params, "options": self.options})
        return Folder(project, self.options)

    def call(self, method: str) -> Any:
        """build, flash or open_transport."""
        assert not self.info["is_template"]
        return self.client.call(method, {"options": self.options})
