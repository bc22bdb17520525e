"""Build firmware and run it on a board: its outputs, what it took, and what its layers gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from uaccel.bench import find_port, flash, hold_if_known
from uaccel.board import Board
from uaccel.cache import file_digest
from uaccel.cycles.timing import Timing
from uaccel.project.devices import project_devices
from uaccel.project.footprint import Footprint
from uaccel.running.counted import CoreCycles, core_cycles, with_core_cycles
from uaccel.running.estimated import (
    FIRST_INFERENCE,
    CyclesEstimated,
    inference_cycles,
    layer_cycles,
    readings_of_feeding,
    readings_of_layers,
    watched,
)
from uaccel.running.firmware import Firmware
from uaccel.running.making import Source
from uaccel.running.told import Told
from uaccel.session.batch import BatchRun, run_batch
from uaccel.session.counting import Blocks
from uaccel.session.description import Identity
from uaccel.session.link import Timeouts
from uaccel.session.ports import require_port
from uaccel.session.profile import NOT_SHOWN, layer_times, layers_of, require_layers
from uaccel.session.qemu import emulated
from uaccel.session.records import LayerTime
from uaccel.session.session import LogLine, Session
from uaccel.session.simulated import SIMULATED_TIMEOUTS, SimulatedTransport, rtl_run

Array = NDArray[Any]
Progress = Callable[[str], None]
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
    core: CoreCycles | None = None
    """Of one inference, on a board that tells its core's own count."""
    firmware: str = ""
    """SHA-256 of what ran: of the program, or of the ELF file."""

    @property
    def outputs(self) -> list[list[Array]]:
        """Of every sample, those of verification last."""
        return self.run.outputs + (self.extra.outputs if self.extra is not None else [])


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
    firmware: Firmware,
    board: Board,
    samples: list[list[Array]],
    maker: Source,
    progress: Progress,
    *,
    looks: Looks | None = None,
    port: str = "",
    flashes: bool = True,
    count: Callable[[int, int], None] = lambda done, total: None,
    on_log: Callable[[LogLine], None] | None = None,
) -> Measured:
    """Run firmware that ``maker`` builds, finds or was brought, once for each sample; ``count`` is told how many are
    done, ``on_log`` what the device's log says.

    A second build, which calls an observer after every layer, tells what layers take and give, where that is asked for
    or instructions can be counted. With ``port`` the board is one at a line; its firmware is written to it where the
    board file says how, but not without ``flashes``: then it must run there already.
    """
    bench = Bench(firmware, board, maker, progress, port, flashes)
    looks = looks or Looks()
    with hold_if_known(bench.line), closing(maker):
        bench.build()
        return bench.run(samples, looks, Told(len(samples) + len(looks.extra), progress, count), on_log)


