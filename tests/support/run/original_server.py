"""A Project API server as those of microTVM were, to see that our client drives one.

It ends after a request that it cannot make sense of, sends what Python raises as a traceback, waits on descriptors with
``select``, and has a name wrong where a write finds the line closed. Written after the behaviour of TVM 0.8 to 0.18; a
template has it beside its ``microtvm_api_server.py``.
"""

from __future__ import annotations

import argparse
import base64
import collections
import io
import json
import os
import pathlib
import select
import time
import traceback
from typing import Any

ProjectOption = collections.namedtuple(
    "ProjectOption", ("name", "choices", "default", "type", "required", "optional", "help")
)
ServerInfo = collections.namedtuple(
    "ServerInfo", ("platform_name", "is_template", "model_library_format_path", "project_options")
)
TransportTimeouts = collections.namedtuple(
    "TransportTimeouts",
    ("session_start_retry_timeout_sec", "session_start_timeout_sec", "session_established_timeout_sec"),
)
PARAMETERS: dict[str, dict[str, Any]] = {
    "server_info_query": {"tvm_version": str},
    "generate_project": {
        "model_library_format_path": str,
        "standalone_crt_dir": str,
        "project_dir": str,
        "options": dict,
    },
    "build": {"options": dict},
    "flash": {"options": dict},
    "open_transport": {"options": dict},
    "close_transport": {},
    "read_transport": {"n": int, "timeout_sec": (int, float, type(None))},
    "write_transport": {"data": str, "timeout_sec": (int, float, type(None))},
}


def option(name: str, **fields: Any) -> Any:
    defaults: dict[str, Any] = {"choices": None, "default": None, "required": None, "optional": None}
    return ProjectOption(name=name, **{**defaults, **fields})


class JSONRPCError(Exception):
    def __init__(self, code: int, message: str, data: Any) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class ServerError(JSONRPCError):
    def __init__(self, message: str | None = None, data: Any = None) -> None:
        super().__init__(-32000, message or type(self).__name__, data)


class TransportClosedError(ServerError):
    """Sent by its name."""


class IoTimeoutError(ServerError):
    """Sent by its name."""


class Server:
    """One request at a time, until one cannot be understood."""

    def __init__(self, reading: Any, writing: Any, handler: Any) -> None:
        self._reading = io.TextIOWrapper(reading, encoding="UTF-8", errors="strict")
        self._writing = io.TextIOWrapper(writing, encoding="UTF-8", errors="strict", write_through=True)
        self._handler = handler

    def serve_forever(self) -> None:
        while self._serve_one():
            pass

    def _serve_one(self) -> bool:
        line = self._reading.readline()
        if not line:
            return False
        request = json.loads(line)
        try:
            result = self._dispatch(request)
        except JSONRPCError as error:
            data = error.data
            if isinstance(error, ServerError):
                data = {
                    **(data or {}),
                    "traceback": "".join(traceback.TracebackException.from_exception(error).format()),
                }
            self._write(request["id"], error={"code": error.code, "message": error.message, "data": data})
            return True
        except Exception as error:
            data = {"traceback": "".join(traceback.TracebackException.from_exception(error).format())}
            message = f"calling method {request['method']}"
            self._write(request["id"], error={"code": -32000, "message": message, "data": data})
            return True
        self._write(request["id"], result=result)
        return True

    def _dispatch(self, request: dict[str, Any]) -> Any:
        method, params = request["method"], request["params"]
        if method not in PARAMETERS:
            raise JSONRPCError(-32601, f"{method}: no such method", None)
        for name, kind in PARAMETERS[method].items():
            if name not in params:
                raise JSONRPCError(-32602, f"method {method}: parameter {name} not given", None)
            if not isinstance(params[name], kind):
                raise JSONRPCError(-32602, f"method {method}: parameter {name}: want {kind!r}", None)
        extra = [name for name in params if name not in PARAMETERS[method]]
        if extra:
            raise JSONRPCError(-32602, f"{method}: extra parameters: {', '.join(extra)}", None)
        prepared = getattr(self, f"_dispatch_{method}", None) or getattr(self._handler, method)
        return prepared(**params)

    def _dispatch_server_info_query(self, tvm_version: str) -> Any:
        info = self._handler.server_info_query(tvm_version)
        reply = info._asdict()
        if reply["model_library_format_path"] is not None:
            reply["model_library_format_path"] = str(reply["model_library_format_path"])
        reply.setdefault("protocol_version", 1)
        reply["project_options"] = [entry._asdict() for entry in info.project_options]
        return reply

    def _dispatch_generate_project(
        self, model_library_format_path: str, standalone_crt_dir: str, project_dir: str, options: Any
    ) -> Any:
        paths = (model_library_format_path, standalone_crt_dir, project_dir)
        return self._handler.generate_project(*map(pathlib.Path, paths), options)

    def _dispatch_open_transport(self, options: Any) -> Any:
        return {"timeouts": self._handler.open_transport(options)._asdict()}

    def _dispatch_read_transport(self, n: int, timeout_sec: float | None) -> Any:
        return {"data": str(base64.b85encode(self._handler.read_transport(n, timeout_sec)), "utf-8")}

    def _dispatch_write_transport(self, data: str, timeout_sec: float | None) -> None:
        self._handler.write_transport(base64.b85decode(data), timeout_sec)

    def _write(self, number: Any, **fields: Any) -> None:
        self._writing.write(json.dumps({"jsonrpc": "2.0", "id": number, **fields}))
        self._writing.write("\n")


def _await_ready(reading: list[int], writing: list[int], end: float | None) -> None:
    if end is not None and not any(select.select(reading, writing, reading + writing, max(0, end - time.monotonic()))):
        raise IoTimeoutError


def read_with_timeout(descriptor: int, count: int, timeout: float | None) -> bytes:
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        _await_ready([descriptor], [], end)
        try:
            data = os.read(descriptor, count)
        except BlockingIOError:
            continue
        if not data:
            raise TransportClosedError
        return data


def read_all_with_timeout(descriptor: int, count: int, timeout: float | None) -> bytes:
    """As servers did that gave the timeout to pyserial: it waits for every byte, and returns what there is."""
    data = b""
    end = time.monotonic() + (timeout or 0)
    while len(data) < count:
        try:
            data += read_with_timeout(descriptor, count - len(data), max(0.0, end - time.monotonic()))
        except IoTimeoutError:
            break
    if not data:
        raise IoTimeoutError
    return data


def write_with_timeout(descriptor: int, data: bytes, timeout: float | None) -> int:
    end = None if timeout is None else time.monotonic() + timeout
    written = 0
    while data:
        _await_ready([], [descriptor], end)
        try:
            count = os.write(descriptor, data)
        except BrokenPipeError:
            raise base.TransportClosedError() from None  # type: ignore[name-defined]  # noqa: F821 - so they were
        data, written = data[count:], written + count
    return written


def main(handler: Any) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--read-fd", type=int, required=True)
    parser.add_argument("--write-fd", type=int, required=True)
    parser.add_argument("--debug", action="store_true")
    arguments = parser.parse_args()
    reading = os.fdopen(arguments.read_fd, "rb", buffering=0)
    writing = os.fdopen(arguments.write_fd, "wb", buffering=0)
    Server(reading, writing, handler).serve_forever()
