"""Builds firmware or takes it from the cache, flashes it and runs it on a board."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from numpy.typing import NDArray

from uaccel.bench import find_port, flash, hold_if_known
from uaccel.board import Board
from uaccel.build.archive_reader import FOLDER as DEVICES
from uaccel.build.archive_reader import project_devices
from uaccel.build.built_from import reads_of_build
from uaccel.build.elf import Linked, SizeRow, Sizes
from uaccel.build.project import Footprint, build_project, create_project, firmware_of, footprint, programs_for
from uaccel.cycles.estimate import Timing
from uaccel.errors import UaccelError
from uaccel.runner.cycles import (
    FIRST_INFERENCE,
    CoreCycles,
    CyclesEstimated,
    core_cycles,
    count_blocks,
    inference_cycles,
    layer_cycles,
    readings_of_feeding,
    readings_of_layers,
    with_core_cycles,
)
from uaccel.runner.firmware import Firmware
from uaccel.runner.request import BatchProgress
from uaccel.session.batch import NOT_SHOWN, BatchRun, layer_times, layers_of, require_layers, run_batch
from uaccel.session.connect import require_port
from uaccel.session.description import Identity, LayerTime
from uaccel.session.link import Timeouts
from uaccel.session.qemu import Blocks, emulated
from uaccel.session.session import LogLine, Session
from uaccel.session.simulated import SIMULATED_TIMEOUTS, SimulatedTransport, rtl_run
from uaccel.util.cache import Cache, Entry, Key, file_digest, folder_digest
from uaccel.util.files import data_dir
from uaccel.util.reads import add_to_open, add_true, find_true

# Firmware of an archive for a board, built in a folder or taken from the cache.

KIND: Final = "firmware"
FOOTPRINT: Final = "footprint.json"


class Source(Protocol):
    """Gives firmware to those who run it: built here, from the cache, or brought from elsewhere."""

    footprint: Footprint | None  # That of the firmware without a hook after every layer.

    def firmware(self, *, observe: bool = False) -> Path: ...

    def close(self) -> None: ...


class FirmwareMaker:
    """Builds the firmware of one archive for one board, in at most two forms, or takes it from the cache.

    ``folder`` becomes the project when something must be built. Give no cache for a project that its user keeps: then
    all is built, and everything is in it."""

    def __init__(
        self, firmware: Firmware, board: Board, folder: Path, progress: Callable[[str], None], cache: Cache | None
    ) -> None:
        self._firmware = firmware
        self._board = board
        self._folder = folder
        self._progress = progress
        self._cache = cache
        self._created = False
        self._entries: list[Entry] = []
        self.footprint: Footprint | None = None

    def firmware(self, *, observe: bool = False) -> Path:
        """Returns the program or the ELF file. With ``observe`` its layers can be read."""
        kept = self.kept(observe=observe)
        if kept is not None:
            return kept
        if not self._created:
            self._created = True
            self._progress("create the project")
            create_project(self._firmware.files(), self._board, self._folder)
        self._progress(f"build the firmware{' with a hook after every layer' if observe else ''}")
        count = getattr(self._progress, "count", lambda done, total: None)
        build = build_project(self._folder, observe=observe, count=count, cache=self._cache)
        taken = self._measured(build)
        if not observe:
            self.footprint = taken
        key = self._key(observe) if self._cache is not None else None
        if self._cache is not None and key is not None:
            self._keep(self._cache, key, build, taken)
        return firmware_of(build)

    def kept(self, *, observe: bool = False) -> Path | None:
        """Returns the same from the cache; None if it was not built before."""
        key = self._key(observe) if self._cache is not None else None
        entry = find_true(self._cache, key) if self._cache is not None and key is not None else None
        return None if entry is None else self._from(entry)

    def close(self) -> None:
        """Releases what was taken from the cache, which may be removed from now on."""
        for entry in self._entries:
            entry.close()

    def _from(self, entry: Entry) -> Path:
        self._entries.append(entry)
        build = entry.path("build")
        if self.footprint is None:
            self.footprint = _footprint_of(entry.json(FOOTPRINT))
        made = firmware_of(build)
        made.chmod(0o755)
        return made

    def _measured(self, build: Path) -> Footprint:
        wanted = self._firmware
        return footprint(self._folder, build, wanted.name, arena=wanted.arena, io=wanted.io)

    def _keep(self, cache: Cache, key: Key, build: Path, taken: Footprint) -> None:
        made, reads = firmware_of(build), reads_of_build(build, self._folder)
        add_to_open(reads)
        devices = (self._folder / DEVICES).rglob("*")
        files: dict[str, bytes | Path] = {
            str(path.relative_to(self._folder)): path for path in sorted(devices) if path.is_file()
        }
        files |= {f"build/{made.name}": made, FOOTPRINT: json.dumps(asdict(taken)).encode()}
        entry = add_true(cache, key, files, f"{self._firmware.name} for {self._board.name}", reads)
        if entry is not None:
            self._entries.append(entry)

    def _key(self, observe: bool) -> Key | None:
        """Returns a key of all that firmware is made of; None if a tool is missing: building says what to install."""
        board = self._board
        try:
            return (
                Key(KIND)
                .add("archive", self._firmware.archive)
                .add("board", [board.name, file_digest(board.file)])
                .add("port", [folder_digest(folder) for folder in board.port.sources])
                .add("sources", [folder_digest(data_dir("firmware")), folder_digest(data_dir("project_template"))])
                .add("programs", programs_for(board))
                .add("memory", [self._firmware.arena, self._firmware.io])
                .add("observe", observe)
            )
        except (OSError, UaccelError):
            return None


def _footprint_of(data: dict[str, Any]) -> Footprint:
    """Restores a footprint from what :func:`dataclasses.asdict` made of it."""
    linked = data["linked"]
    if linked is not None:
        linked = Linked(*(tuple(SizeRow(**row) for row in linked[memory]) for memory in ("flash", "ram")))
    return Footprint(**data | {"session": Sizes(**data["session"]), "linked": linked})


# Runs on a board: outputs, what the run took, and what the layers gave.

Array = NDArray[Any]
Progress = Callable[[str], None]
HOST_TIMEOUTS: Final = Timeouts(run=600)
DEFAULT_BAUD: Final = 115200


@dataclass(frozen=True)
class RunResult:
    """Holds what a board gave. ``samples``: the inputs of every run, those of verification last."""

    samples: list[list[Array]]
    run: BatchRun
    footprint: Footprint
    layers: list[LayerTime]
    extra: BatchRun | None = None  # The run of samples that only verification wanted; it counts for no figure.
    # What layers gave for each sample, by (layer, output), where it was asked for.
    computed: list[dict[tuple[int, int], Array]] = field(default_factory=list)
    unread: str = ""  # Why ``computed`` is missing though it was asked for.
    cycles: CyclesEstimated | None = None  # For one inference, where an emulated board counted its instructions.
    core: CoreCycles | None = None  # For one inference, on a board that tells its core's own count.
    firmware: str = ""  # SHA-256 of the program or ELF file that ran.

    @property
    def outputs(self) -> list[list[Array]]:
        """The outputs of every sample, those of verification last."""
        return self.run.outputs + (self.extra.outputs if self.extra is not None else [])


@dataclass(frozen=True)
class Looks:
    """Says what is wanted besides outputs of the user's samples.

    ``extra`` are samples of verification, which count for no figure; ``read`` are the layers whose outputs it wants."""

    extra: Sequence[list[Array]] = ()
    profile: bool = False
    read: Sequence[int] = ()
    sequence: bool = False  # The samples are frames of one sequence.


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
) -> RunResult:
    """Runs firmware that ``maker`` gives, once for each sample.

    ``count`` is called with how many are done, ``on_log`` with lines of the device's log. A second build, with a hook
    after every layer, is run if layers shall be read or profiled, or if instructions can be counted. With ``port`` the
    board is one at a line: firmware is flashed if the board file says how, but without ``flashes`` it must run there
    already.
    """
    bench = Bench(firmware, board, maker, progress, port, flashes)
    looks = looks or Looks()
    with hold_if_known(bench.line), closing(maker):
        bench.build()
        return bench.run(samples, looks, BatchProgress(len(samples) + len(looks.extra), progress, count), on_log)


class Bench:
    """Brings one board and the firmware of one compiled model together.

    Figures are taken from plain firmware, as a hook after every layer costs time and flash. Layers are read from a
    second firmware with that hook, if other firmware can be loaded (``exchanges``). On a board that keeps its firmware
    they are read from what runs there, if it has the hook."""

    def __init__(
        self, firmware: Firmware, board: Board, maker: Source, progress: Progress, port: str, flashes: bool
    ) -> None:
        self.firmware = firmware
        self.board = board
        self.maker = maker
        self.progress = progress
        self.line = find_port(board, port) if port or board.runs[0].kind == "serial" else ""
        self.flashes = flashes and bool(self.line) and board.flash is not None
        self.exchanges = self.flashes or not self.line  # Whether other firmware can be run just to look into it.
        self.timing = Timing.of(board)
        self.feeding = readings_of_feeding(firmware.fed)

    def build(self) -> None:
        if self.line:
            require_port(self.line, getattr(self.board.console, "baud", DEFAULT_BAUD))
        self.built = self.maker.firmware()

    def run(
        self, samples: list[list[Array]], looks: Looks, told: BatchProgress, on_log: Callable[[LogLine], None] | None
    ) -> RunResult:
        every = [*samples, *looks.extra]
        seen, cycles, core = _Seen(), None, None
        marks = self.feeding + FIRST_INFERENCE
        with count_blocks(marks) as blocks, self.session(self.built, on_log=on_log, blocks=blocks) as session:
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
        return RunResult(every, run, taken, seen.layers, more, seen.computed, unread, cycles, core, ran)

    def look_inside(self, samples: list[list[Array]], looks: Looks, cycles: CyclesEstimated | None) -> _Seen:
        """Runs firmware with a hook after every layer, for the costs of layers and the outputs that are wanted."""
        observed = self.maker.firmware(observe=True)
        self.progress("read the layers" if looks.read else "profile the layers")
        outputs, fed = self.firmware.layers, self.firmware.fed
        marks = self.feeding + readings_of_layers(outputs)
        with count_blocks(marks) as blocks, self.session(observed, blocks=blocks) as session:
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
    """Holds what layers take, and what those that are wanted gave for each sample."""

    layers: list[LayerTime] = field(default_factory=list)
    computed: list[dict[tuple[int, int], Array]] = field(default_factory=list)


def _look(session: Session, samples: list[list[Array]], looks: Looks) -> _Seen:
    """Reads costs and outputs of layers; of a sequence only for the first frame, whose state is the initial one."""
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
    """Opens a session with firmware: a process, an emulated or simulated board, or what is at ``port``.

    ``blocks``: where an emulated board writes which instructions it executed. ``options`` as :class:`Session` takes
    them.
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
