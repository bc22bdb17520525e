"""Compile, build and run a model on a board, and hold the result against its exact meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from uaccel.bench import find_port, flash, hold_if_known
from uaccel.board import Board
from uaccel.cycles.timing import Timing
from uaccel.emit.describe import tensor_memory
from uaccel.lower.program import Value
from uaccel.model import TensorSpec
from uaccel.packagers.archive import archive
from uaccel.pipeline import Compiled, Progress
from uaccel.project.build import build_project, firmware_of
from uaccel.project.create import create_project
from uaccel.project.devices import project_devices
from uaccel.project.footprint import Footprint, footprint
from uaccel.running.estimated import (
    FIRST_INFERENCE,
    CyclesEstimated,
    inference_cycles,
    layer_cycles,
    readings_of_feeding,
    readings_of_layers,
    watched,
)
from uaccel.running.stated import stated
from uaccel.running.told import Told
from uaccel.session.batch import BatchRun, run_batch
from uaccel.session.counting import Blocks
from uaccel.session.description import Identity, Kinds
from uaccel.session.link import Timeouts
from uaccel.session.ports import require_port
from uaccel.session.profile import NOT_SHOWN, layer_times, layers_of, require_layers
from uaccel.session.qemu import QemuTransport
from uaccel.session.records import LayerTime
from uaccel.session.session import LogLine, Session
from uaccel.session.tensors import TensorType

Array = NDArray[Any]
HOST_TIMEOUTS: Final = Timeouts(run=600)
DEFAULT_BAUD: Final = 115200


@dataclass(frozen=True)
class Measured:
    """``samples``: the inputs of every run, those of verification last."""

    samples: list[list[Array]]
    run: BatchRun
    footprint: Footprint
    layers: list[LayerTime]
    extra: BatchRun | None = None
    """Of samples that only verification wanted: figures are those of the user's own."""
    computed: list[dict[tuple[int, int], Array]] = field(default_factory=list)
    """What layers gave for each sample, by (layer, output), where it was asked for."""
    unread: str = ""
    """Why it is missing though it was asked for, in words."""
    cycles: CyclesEstimated | None = None
    """Of one inference, where an emulated board counted its instructions."""

    @property
    def outputs(self) -> list[list[Array]]:
        """Of every sample, those of verification last."""
        return self.run.outputs + (self.extra.outputs if self.extra is not None else [])


def tensor_types(specs: Sequence[TensorSpec]) -> list[TensorType]:
    return [TensorType(spec.name, spec.info.shape, spec.info.dtype) for spec in specs]


def identity(compiled: Compiled) -> Identity:
    """What firmware that was built from this says it is."""
    signature = compiled.model.signature
    layers = tuple(_kinds(layer.outputs) for layer in compiled.program.layers)
    tensors = (_kinds(signature.inputs), _kinds(signature.outputs), layers)
    return Identity(bytes.fromhex(compiled.model.digest), compiled.generated.build, tensors)


def _kinds(values: Iterable[TensorSpec | Value]) -> Kinds:
    return tuple((value.info.shape, value.info.dtype) for value in values)


def archive_of(compiled: Compiled) -> dict[str, bytes]:
    """The files of the model's archive, with what verification must know of its layers."""
    return archive(compiled.generated, {"meanings": stated(compiled), "warnings": compiled.warnings})


@dataclass(frozen=True)
class Looks:
    """What else than outputs is wanted. ``extra`` are samples of verification, which count for no figure; ``read`` are
    the layers whose outputs it wants."""

    extra: Sequence[list[Array]] = ()
    profile: bool = False
    read: Sequence[int] = ()
    sequence: bool = False
    """The samples are frames of one sequence."""


def run_on_board(
    compiled: Compiled,
    board: Board,
    samples: list[list[Array]],
    folder: Path,
    progress: Progress,
    *,
    looks: Looks | None = None,
    port: str = "",
    flashes: bool = True,
    count: Callable[[int, int], None] = lambda done, total: None,
    on_log: Callable[[LogLine], None] | None = None,
) -> Measured:
    """Build the firmware in ``folder`` and run it once for each sample; ``count`` is told how many are done,
    ``on_log`` what the device's log says.

    A second build, which calls an observer after every layer, tells what layers take and give, where that is asked for
    or instructions can be counted. With ``port`` the board is one at a line; its firmware is written to it where the
    board file says how, but not without ``flashes``: then it must run there already.
    """
    bench = _Bench(compiled, board, folder, progress, port, flashes)
    looks = looks or Looks()
    with hold_if_known(bench.line):
        bench.build()
        return bench.run(samples, looks, Told(len(samples) + len(looks.extra), progress, count), on_log)


