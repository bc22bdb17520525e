"""Runs the firmware of a project, of any template, through its Project API server.

A project of uaccel's own template says what its board is, so that it is built, emulated and counted like a model that
is run directly. Of another template only what its server offers is used: firmware runs as it is.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from uaccel.bench import hold_if_known, port_of_project
from uaccel.build.archive_reader import Metadata, project_devices, read_metadata, read_model
from uaccel.build.board_json import read_board_json
from uaccel.build.programs import find_command
from uaccel.build.project import Footprint, firmware_of, footprint, require_tools
from uaccel.build.project_api import ProjectServer, port_from_here
from uaccel.cycles.estimate import Timing
from uaccel.errors import UaccelError
from uaccel.model import Array, ImportedModel
from uaccel.runner.cycles import (
    FIRST_INFERENCE,
    CyclesEstimated,
    count_blocks,
    inference_cycles,
    layer_cycles,
    readings_of_layers,
)
from uaccel.runner.options import ProjectRunOptions
from uaccel.runner.request import BatchProgress, Steps
from uaccel.session.batch import NOT_SHOWN, BatchRun, layer_times, layers_of, require_layers, run_batch
from uaccel.session.connect import BITS_PER_BYTE, RTT, ProjectTransport, open_port, ram_words
from uaccel.session.description import Identity, Kinds, LayerTime, ModelInfo
from uaccel.session.device_models import DeviceOptions, Ram, device_options
from uaccel.session.link import Timeouts
from uaccel.session.qemu import Blocks, counted_per_second, counting_options, through_rings
from uaccel.session.session import LogLine, Session
from uaccel.session.simulated import SIMULATED_TIMEOUTS
from uaccel.util.text import BENCHMARK_HEADER, round_up

TIMEOUTS: Final = Timeouts(run=600)
IO_ALIGNMENT: Final = 16
Samples = list[list[Array]]


@dataclass(frozen=True)
class ProjectRun:
    """Holds what a project's firmware gave; ``board`` and ``footprint`` are None for another template than our own."""

    board: str | None
    archive: Path
    metadata: Metadata
    model: ModelInfo
    samples: Samples
    run: BatchRun
    layers: list[LayerTime]
    footprint: Footprint | None
    extra: BatchRun | None = None  # The run of samples that only verification wanted, the last of ``samples``.
    # What layers gave for each sample, by (layer, output), where it was asked for.
    computed: list[dict[tuple[int, int], Array]] = field(default_factory=list)
    real: bool = False  # Whether it ran on a board at a line, as far as that is known.
    unread: str = ""  # Why ``computed`` is missing though it was asked for.
    cycles: CyclesEstimated | None = None

    @property
    def outputs(self) -> Samples:
        """The outputs of every sample."""
        return self.run.outputs + (self.extra.outputs if self.extra is not None else [])

    @contextmanager
    def meaning(self) -> Iterator[tuple[ImportedModel, Path]]:
        """Imports the model that the archive holds, and gives it with its file until the end of the block."""
        from uaccel.frontend import import_model

        file = read_model(self.archive, self.metadata)
        with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
            path = Path(folder) / f"model{file.suffix}"
            path.write_bytes(file.data)
            yield import_model(path), path


def run_project(folder: Path, wishes: ProjectRunOptions, step: Steps, *, board: str | None = None) -> ProjectRun:
    """Runs a project's firmware, and firmware that shows its layers if those are wanted and can be loaded.

    ``board``, if given, must be the project's. A project of uaccel's own template is built before it runs; with a port
    it is on a board there already.
    """
    port = wishes.port
    with ProjectServer(folder, wishes.options) as server:
        server.require_project("run")
        if port:
            server.require("port", port_from_here(port))
        project = _Project(server, folder, port, step)
        project.require_board(board)
        read = _layers_to_read(project.metadata, wishes)
        done = _first_session(project, wishes, read, step)
        seen = done.seen
        if not project.is_there and (wishes.profiles or read or done.run.instructions is not None):
            step("read the layers" if read else "profile the layers")
            seen = _seen_inside(project, done.model, _shown(done.samples, wishes), read, seen.cycles)
        return ProjectRun(
            project.board,
            project.archive,
            project.metadata,
            done.model,
            done.samples,
            done.run,
            seen.layers,
            project.footprint(),
            done.extra,
            seen.computed,
            bool(port) or project.at_line,
            NOT_SHOWN if read and not seen.computed else "",
            seen.cycles,
        )


def _layers_to_read(metadata: Metadata, wishes: ProjectRunOptions) -> Sequence[int]:
    """Returns the layers whose outputs verification wants to see."""
    from uaccel.runner.compiled import ArchiveLayers

    return ArchiveLayers.read(metadata).to_read(every_layer=wishes.every_layer) if wishes.verifies else ()


