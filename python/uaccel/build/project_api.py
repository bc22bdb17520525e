"""Speaks microTVM's Project API as a client: starts a server, sends requests, and turns its errors into exceptions."""

from __future__ import annotations

import base64
import contextlib
import importlib.metadata
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from uaccel.build.children import start, temporary_file
from uaccel.errors import DeviceError, ToolError, UaccelError, need
from uaccel.util import incoming
from uaccel.util.files import data_dir, parse_json
from uaccel.util.text import did_you_mean

# Errors of a server, as exceptions that say whose fault they are.

SERVER_ERROR: Final = -32000


class ProjectApiError(ToolError):
    """Is raised when the server breaks the protocol, or does not answer."""


class UnsupportedTVMVersionError(ToolError):
    """Is raised when the server does not work with this TVM."""


class TransportClosedError(DeviceError):
    """Is raised when nothing can be sent to the firmware or received any more."""


class IoTimeoutError(DeviceError):
    """Is raised when the firmware sent nothing, or took nothing, in time."""


# Errors that a server names by the class.
NAMED: Final[Mapping[str, type[UaccelError]]] = {
    kind.__name__: kind for kind in (UnsupportedTVMVersionError, TransportClosedError, IoTimeoutError)
}

DEVICE_METHODS: Final = ("flash", "open_transport", "close_transport", "read_transport", "write_transport")


def error_from(where: str, method: str, error: Any) -> UaccelError:
    """The exception for an ``error`` object of JSON-RPC, as one line that begins with ``where``.

    A class that the message names is taken. Otherwise the server may say whose fault it is (``kind``), and methods that
    concern the device are taken to fail by its fault.
    """
    if not isinstance(error, Mapping) or not isinstance(error.get("message"), str):
        return ProjectApiError(f"{where}{method}: the server sent an error that is none: {error!r}")
    message, data = str(error["message"]), error.get("data")
    details = data if isinstance(data, Mapping) else {}
    reason = _last(details.get("traceback"))
    kind = NAMED.get(message) if error.get("code") == SERVER_ERROR else None
    if kind is not None:
        return kind(f"{where}{_line(details.get('detail')) or reason or f'{method}: {message}'}")
    words = f"{where}{_line(message)}"
    words += f" ({reason})" if reason and reason not in words else ""
    fault = details.get("kind", "device" if method in DEVICE_METHODS else "tool")
    return DeviceError(words) if fault == "device" else ToolError(words)


def _line(text: Any) -> str:
    return " ".join(text.split()) if isinstance(text, str) else ""


def _last(traceback: Any) -> str:
    """The last line of a traceback, which says what went wrong."""
    lines = [line for line in traceback.splitlines() if line.strip()] if isinstance(traceback, str) else []
    return lines[-1].strip() if lines else ""


# Options that a server declares, and values for them.

OptionValue = str | int | bool | None

TRUE: Final = ("true", "1", "yes", "on")
FALSE: Final = ("false", "0", "no", "off")
MOST_CHOICES: Final = 8


def port_from_here(port: str) -> str:
    """A port as a server understands it: paths are made absolute, since the server runs in another folder."""
    return str(Path(port).absolute()) if "/" in port and "://" not in port else port


@dataclass(frozen=True)
class ProjectOption:
    """Describes an option: ``required`` and ``optional`` are the methods that need it and those that accept it. Old
    servers leave fields out."""

    name: str
    choices: tuple[Any, ...]
    default: Any
    type: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    help: str


def read_project_options(rows: Sequence[Mapping[str, Any]]) -> tuple[ProjectOption, ...]:
    return tuple(
        ProjectOption(
            name=str(row["name"]),
            choices=tuple(row.get("choices") or ()),
            default=row.get("default"),
            type=str(row.get("type") or "str"),
            required=tuple(row.get("required") or ()),
            optional=tuple(row.get("optional") or ()),
            help=str(row.get("help") or ""),
        )
        for row in rows
    )


def option_values(
    where: str, method: str, options: Iterable[ProjectOption], given: Mapping[str, OptionValue]
) -> dict[str, Any]:
    """A value for every option that the server declares: as given, else its default."""
    known = {option.name: option for option in options}
    for name in given:
        if name not in known:
            there = ", ".join(known) or "none"
            raise UaccelError(f"{where} has no option {name!r}{did_you_mean(name, known)} (known: {there})")
    values = {name: _value(where, option, given.get(name)) for name, option in known.items()}
    missing = [option for option in known.values() if values[option.name] is None and method in option.required]
    if missing:
        give = " ".join(f"--option {option.name}=VALUE" for option in missing)
        raise UaccelError(f"{where} wants {_wanted(method, missing)}; give {give}")
    return values


def _wanted(method: str, missing: Sequence[ProjectOption]) -> str:
    """All missing options, for a message of one line."""
    if len(missing) == 1:
        (option,) = missing
        return f"option {option.name!r} for {method}{_choices(option)}: {option.help}"
    return f"options {', '.join(f'{option.name!r}{_choices(option)}' for option in missing)} for {method}"