class _Bench:
    """One board, and the project of one compiled model."""

    def __init__(
        self, compiled: Compiled, board: Board, folder: Path, progress: Progress, port: str, flashes: bool
    ) -> None:
        self.compiled = compiled
        self.board = board
        self.folder = folder
        self.progress = progress
        self.line = find_port(board, port) if port or board.runs[0].kind == "serial" else ""
        self.flashes = flashes and bool(self.line) and board.flash is not None
        self.exchanges = self.flashes or not self.line
        """Whether other firmware can be run just to look into it."""

    def build(self) -> None:
        if self.line:
            require_port(self.line, getattr(self.board.console, "baud", DEFAULT_BAUD))
        self.progress("create the project")
        create_project(archive_of(self.compiled), self.board, self.folder)
        self.progress("build the firmware")
        self.built = build_project(self.folder)

    def run(
        self, samples: list[list[Array]], looks: Looks, told: Told, on_log: Callable[[LogLine], None] | None
    ) -> Measured:
        taken = _measure(self.folder, self.built, self.compiled)
        timing, cycles = Timing.of(self.board), None
        fed = fed_bytes(self.compiled)
        feeding = readings_of_feeding(fed)
        with watched(feeding + FIRST_INFERENCE) as blocks, self.session(self.built, on_log=on_log, blocks=blocks) as session:
            if looks.profile and not self.exchanges:
                require_layers(session)
            told.begin()
            run = run_batch(session, samples, sequence=looks.sequence, count=told.done)
            more = None
            if looks.extra:
                more = run_batch(session, looks.extra, count=partial(told.done, before=len(samples)))
            if not self.line and run.instructions is not None:
                cycles = inference_cycles(timing, firmware_of(self.built), blocks, run.instructions)
            every = [*samples, *looks.extra]
            layers: list[LayerTime] = []
            computed: list[dict[tuple[int, int], Array]] = []
            if not self.exchanges and session.model.observable:
                layers, computed = _look(session, every, looks)
        if self.exchanges and (looks.profile or looks.read or run.instructions is not None):
            self.progress("read the layers" if looks.read else "profile the layers")
            observed = build_project(self.folder, observe=True)
            outputs = [len(layer.outputs) for layer in self.compiled.program.layers]
            with watched(feeding + readings_of_layers(outputs)) as blocks, self.session(observed, blocks=blocks) as session:
                layers, computed = _look(session, every, replace(looks, profile=True))
                if cycles is not None and cycles.total is not None:
                    layers = layer_cycles(timing, firmware_of(observed), blocks, layers, outputs, fed)
        unread = NOT_SHOWN if looks.read and not computed else ""
        return Measured(every, run, taken, layers, more, computed, unread, cycles)

    def session(self, build: Path, **options: Any) -> Session:
        firmware = firmware_of(build)
        if self.flashes:
            self.progress("flash")
            flash(self.board, firmware, self.line)
        return connect(self.board, firmware, identity(self.compiled), self.line, **options)


def _look(
    session: Session, samples: list[list[Array]], looks: Looks
) -> tuple[list[LayerTime], list[dict[tuple[int, int], Array]]]:
    """What layers take, and what those that are wanted give for each sample; of a sequence for its first."""
    layers = layer_times(session, samples[0]) if looks.profile else []
    looked_at = samples[:1] if looks.sequence else samples
    return layers, [layers_of(session, sample, looks.read) for sample in looked_at] if looks.read else []


def connect(
    board: Board,
    firmware: Path,
    expect: Identity,
    port: str,
    timeouts: Timeouts | None = None,
    blocks: Blocks | None = None,
    **options: Any,
) -> Session:
    """A session with the firmware: a process, an emulated board, or what is at the other end of ``port``.

    ``blocks``: where an emulated board tells which instructions it executed.

    ``options`` as :class:`Session` takes them.
    """
    kind = "serial" if port else board.runs[0].kind
    timeouts = timeouts or HOST_TIMEOUTS
    if kind == "serial":
        line = find_port(board, port)
        baud = getattr(board.console, "baud", DEFAULT_BAUD)
        return Session.open(line, baud=baud, expect=expect, timeouts=timeouts, **options)
    if kind == "host":
        return Session.start([str(firmware)], expect=expect, timeouts=timeouts, **options)
    emulated = QemuTransport(board, firmware, devices=project_devices(firmware.parent.parent), blocks=blocks)
    return Session(emulated, expect=expect, timeouts=timeouts, **options)


def fed_bytes(compiled: Compiled) -> int:
    """Of the input that is handed over by rows; 0 where all inputs are whole."""
    return compiled.model.signature.inputs[0].info.size if compiled.options.feed else 0


def _measure(folder: Path, build: Path, compiled: Compiled) -> Footprint:
    signature = compiled.model.signature
    inputs = signature.inputs[1:] if compiled.options.feed else signature.inputs
    io = 0 if compiled.options.workspace_io else tensor_memory((*inputs, *signature.outputs))
    return footprint(folder, build, compiled.program.name, arena=compiled.placement.arena, io=io)
