"""The client of a Project API server: uaccel's own, or any that speaks microTVM's protocol."""

from __future__ import annotations

import base64
import importlib.metadata
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from uaccel.errors import UaccelError
from uaccel.project.api_errors import ProjectApiError, error_from
from uaccel.project.api_options import OptionValue, ProjectOption, option_values, read_project_options
from uaccel.project.api_process import ServerProcess

PROTOCOL_VERSION: Final = 1
UNKNOWN_TVM: Final = "0.27.0"
ARCHIVE_NAME: Final = "model.tar"
"""Servers of microTVM rely on the name that TVM gave to its archives."""
OUR_PLATFORM: Final = "uaccel"
"""What our own server calls itself; its messages need no word about whose they are."""


@dataclass(frozen=True)
class Limits:
    """Seconds that the server has for each call; ``slack`` comes on top of a transport call's own timeout."""

    query: float = 120.0
    """Long, since a launcher may have to install something first."""
    generate: float = 120.0
    build: float = 1800.0
    flash: float = 600.0
    open: float = 60.0
    close: float = 30.0
    slack: float = 30.0


@dataclass(frozen=True)
class ServerInfo:
    """What a server says of itself and its folder."""

    platform_name: str
    is_template: bool
    model_library_format_path: Path | None
    project_options: tuple[ProjectOption, ...]


class ProjectServer:
    """A running server; a context manager. Every call ends, within its limit, with a result or an exception.

    ``options``: by name, for all calls; each is sent what it takes. What is not given is sent with its default, as
    servers of microTVM expect. ``show`` and ``debug``: as :class:`ServerProcess` has them.
    """

    def __init__(
        self,
        folder: Path,
        options: Mapping[str, OptionValue] | None = None,
        *,
        limits: Limits | None = None,
        show: bool = False,
        debug: bool = False,
    ) -> None:
        self.folder = folder
        """The template or the project."""
        self._limits = limits or Limits()
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Of the server's process."""
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

    def generate_project(self, archive: Path, project: Path, runtime: Path) -> None:
        """``runtime``: the C sources that every project needs."""
        if not self.info.is_template:
            raise ProjectApiError(f"{self.folder} is a project already; wanted a template")
        if self.is_ours or archive.name == ARCHIVE_NAME:
            self._generate(archive, project, runtime)
            return
        with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
            copy = Path(temporary) / ARCHIVE_NAME
            shutil.copyfile(archive, copy)
            self._generate(copy, project, runtime)

    def _generate(self, archive: Path, project: Path, runtime: Path) -> None:
        paths = {"model_library_format_path": archive, "standalone_crt_dir": runtime, "project_dir": project}
        params = {name: str(path.resolve()) for name, path in paths.items()}
        self._with_options("generate_project", params, self._limits.generate)

    def build(self) -> None:
        self.require_project("build")
        self._with_options("build", {}, self._limits.build)

    def flash(self) -> None:
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
        """From one to ``count`` bytes; :class:`~uaccel.project.api_errors.IoTimeoutError` where there come none."""
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
        """There is no firmware in a template."""
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