class Bench:
    """One board, and the firmware of one compiled model."""

    def __init__(
        self, firmware: Firmware, board: Board, maker: Source, progress: Progress, port: str, flashes: bool
    ) -> None:
        self.firmware = firmware
        self.board = board
        self.maker = maker
        self.progress = progress
        self.line = find_port(board, port) if port or board.runs[0].kind == "serial" else ""
        self.flashes = flashes and bool(self.line) and board.flash is not None
        self.exchanges = self.flashes or not self.line
        """Whether other firmware can be run just to look into it."""
        self.timing = Timing.of(board)
        self.feeding = readings_of_feeding(firmware.fed)

    def build(self) -> None:
        if self.line:
            require_port(self.line, getattr(self.board.console, "baud", DEFAULT_BAUD))
        self.built = self.maker.firmware()

    def run(
        self, samples: list[list[Array]], looks: Looks, told: Told, on_log: Callable[[LogLine], None] | None
    ) -> Measured:
        every = [*samples, *looks.extra]
        seen, cycles, core = _Seen(), None, None
        marks = self.feeding + FIRST_INFERENCE
        with watched(marks) as blocks, self.session(self.built, on_log=on_log, blocks=blocks) as session:
            if looks.profile and not self.exchanges:
                require_layers(session)
            told.begin()
            run = run_batch(session, samples, sequence=looks.sequence, count=told.done)
            more = None
            if looks.extra:
                more = run_batch(session, looks.extra, count=partial(told.done, before=len(samples)))
            if not self.line and run.instructions is not None:
                cycles = inference_cycles(self.timing, self.built, blocks, run.instructions)
                core = core_cycles(self.board, run.first_seconds, blocks)
            if not self.exchanges and session.model.observable:
                seen = _look(session, every, looks)
        if self.exchanges and (looks.profile or looks.read or run.instructions is not None):
            seen = self.look_inside(every, looks, cycles)
        unread = NOT_SHOWN if looks.read and not seen.computed else ""
        assert self.maker.footprint is not None  # build() came first
        taken, ran = self.maker.footprint, file_digest(self.built)
        return Measured(every, run, taken, seen.layers, more, seen.computed, unread, cycles, core, ran)

    def look_inside(self, samples: list[list[Array]], looks: Looks, cycles: CyclesEstimated | None) -> _Seen:
        """By firmware with a hook after every layer."""
        observed = self.maker.firmware(observe=True)
        self.progress("read the layers" if looks.read else "profile the layers")
        outputs, fed = self.firmware.layers, self.firmware.fed
        marks = self.feeding + readings_of_layers(outputs)
        with watched(marks) as blocks, self.session(observed, blocks=blocks) as session:
            seen = _look(session, samples, replace(looks, profile=True))
            seen = replace(seen, layers=with_core_cycles(self.board, blocks, seen.layers, outputs, fed))
            if cycles is not None and cycles.total is not None:
                layers = layer_cycles(self.timing, observed, blocks, seen.layers, outputs, fed)
                return replace(seen, layers=layers)
        return seen

    def session(self, firmware: Path, **options: Any) -> Session:
        if self.flashes:
            self.progress("flash")
            flash(self.board, firmware, self.line)
        return connect(self.board, firmware, self.firmware.identity, self.line, progress=self.progress, **options)


@dataclass(frozen=True)
class _Seen:
    """What layers take, and what those that are wanted gave for each sample."""

    layers: list[LayerTime] = field(default_factory=list)
    computed: list[dict[tuple[int, int], Array]] = field(default_factory=list)


def _look(session: Session, samples: list[list[Array]], looks: Looks) -> _Seen:
    """Into a sequence at its first frame."""
    layers = layer_times(session, samples[0]) if looks.profile else []
    looked_at = samples[:1] if looks.sequence else samples
    return _Seen(layers, [layers_of(session, sample, looks.read) for sample in looked_at] if looks.read else [])


def connect(
    board: Board,
    firmware: Path,
    expect: Identity,
    port: str,
    timeouts: Timeouts | None = None,
    blocks: Blocks | None = None,
    progress: Progress = lambda _step: None,
    **options: Any,
) -> Session:
    """A session with the firmware: a process, an emulated board, a simulated one, or what is at the other end of
    ``port``.

    ``blocks``: where an emulated board tells which instructions it executed.

    ``options`` as :class:`Session` takes them.
    """
    kind = "serial" if port else board.runs[0].kind
    simulated = None if port else rtl_run(board)
    timeouts = timeouts or (HOST_TIMEOUTS if simulated is None else SIMULATED_TIMEOUTS)
    if kind == "serial":
        line = find_port(board, port)
        baud = getattr(board.console, "baud", DEFAULT_BAUD)
        return Session.open(line, baud=baud, expect=expect, timeouts=timeouts, **options)
    if kind == "host":
        return Session.start([str(firmware)], expect=expect, timeouts=timeouts, **options)
    if simulated is not None:
        core = SimulatedTransport(board, simulated, firmware, blocks=blocks, progress=progress)
        return Session(core, expect=expect, timeouts=timeouts, **options)
    board_line = emulated(board, firmware, devices=project_devices(firmware.parent.parent), blocks=blocks)
    return Session(board_line, expect=expect, timeouts=timeouts, **options)
