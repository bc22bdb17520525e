"""Runs the firmware of a project, of any template, through its Project API server.

A project of uaccel's own template says what its board is, so that it is built, emulated and counted like a model that
is run directly. A project of another template offers its server only: firmware runs as it is.
"""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from uaccel.bench import port_of_project
from uaccel.build.archive_reader import project_devices, read_member, read_metadata, read_model
from uaccel.build.board_json import read_board_json
from uaccel.build.programs import find_command
from uaccel.build.project import Footprint, firmware_of, footprint, require_tools
from uaccel.build.project_api import ProjectServer, port_from_here
from uaccel.errors import UaccelError
from uaccel.report.archived import told_of_archive
from uaccel.runner.compare import Verdict
from uaccel.runner.execute import Bench, OnLog, RunResult
from uaccel.runner.firmware import Firmware
from uaccel.runner.options import ProjectRunOptions
from uaccel.runner.perform import Performed, Place, measure, performed
from uaccel.runner.prepare import Prepared
from uaccel.runner.request import Steps
from uaccel.session import monitor
from uaccel.session.connect import BITS_PER_BYTE, RTT, ProjectTransport, open_port, ram_words
from uaccel.session.device_models import DeviceOptions, Ram, device_options
from uaccel.session.link import Timeouts
from uaccel.session.qemu import Blocks, counted_per_second, counting_options, through_rings
from uaccel.session.session import Session
from uaccel.session.simulated import SIMULATED_TIMEOUTS
from uaccel.util.files import FIRST_VALUES
from uaccel.util.option import words_of
from uaccel.util.text import BENCHMARK_HEADER

TIMEOUTS: Final = Timeouts(run=600)


def perform_project(
    folder: Path, wishes: ProjectRunOptions, step: Steps, *, board: str | None = None, command: str = ""
) -> Performed:
    """Runs a project's firmware, and firmware that shows its layers if those are wanted and can be loaded.

    ``board``, if given, must be the project's. A project of uaccel's own template is built before it runs; with a port
    it is on a board there already. ``command`` is what a user types for the same run.
    """
    port = wishes.port
    with monitor.recorded(True) as first_jobs, ProjectServer(folder, wishes.options) as server:
        server.require_project("run")
        if port:
            server.require("port", port_from_here(port))
        bench = ProjectBench(server, folder, port, step)
        bench.require_board(board)
        if wishes.sequence and not bench.firmware.has_state:
            raise UaccelError("--sequence is for models that keep a state between runs; leave it away")
        told = told_of_archive(bench.firmware.metadata, partial(read_member, bench.archive))
        prepared = Prepared(bench.firmware, told)
        measured = measure(bench, wishes, step, first_jobs, alone=True)
    verdict = _verdict(bench, measured, wishes, step) if wishes.verifies else None
    words = shlex.join(["uaccel", "run", str(folder), *words_of(wishes)])
    place = Place(bench.name, bench.target, bool(port) or bench.at_line, command or words)
    return performed(prepared, wishes, measured, place, verdict)


def _verdict(bench: ProjectBench, measured: RunResult, wishes: ProjectRunOptions, step: Steps) -> Verdict:
    """Judges a run by the model that the archive holds, which is imported for that."""
    from uaccel.frontend import import_model
    from uaccel.runner.compiled import ArchiveSubject
    from uaccel.runner.verdict import verdict_on
    from uaccel.runner.verify import Reference

    step("execute the exact meaning and compare")
    archive, metadata = bench.archive, bench.firmware.metadata
    file, bound = read_model(archive, metadata), metadata.bound
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        path, first = Path(folder) / f"model{file.suffix}", Path(folder) / "first.npz"
        path.write_bytes(file.data)
        if bound:
            first.write_bytes(read_member(archive, FIRST_VALUES.format(metadata.model)) or b"")
        model = import_model(path, state=bound, state_from=first if bound else None)
        subject = ArchiveSubject(Reference(model), metadata)
        verdict = verdict_on(subject, path, measured, every_layer=wishes.every_layer)
    return replace(verdict, report=verdict.report | {"seed": wishes.told_seed, "outside": None})