def _choices(option: ProjectOption) -> str:
    """The choices of an option, the first few only: some templates know a hundred boards."""
    shown = [str(choice) for choice in option.choices[:MOST_CHOICES]]
    rest = ["..."] if len(option.choices) > MOST_CHOICES else []
    return f" (one of {', '.join(shown + rest)})" if shown else ""


def _value(where: str, option: ProjectOption, given: OptionValue) -> Any:
    if given is None:
        return option.default
    value = _converted(option.type, given) if isinstance(given, str) else given
    if value is None:
        raise UaccelError(f"{where}: option {option.name!r} is {given!r}; wanted a value of type {option.type}")
    if option.choices and value not in option.choices:
        choices = ", ".join(map(str, option.choices))
        raise UaccelError(f"{where}: option {option.name!r} is {given!r}; wanted one of {choices}")
    return value


def _converted(kind: str, text: str) -> OptionValue:
    """A word of a command line as a value of that type; None where it cannot be one."""
    if kind == "bool":
        return text.lower() in TRUE if text.lower() in TRUE + FALSE else None
    if kind == "int":
        try:
            value = int(text, 0)
        except ValueError:
            return None
        return value if -(1 << 63) <= value < 1 << 63 else None
    return text


# A Project API server as a child process: one JSON object a line over two pipes, and a limit to every wait.

SCRIPT: Final = "microtvm_api_server.py"
LAUNCHER: Final = "launch_microtvm_api_server.sh"
CHUNK: Final = 1 << 16
LONGEST_REPLY: Final = 1 << 28
PATIENCE: Final = 5.0  # Seconds that a server has to end after its input ended, and again after SIGTERM.
SHORT_PATIENCE: Final = 1.0  # The same for a server that has failed already.
STDERR: Final = 2


def server_command(folder: Path) -> list[str]:
    """The command that starts the server of a template or a project: its launcher, if it has one."""
    script, launcher = folder / SCRIPT, folder / LAUNCHER
    if launcher.is_file() or script.is_file():
        incoming.require_files(folder)
        return [str(launcher), str(script)] if launcher.is_file() else [sys.executable, str(script)]
    raise ProjectApiError(f"{folder} is no project and no template: it has neither {SCRIPT} nor {LAUNCHER}")


class ServerProcess:
    """Runs one server, which :meth:`close` ends and waits for, whatever it does; ``where`` names it in messages.

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
        self._words = temporary_file()  # closed by close()
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
        """Send a request and return the reply to it; after a failure the server is ended."""
        need(self._open, f"{self.where} has ended; start another", ProjectApiError)
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
        """The error for a server that closed its end: how it ended, if it has, and what it said last."""
        try:
            status = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return ProjectApiError(f"{self.where} closed its line in the middle of {method}{self._said()}")
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return ProjectApiError(f"{self.where} ended in the middle of {method} ({how}){self._said()}")

    def _said(self) -> str:
        """The last line that the server wrote to stderr or stdout."""
        size = self._words.seek(0, 2)
        self._words.seek(max(0, size - CHUNK))
        lines = [line for line in self._words.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return f": {lines[-1].strip()}" if lines else ""


# The client of a Project API server: uaccel's own, or any that speaks microTVM's protocol.

PROTOCOL_VERSION: Final = 1
UNKNOWN_TVM: Final = "0.27.0"
ARCHIVE_NAME: Final = "model.tar"  # Servers of microTVM rely on the name that TVM gave to its archives.
OUR_PLATFORM: Final = "uaccel"  # What our own server calls itself; its messages need no word about whose they are.


@dataclass(frozen=True)
class ServerLimits:
    """Sets the seconds that the server has for each call; ``slack`` is added to a transport call's own timeout."""

    query: float = 120.0  # Long, since a launcher may have to install something first.
    generate: float = 120.0
    build: float = 1800.0
    flash: float = 600.0
    open: float = 60.0
    close: float = 30.0
    slack: float = 30.0


@dataclass(frozen=True)
class ServerInfo:
    """Holds what a server says of itself and its folder."""

    platform_name: str
    is_template: bool
    model_library_format_path: Path | None
    project_options: tuple[ProjectOption, ...]


