"""A template of a third party, in the manner of microTVM's: its own way to build, its own options, its own faults."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tarfile
from typing import Any

import server  # type: ignore[import-not-found]

HERE = pathlib.Path(__file__).parent
ARCHIVE = HERE / "src" / "model" / "model.tar"
IS_TEMPLATE = not ARCHIVE.exists()
BUILD = HERE / "build"
OPTIONS = [
    server.option(
        "project_type",
        choices=("session", "nothing"),
        required=["generate_project"],
        type="str",
        help="Type of project to generate.",
    ),
    server.option("verbose", optional=["build"], type="bool", help="Run build with verbose output."),
    server.option("compiler", optional=["build"], default="cc", type="str", help="The compiler."),
    server.option("waits", optional=["open_transport"], type="bool", default=False, help="Read as pyserial does."),
    server.option("retries", optional=["open_transport"], type="int", default=3, help="Of no meaning."),
]


class Handler:
    def __init__(self) -> None:
        self._process: Any = None
        self._waits = False

    def server_info_query(self, tvm_version: str) -> Any:
        path = "" if IS_TEMPLATE else ARCHIVE
        return server.ServerInfo("third party", IS_TEMPLATE, path, OPTIONS)

    def generate_project(
        self, archive: pathlib.Path, crt: pathlib.Path, project: pathlib.Path, options: dict[str, Any]
    ) -> None:
        if options["project_type"] != "session":
            raise ValueError("there is no project of type " + options["project_type"])
        print("generating", project)
        project.mkdir()
        (project / "src" / "model").mkdir(parents=True)
        for file in HERE.iterdir():
            if file.is_file():
                shutil.copy2(file, project)
        for part in ("include", "runtime", "ports"):
            shutil.copytree(crt / part, project / "crt" / part)
        with tarfile.open(archive, "r:") as tar:
            tar.extractall(project / "src")
        shutil.copy2(archive, project / "src" / "model")

    def build(self, options: dict[str, Any]) -> None:
        BUILD.mkdir()
        crt, model = HERE / "crt", HERE / "src"
        sources = [
            *(model / "codegen" / "host" / "src").glob("*.c"),
            *(model / "templates").glob("*.c"),
            *(file for file in (crt / "runtime").glob("*.c") if file.name != "uaccel_main.c"),
            *(crt / "ports" / "host").glob("*.c"),
        ]
        includes = [crt / "include", crt / "runtime", model / "codegen" / "host" / "include"]
        command = [options["compiler"], "-O1", "-o", str(BUILD / "app"), *map(str, sources)]
        command += [*(f"-I{folder}" for folder in includes), "-lm", "-lpthread"]
        subprocess.check_call(command, cwd=BUILD)

    def flash(self, options: dict[str, Any]) -> None:
        print("nothing to flash")

    def open_transport(self, options: dict[str, Any]) -> Any:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([str(BUILD / "app")], stdin=pipe, stdout=pipe, bufsize=0)
        for end in (self._process.stdin, self._process.stdout):
            os.set_blocking(end.fileno(), False)
        self._waits = options["waits"]
        return server.TransportTimeouts(0, 0, 0)

    def close_transport(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def read_transport(self, n: int, timeout_sec: float | None) -> bytes:
        if self._process is None:
            raise server.TransportClosedError
        read = server.read_all_with_timeout if self._waits else server.read_with_timeout
        data: bytes = read(self._process.stdout.fileno(), n, timeout_sec)
        return data

    def write_transport(self, data: bytes, timeout_sec: float | None) -> None:
        if self._process is None:
            raise server.TransportClosedError
        server.write_with_timeout(self._process.stdin.fileno(), data, timeout_sec)


if __name__ == "__main__":
    server.main(Handler())