class ProjectBench(Bench):
    """Runs a project's firmware; one of our own template is built when needed and describes its board."""

    def __init__(self, server: ProjectServer, folder: Path, port: str, progress: Steps) -> None:
        self._server = server
        self._folder = folder
        self.progress = progress
        own = read_board_json(folder) if server.is_ours else None
        self.name = own.name if own else None
        self.target = own.target if own else None
        self._run_as = run = _chosen_run(server, own.runs) if own else None
        self._arguments = server.given("run_arguments")
        self._port = port
        self._can_build = server.is_ours and not port
        kind = run["kind"] if run is not None else None
        self.at_line = kind == "serial"
        self.exchanges = kind not in (None, "serial")  # else only the user can load other firmware
        emulated = kind == "qemu" and self._arguments is None
        self.timing = own.timing if own and emulated else None
        self._timeouts = SIMULATED_TIMEOUTS if kind == "rtl" else TIMEOUTS
        self.line = port if run is None else (port_of_project(folder, port) or "") if self.at_line else ""
        self.archive = _archive(server)
        self.firmware = Firmware.of(read_metadata(self.archive), "", dict)

    def require_board(self, board: str | None) -> None:
        """Raises an error if the project is for another board, or its firmware serves no sessions."""
        if (self._folder / "board" / BENCHMARK_HEADER).is_file():
            raise UaccelError(
                f"{self._folder} speaks MLPerf Tiny's protocol and serves no session; "
                "make another project without --protocol, or let the benchmark's runner drive it"
            )
        if board is not None and self.name not in (None, board):
            raise UaccelError(f"{self._folder} is for board {self.name}, not {board}; leave --board away")

    def session(self, *, observe: bool = False, blocks: Blocks | None = None, on_log: OnLog | None = None) -> Session:
        rate, counted, devices, run = None, None, DeviceOptions(), self._run_as
        if run is not None:
            self._server.require("observe", observe)
            if self._can_build:
                self.progress(f"build the firmware{' with a hook after every layer' if observe else ''}")
                require_tools(self._folder)
                self._server.build()
            if run["kind"] == "qemu":
                qemu = run["command"][0]
                devices = self._devices(qemu, run.get("ram"), observe)
                words = [*self._qemu_words(qemu, observe, blocks), *devices.words]
                self._server.require("run_arguments", shlex.join(words))
                counted = counted_per_second(words)
            rate = run["baud"] / BITS_PER_BYTE if run["kind"] == "serial" else None
        areas = run.get("rtt") if run is not None else None
        port = self._ring_port() if areas else ""
        if areas and port:
            line = open_port(f"{port}?{ram_words(areas)}")
        else:
            line = ProjectTransport(
                self._server, bytes_per_second=rate, instructions_per_second=counted, on_close=devices.remove
            )
            line = through_rings(line, areas) if areas else line
        return Session(line, expect=self.firmware.identity, timeouts=self._timeouts, on_log=on_log)

    def _ring_port(self) -> str:
        """Returns the port of a debugger or probe, which the project's server does not know; empty if QEMU is one."""
        port = self._port or (self._run_as or {}).get("port") or ""
        return str(port) if port.startswith(RTT) else ""

    @property
    def footprint(self) -> Footprint | None:
        build = self._build_folder(observe=False)
        if not self._server.is_ours or not build.is_dir():
            return None
        return footprint(self._folder, build, self.firmware.name, arena=self.firmware.arena, io=self.firmware.io)

    def _build_folder(self, *, observe: bool) -> Path:
        return self._folder / ("build-observe" if observe else "build")

    def _qemu_words(self, qemu: str, observe: bool, blocks: Blocks | None) -> list[str]:
        """Returns the user's arguments, else those that make QEMU count instructions."""
        if self._arguments is not None:
            return shlex.split(str(self._arguments))
        found = find_command(qemu, "running emulated boards")
        return counting_options("auto", found, self.built(observe=observe), blocks)

    def _devices(self, qemu: str, ram: dict[str, int] | None, observe: bool) -> DeviceOptions:
        """Returns what puts models of the accelerators' devices behind the emulated board."""
        models = project_devices(self._folder)
        if not models or ram is None:
            return DeviceOptions()
        found = find_command(qemu, "running emulated boards")
        return device_options(models, found, Ram(**ram), self.built(observe=observe))

    def built(self, *, observe: bool = False) -> Path:
        return firmware_of(self._build_folder(observe=observe)).resolve()


def _chosen_run(server: ProjectServer, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the way in which the server will run the firmware: the one that was asked for, else the first."""
    kind = server.given("run") or ("serial" if server.given("port") else None)
    return next((run for run in runs if kind in (None, run["kind"])), runs[0])


def _archive(server: ProjectServer) -> Path:
    path = server.info.model_library_format_path
    if path is None:
        raise UaccelError(f"{server.folder} has no archive; wanted a project, as 'uaccel create' makes")
    return path