class ProjectServer:
    """Runs the server of a project or of a template, uaccel's own without a ``folder``, as a context manager. Every
    call ends, within its limit, with a result or an exception.

    ``options``: by name, for all calls; each is sent what it takes. What is not given is sent with its default, as
    servers of microTVM expect. ``show`` and ``debug`` are those of :class:`ServerProcess`.
    """

    def __init__(
        self,
        folder: Path | None = None,
        options: Mapping[str, OptionValue] | None = None,
        *,
        limits: ServerLimits | None = None,
        show: bool = False,
        debug: bool = False,
    ) -> None:
        self.folder = folder = folder or data_dir("project_template")
        self._limits = limits or ServerLimits()
        self._given = dict(options or {})
        self._process = ServerProcess(folder, show=show, debug=debug)
        self.is_ours = False
        self._next = 1
        try:
            self.info = self._query()
            self.is_ours = self.info.platform_name == OUR_PLATFORM
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ProjectServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._process.pid

    def close(self) -> None:
        """End the server, and what it has open. May be called again."""
        self._process.close()

    def takes(self, option: str) -> bool:
        """Whether the server knows an option of that name."""
        return any(known.name == option for known in self.info.project_options)

    def given(self, option: str) -> OptionValue:
        """The value that was set; None where there is none."""
        return self._given.get(option)

    def offer(self, option: str, value: OptionValue) -> None:
        """Set an option that the server may not know, unless it is set already."""
        if self.takes(option):
            self._given.setdefault(option, value)

    def require(self, option: str, value: OptionValue) -> None:
        """Set an option; a server that does not know it is an error."""
        if not self.takes(option):
            raise UaccelError(f"{self._process.where} ({self.info.platform_name}) has no option {option!r}")
        self._given[option] = value

    def generate_project(self, archive: Path, project: Path, runtime: Path | None = None) -> None:
        """Make a project of an archive; ``runtime`` has the C sources that every project needs, by default uaccel's."""
        runtime = runtime or data_dir("firmware")
        need(self.info.is_template, f"{self.folder} is a project already; wanted a template", ProjectApiError)
        if self.is_ours or archive.name == ARCHIVE_NAME:
            self._generate(archive, project, runtime)
            return
        with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
            copy = Path(temporary) / ARCHIVE_NAME
            incoming.copy(archive, copy)
            self._generate(copy, project, runtime)

    def _generate(self, archive: Path, project: Path, runtime: Path) -> None:
        paths = {"model_library_format_path": archive, "standalone_crt_dir": runtime, "project_dir": project}
        params = {name: str(path.resolve()) for name, path in paths.items()}
        self._with_options("generate_project", params, self._limits.generate)

    def build(self) -> None:
        """Build the project's firmware."""
        self.require_project("build")
        self._with_options("build", {}, self._limits.build)

    def flash(self) -> None:
        """Write it to the board; nothing where it is loaded as it starts."""
        self.require_project("flash")
        self._with_options("flash", {}, self._limits.flash)

    def open_transport(self) -> dict[str, float]:
        """The timeouts that the server proposes for a session."""
        self.require_project("run")
        reply = self._with_options("open_transport", {}, self._limits.open)
        timeouts = reply.get("timeouts") if isinstance(reply, dict) else None
        return dict(timeouts) if isinstance(timeouts, dict) else {}

    def close_transport(self) -> None:
        self._call("close_transport", {}, self._limits.close)

    def read_transport(self, count: int, timeout: float) -> bytes:
        """Reads from one to ``count`` bytes; :class:`IoTimeoutError` where none come in time."""
        params = {"n": count, "timeout_sec": timeout}
        reply = self._call("read_transport", params, timeout + self._limits.slack)
        try:
            return base64.b85decode(reply["data"])
        except (TypeError, KeyError, ValueError) as error:
            raise self._broken("read_transport", "data is not base85 text", error) from error

    def write_transport(self, data: bytes, timeout: float) -> None:
        params = {"data": base64.b85encode(data).decode("ascii"), "timeout_sec": timeout}
        self._call("write_transport", params, timeout + self._limits.slack)

    def require_project(self, what: str) -> None:
        """Refuse a template, in which there is no firmware."""
        if self.info.is_template:
            raise ProjectApiError(f"cannot {what} {self.folder}: it is a template; make a project with 'uaccel create'")

    def _query(self) -> ServerInfo:
        try:
            version = importlib.metadata.version("apache-tvm")
        except importlib.metadata.PackageNotFoundError:
            version = UNKNOWN_TVM
        reply = self._call("server_info_query", {"tvm_version": version}, self._limits.query)
        try:
            spoken = reply["protocol_version"]
            if spoken != PROTOCOL_VERSION:
                where = self._process.where
                raise ProjectApiError(f"{where} speaks version {spoken} of the protocol; wanted {PROTOCOL_VERSION}")
            path = reply["model_library_format_path"]
            return ServerInfo(
                platform_name=str(reply["platform_name"]),
                is_template=bool(reply["is_template"]),
                model_library_format_path=self.folder / path if path and not reply["is_template"] else None,
                project_options=read_project_options(reply["project_options"]),
            )
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise self._broken("server_info_query", "the answer is not as the protocol wants it", error) from error

    def _with_options(self, method: str, params: dict[str, Any], limit: float) -> Any:
        options = option_values(self._process.where, method, self.info.project_options, self._given)
        return self._call(method, {**params, "options": options}, limit)

    def _call(self, method: str, params: dict[str, Any], limit: float) -> Any:
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": self._next}
        self._next += 1
        reply = self._process.exchange(request, limit)
        if "error" in reply:
            raise error_from("" if self.is_ours else f"{self._process.where}: ", method, reply["error"])
        return reply["result"]

    def _broken(self, method: str, words: str, error: Exception) -> UaccelError:
        return ProjectApiError(f"{self._process.where}: {method}: {words} ({error!r})")