def _shown(samples: Samples, wishes: ProjectRunOptions) -> Samples:
    """Returns the samples for which layers are read: of a sequence only the first."""
    return samples[:1] if wishes.sequence else samples


@dataclass(frozen=True)
class _Seen:
    """Holds what layers took and gave, and the cycles of an inference."""

    layers: list[LayerTime] = field(default_factory=list)
    computed: list[dict[tuple[int, int], Array]] = field(default_factory=list)
    cycles: CyclesEstimated | None = None


@dataclass(frozen=True)
class _Done:
    """Holds what the firmware gave that its user runs; ``samples``: those of verification last."""

    model: ModelInfo
    samples: Samples
    run: BatchRun
    extra: BatchRun | None
    seen: _Seen


def _first_session(project: _Project, wishes: ProjectRunOptions, read: Sequence[int], step: Steps) -> _Done:
    """Runs the firmware as it is, and reads its layers too if no other firmware can be run in its place."""
    with (
        hold_if_known(project.line()),
        count_blocks(FIRST_INFERENCE) as blocks,
        project.session(observe=False, on_log=step.log, blocks=blocks) as session,
    ):
        if wishes.profiles and project.is_there:
            require_layers(session)
        if wishes.sequence and not session.model.has_state:
            raise UaccelError("--sequence is for models that keep a state between runs; leave it away")
        samples, further = wishes.samples(session.model.inputs), wishes.more(session.model.inputs)
        told = BatchProgress(len(samples) + len(further), step, step.count)
        run, extra = _batches(session, samples, further, told, wishes.sequence)
        seen, every = _Seen(), [*samples, *further]
        if wishes.profiles and project.is_there:
            seen = replace(seen, layers=layer_times(session, samples[0]))
        elif project.timing is not None and run.instructions is not None:
            elf = project.firmware(observe=False)
            seen = replace(seen, cycles=inference_cycles(project.timing, elf, blocks, run.instructions))
        if read and project.is_there and session.model.observable:
            seen = replace(seen, computed=[layers_of(session, sample, read) for sample in _shown(every, wishes)])
        return _Done(session.model, every, run, extra, seen)


def _batches(
    session: Session, samples: Samples, further: Samples, told: BatchProgress, sequence: bool
) -> tuple[BatchRun, BatchRun | None]:
    """Runs the user's samples, and then those that only verification wants."""
    told.begin()
    run = run_batch(session, samples, sequence=sequence, count=told.done)
    if not further:
        return run, None
    return run, run_batch(session, further, count=partial(told.done, before=len(samples)))


def _seen_inside(
    project: _Project, model: ModelInfo, shown: Samples, wanted: Sequence[int], cycles: CyclesEstimated | None
) -> _Seen:
    """Runs firmware with a hook after every layer, for costs and outputs of layers."""
    outputs = [len(layer.outputs) for layer in model.layers]
    with count_blocks(readings_of_layers(outputs)) as blocks, project.session(observe=True, blocks=blocks) as session:
        layers = layer_times(session, shown[0])
        computed = [layers_of(session, sample, wanted) for sample in shown] if wanted else []
        if project.timing is not None and cycles is not None and cycles.total is not None:
            layers = layer_cycles(project.timing, project.firmware(observe=True), blocks, layers, outputs)
    return _Seen(layers, computed, cycles)


