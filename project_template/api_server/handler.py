"""The eight methods."""

from __future__ import annotations

import base64
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any, Dict, Union

from .archive import read_archive
from .board import choose_run, fill, read_board
from .connection import Connection
from .errors import InvalidParamsError, ServerError, ToolFaultError, TransportClosedError, UnsupportedTVMVersionError
from .files import is_text
from .generate import ARCHIVE_NAME, fill_project, find_firmware, overlay_of
from .lines import Line, ProcessLine
from .options import OPTIONS, read_options
from .ports import DeviceFaultError, find_port, open_port
from .programs import Finished, find, first_error, lend_zig_tools, run, tool_words
from .rpc import INTEGER, OBJECT, SECONDS, STRING, Method

PROTOCOL_VERSION = 1
FIRST_TVM = (0, 8)
"""The first whose clients speak this protocol."""
TIMEOUTS = {
    "session_start_retry_timeout_sec": 2.0,
    "session_start_timeout_sec": 10.0,
    "session_established_timeout_sec": 5.0,
}
HOST_PATIENCE = 2.0

Options = Dict[str, Any]
Seconds = Union[int, float, None]


class Handler:
    """Serves one client; ``home`` is the folder of the template or the project."""

    def __init__(self, connection: Connection, home: Path) -> None:
        self._connection = connection
        self._home = home
        self._line: Line | None = None

    def methods(self) -> dict[str, Method]:
        paths = {"model_library_format_path": STRING, "standalone_crt_dir": STRING, "project_dir": STRING}
        return {
            "server_info_query": Method(self.server_info_query, {"tvm_version": STRING}),
            "generate_project": Method(self.generate_project, {**paths, "options": OBJECT}),
            "build": Method(self.build, {"options": OBJECT}),
            "flash": Method(self.flash, {"options": OBJECT}),
            "open_transport": Method(self.open_transport, {"options": OBJECT}),
            "close_transport": Method(self.close_transport, {}),
            "read_transport": Method(self.read_transport, {"n": INTEGER, "timeout_sec": SECONDS}),
            "write_transport": Method(self.write_transport, {"data": STRING, "timeout_sec": SECONDS}),
        }

    @property
    def _is_template(self) -> bool:
        return not (self._home / ARCHIVE_NAME).is_file()

    def server_info_query(self, tvm_version: str) -> dict[str, Any]:
        version = re.match(r"v?(\d{1,9})\.(\d{1,9})", tvm_version)
        if version is None:
            raise UnsupportedTVMVersionError(f"{tvm_version!r} is no version of TVM; wanted a text such as 0.18.0")
        if (int(version[1]), int(version[2])) < FIRST_TVM:
            raise UnsupportedTVMVersionError(f"TVM {tvm_version} is older than 0.8, the first with this protocol")
        archive = None if self._is_template else str(self._home / ARCHIVE_NAME)
        return {
            "platform_name": "uaccel",
            "is_template": self._is_template,
            "model_library_format_path": archive,
            "project_options": [entry._asdict() for entry in OPTIONS],
            "protocol_version": PROTOCOL_VERSION,
        }

    def generate_project(
        self, model_library_format_path: str, standalone_crt_dir: str, project_dir: str, options: Options
    ) -> None:
        values = read_options("generate_project", options)
        if not self._is_template:
            raise ServerError(f"{self._home} is a project already; generate_project is for a template")
        archive = read_archive(path_of("model_library_format_path", model_library_format_path))
        overlay = overlay_of(archive, values["board"], values["board_files"])
        firmware = find_firmware(self._home, path_of("standalone_crt_dir", standalone_crt_dir))
        fill_project(path_of("project_dir", project_dir), self._home, firmware, archive, overlay)

    def build(self, options: Options) -> None:
        values = read_options("build", options)
        self._require_project("build")
        cmake = find("cmake", "building firmware")
        folder = self._build_folder(values)
        lend_zig_tools(folder)
        observe = f"-DOBSERVE={'ON' if values['observe'] else 'OFF'}"
        configure = [cmake, "-S", str(self._home), "-B", str(folder), observe]
        if not (folder / "CMakeCache.txt").is_file():
            configure += ["-G", generator()]
        self._run(configure, "configuring the firmware", values)
        self._run(
            [cmake, "--build", str(folder), "--parallel", str(os.cpu_count() or 1)], "building the firmware", values
        )

    def flash(self, options: Options) -> None:
        """Nothing to do for a board whose firmware is loaded as it starts."""
        values = read_options("flash", options)
        self._require_project("flash")
        board = read_board(self._home)
        if not board.flash:
            return
        firmware = self._firmware(board.firmware, values)
        port = values["port"]
        if any("{port}" in word for step in board.flash for word in step["command"]):
            port = self._port(choose_run(board, "serial", None), port)
        for step in board.flash:
            command = fill(step["command"], elf=str(firmware), port=port or "", board=str(board.folder))
            command[0] = find(command[0], f"flashing board {board.name}", board.folder)
            folder = board.folder if step["in"] == "board" else firmware.parent
            done = run(self._connection, command, folder, show=values["verbose"])
            if done.status != 0:
                raise DeviceFaultError(failed(f"flashing board {board.name}", command, done, tool_words(done.output)))

    def open_transport(self, options: Options) -> dict[str, dict[str, float]]:
        values = read_options("open_transport", options)
        self._require_project("open_transport")
        self.close_transport()
        board = read_board(self._home)
        chosen = choose_run(board, values["run"], values["port"])
        if chosen["kind"] == "serial":
            port = self._port(chosen, values["port"])
            self._line = open_port(self._connection, port, chosen["baud"])
        else:
            firmware = self._firmware(board.firmware, values)
            command = fill(chosen["command"], elf=str(firmware))
            command[0] = find(command[0], f"running board {board.name}", board.folder)
            command += words_of(values["run_arguments"] or "")
            patience = HOST_PATIENCE if chosen["kind"] == "host" else 0.0
            self._line = ProcessLine(self._connection, command, self._home, patience)
        return {"timeouts": dict(TIMEOUTS)}

    def close_transport(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    def read_transport(self, n: int, timeout_sec: Seconds) -> dict[str, str]:
        if n < 1:
            raise InvalidParamsError(f"read_transport: parameter n: want at least 1, got {n}")
        data = self._open_line().read(n, seconds("read_transport", timeout_sec))
        return {"data": base64.b85encode(data).decode("ascii")}

    def write_transport(self, data: str, timeout_sec: Seconds) -> None:
        try:
            plain = base64.b85decode(data)
        except (ValueError, UnicodeError) as error:
            raise InvalidParamsError(f"write_transport: parameter data: want base85 text; {error}") from error
        self._open_line().write(plain, seconds("write_transport", timeout_sec))

    def _open_line(self) -> Line:
        if self._line is None:
            raise TransportClosedError("the transport is not open; call open_transport")
        return self._line

    def _require_project(self, method: str) -> None:
        if self._is_template:
            raise ServerError(f"{self._home} is a template; {method} is for a project: call generate_project, go there")

    def _build_folder(self, values: Options) -> Path:
        return self._home / ("build-observe" if values["observe"] else "build")

    def _firmware(self, name: str, values: Options) -> Path:
        firmware = self._build_folder(values) / name
        if not firmware.is_file():
            raise ToolFaultError(f"there is no {firmware}; build the project first")
        return firmware

    def _port(self, serial: dict[str, Any], asked: str | None) -> str:
        port = asked or serial["port"]
        return find_port(serial["usb"], serial["serial_number"]) if port == "auto" else port

    def _run(self, command: list[str], what: str, values: Options) -> None:
        done = run(self._connection, command, self._home, show=values["verbose"])
        if done.status != 0:
            raise ServerError(failed(what, command, done, first_error(done.output)))


def failed(what: str, command: list[str], done: Finished, words: str) -> str:
    how = f"signal {-done.status}" if done.status < 0 else f"exit status {done.status}"
    return f"{what} failed ({Path(command[0]).name}, {how}): {words}"


def words_of(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidParamsError(
            f"open_transport: option run_arguments: want words as in a shell; {error}: {text!r}"
        ) from error


def generator() -> str:
    """Ninja where it is: it says first what is wrong, and knows how many cores there are."""
    return "Ninja" if shutil.which("ninja") else "Unix Makefiles"


def path_of(name: str, text: str) -> Path:
    if not text or not is_text(text):
        raise InvalidParamsError(f"generate_project: parameter {name}: want a path, got {text!r}")
    return Path(text)


def seconds(method: str, value: Seconds) -> float | None:
    if value is not None and value < 0:
        raise InvalidParamsError(f"{method}: parameter timeout_sec: want a time from 0 on, got {value}")
    return value