class _Project:
    """Knows what is special about a project of our own template: it is built when needed and describes its board."""

    def __init__(self, server: ProjectServer, folder: Path, port: str, progress: Callable[[str], None]) -> None:
        self._server = server
        self._folder = folder
        self._progress = progress
        own = read_board_json(folder) if server.is_ours else None
        self.board = own.name if own else None
        self._timing = own.timing if own else None
        self._run = _chosen_run(server, own.runs) if own else None
        self._arguments = server.given("run_arguments")
        self._port = port
        self._can_build = server.is_ours and not port
        # Whether only the user can exchange the firmware that runs for another.
        self.is_there = self._run is None or self._run["kind"] == "serial"
        self.at_line = self._run is not None and self._run["kind"] == "serial"
        self.archive = _archive(server)
        self.metadata = read_metadata(self.archive)

    def require_board(self, board: str | None) -> None:
        """Raises an error if the project is for another board, or its firmware serves no sessions."""
        if (self._folder / "board" / BENCHMARK_HEADER).is_file():
            raise UaccelError(
                f"{self._folder} speaks MLPerf Tiny's protocol and serves no session; "
                "make another project without --protocol, or let the benchmark's runner drive it"
            )
        if board is not None and self.board not in (None, board):
            raise UaccelError(f"{self._folder} is for board {self.board}, not {board}; leave --board away")

    @property
    def timing(self) -> Timing | None:
        """The timings to estimate by, of an emulated board; None if the user's own arguments start QEMU."""
        emulated = self._run is not None and self._run["kind"] == "qemu" and self._arguments is None
        return self._timing if emulated else None

    @property
    def _timeouts(self) -> Timeouts:
        simulated = self._run is not None and self._run["kind"] == "rtl"
        return SIMULATED_TIMEOUTS if simulated else TIMEOUTS

    def session(self, *, observe: bool, blocks: Blocks, on_log: Callable[[LogLine], None] | None = None) -> Session:
        rate, counted, devices = None, None, DeviceOptions()
        if self._run is not None:
            self._server.require("observe", observe)
            if self._can_build:
                self._build(observe)
            if self._run["kind"] == "qemu":
                qemu = self._run["command"][0]
                devices = self._devices(qemu, self._run.get("ram"), observe)
                words = [*self._qemu_words(qemu, observe, blocks), *devices.words]
                self._server.require("run_arguments", shlex.join(words))
                counted = counted_per_second(words)
            rate = self._run["baud"] / BITS_PER_BYTE if self._run["kind"] == "serial" else None
        areas = self._run.get("rtt") if self._run is not None else None
        port = self._ring_port() if areas else ""
        if areas and port:
            line = open_port(f"{port}?{ram_words(areas)}")
        else:
            line = ProjectTransport(
                self._server, bytes_per_second=rate, instructions_per_second=counted, on_close=devices.remove
            )
            line = through_rings(line, areas) if areas else line
        return Session(line, expect=_identity(self.metadata), timeouts=self._timeouts, on_log=on_log)

    def _ring_port(self) -> str:
        """Returns the port of a debugger or probe, which the project's server does not know; empty if QEMU is one."""
        assert self._run is not None
        port = self._port or self._run.get("port") or ""
        return str(port) if port.startswith(RTT) else ""

    def line(self) -> str | None:
        """Returns the serial port, as far as it is known; None for firmware that needs no board of its own."""
        if self._run is None:
            return self._port or None
        return port_of_project(self._folder, self._port) if self._run["kind"] == "serial" else None

    def footprint(self) -> Footprint | None:
        build = self._build_folder(observe=False)
        if not self._server.is_ours or not build.is_dir():
            return None
        main = self.metadata.main
        inside = self.metadata.workspace_io
        tensors = [] if inside else [*main["inputs"].values(), *main["outputs"].values()]
        devices = [engine for engine in self.metadata.at("uaccel", "accelerators") if engine.get("device", True)]
        alignment = max([IO_ALIGNMENT, *(engine.get("alignment", 1) for engine in devices)])
        io = sum(round_up(tensor["size"], alignment) for tensor in tensors)
        return footprint(self._folder, build, self.metadata.model, arena=main["workspace_size_bytes"], io=io)

    def _build(self, observe: bool) -> None:
        self._progress(f"build the firmware{' with a hook after every layer' if observe else ''}")
        require_tools(self._folder)
        self._server.build()

    def _build_folder(self, *, observe: bool) -> Path:
        return self._folder / ("build-observe" if observe else "build")

    def _qemu_words(self, qemu: str, observe: bool, blocks: Blocks) -> list[str]:
        """Returns the user's arguments, else those that make QEMU count instructions."""
        if self._arguments is not None:
            return shlex.split(str(self._arguments))
        found = find_command(qemu, "running emulated boards")
        return counting_options("auto", found, self.firmware(observe=observe), blocks)

    def _devices(self, qemu: str, ram: dict[str, int] | None, observe: bool) -> DeviceOptions:
        """Returns what puts models of the accelerators' devices behind the emulated board."""
        models = project_devices(self._folder)
        if not models or ram is None:
            return DeviceOptions()
        found = find_command(qemu, "running emulated boards")
        return device_options(models, found, Ram(**ram), self.firmware(observe=observe))

    def firmware(self, *, observe: bool) -> Path:
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


def _identity(metadata: Metadata) -> Identity:
    """Returns what firmware that was built from the archive reports of itself."""
    model, build = metadata.at("uaccel", "model", "sha256"), metadata.at("uaccel", "build")
    inputs, outputs = (_kinds(metadata.at("uaccel", side).values()) for side in ("inputs", "outputs"))
    layers = tuple(_kinds(layer["outputs"]) for layer in metadata.at("uaccel", "layers"))
    return Identity(bytes.fromhex(model), bytes.fromhex(build), (inputs, outputs, layers))


def _kinds(rows: Iterable[dict[str, Any]]) -> Kinds:
    return tuple((tuple(row["shape"]), row["dtype"]) for row in rows)
