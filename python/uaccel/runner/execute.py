"""Builds firmware or takes it from the cache, flashes it and runs it on a board."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

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
from uaccel.report.run_json import batched
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
from uaccel.session.monitor import EngineJob
from uaccel.session.qemu import Blocks, emulated
from uaccel.session.session import LogLine, Session
from uaccel.session.simulated import SIMULATED_TIMEOUTS, SimulatedTransport, rtl_run
from uaccel.session.tensors import TensorType
from uaccel.util.cache import Cache, Entry, Key, file_digest, folder_digest
from uaccel.util.files import data_dir
from uaccel.util.reads import add_to_open, add_true, find_true

# Firmware of an archive for a board, built in a folder or taken from the cache.

KIND: Final = "firmware"
FOOTPRINT: Final = "footprint.json"


class FirmwareMaker:
    """Builds the firmware of one archive for one board, in at most two forms, or takes it from the cache, or from those
    who built it elsewhere.

    ``folder`` becomes the project when something must be built. Give no cache for a project that its user keeps: then
    all is built, and everything is in it."""

    def __init__(
        self, firmware: Firmware, board: Board, folder: Path, progress: Callable[[str], None], cache: Cache | None
    ) -> None:
        self.product, self.board, self.progress = firmware, board, progress
        self._folder = folder
        self._cache = cache
        self._created = False
        self._entries: list[Entry] = []
        self._made: dict[bool, Path] = {}
        self.footprint: Footprint | None = None  # That of the firmware without a hook after every layer.

    def bring(self, forms: Mapping[bool, bytes], footprint: Footprint) -> None:
        """Takes firmware that was built elsewhere, each form by whether its layers can be read."""
        for observe, content in forms.items():
            self._made[observe] = path = self._folder / ("observed" if observe else "plain") / "firmware.elf"
            path.parent.mkdir()
            path.write_bytes(content)
        self.footprint = footprint

    def firmware(self, *, observe: bool = False) -> Path:
        """Returns the program or the ELF file, made at the first call. With ``observe`` its layers can be read."""
        if observe not in self._made:
            self._made[observe] = self.kept(observe=observe) or self._make(observe)
        return self._made[observe]

    def _make(self, observe: bool) -> Path:
        if not self._created:
            self._created = True
            self.progress("create the project")
            create_project(self.product.files(), self.board, self._folder)
        self.progress(f"build the firmware{' with a hook after every layer' if observe else ''}")
        count = getattr(self.progress, "count", lambda done, total: None)
        build = build_project(self._folder, observe=observe, count=count, cache=self._cache)
        own = self.product
        taken = footprint(self._folder, build, own.name, arena=own.arena, io=own.io)
        if not observe:
            self.footprint = taken
        key = self._key(observe)
        if self._cache is not None and key is not None:
            self._keep(self._cache, key, build, taken)
        return firmware_of(build)

    def kept(self, *, observe: bool = False) -> Path | None:
        """Returns the same from the cache; None if it was not built before."""
        entry = find_true(self._cache, self._key(observe))
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

    def _keep(self, cache: Cache, key: Key, build: Path, taken: Footprint) -> None:
        made, reads = firmware_of(build), reads_of_build(build, self._folder)
        add_to_open(reads)
        devices = (self._folder / DEVICES).rglob("*")
        files: dict[str, bytes | Path] = {
            str(path.relative_to(self._folder)): path for path in sorted(devices) if path.is_file()
        }
        files |= {f"build/{made.name}": made, FOOTPRINT: json.dumps(asdict(taken)).encode()}
        entry = add_true(cache, key, files, f"{self.product.name} for {self.board.name}", reads)
        if entry is not None:
            self._entries.append(entry)

    def _key(self, observe: bool) -> Key | None:
        """Returns a key of all that firmware is made of; None without a cache, and if a tool is missing: building says
        what to install."""
        board = self.board
        if self._cache is None:
            return None
        try:
            return (
                Key(KIND)
                .add("archive", self.product.archive)
                .add("board", [board.name, file_digest(board.file)])
                .add("port", [folder_digest(folder) for folder in board.port.sources])
                .add("sources", [folder_digest(data_dir("firmware")), folder_digest(data_dir("project_template"))])
                .add("programs", programs_for(board))
                .add("memory", [self.product.arena, self.product.io])
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
OnLog = Callable[[LogLine], None]
HOST_TIMEOUTS: Final = Timeouts(run=600)
DEFAULT_BAUD: Final = 115200


@dataclass(frozen=True)
class RunResult:
    """Holds what a board gave. ``samples``: the inputs of every run, those of verification last."""

    samples: list[list[Array]]
    run: BatchRun
    footprint: Footprint | None  # None of a project that another template than our own made.
    layers: list[LayerTime] = field(default_factory=list)
    extra: BatchRun | None = None  # The run of samples that only verification wanted; it counts for no figure.
    # What layers gave for each sample, by (layer, output), where it was asked for.
    computed: list[dict[tuple[int, int], Array]] = field(default_factory=list)
    unread: str = ""  # Why ``computed`` is missing though it was asked for.
    cycles: CyclesEstimated | None = None  # For one inference, where an emulated board counted its instructions.
    core: CoreCycles | None = None  # For one inference, on a board that tells its core's own count.
    firmware: str = ""  # SHA-256 of the program or ELF file that ran, where it is known.
    notes: tuple[str, ...] = ()  # What became of the user's arrays before they were inputs.
    jobs: tuple[EngineJob, ...] = ()  # What models of accelerators' devices tell of the first inference.

    @property
    def outputs(self) -> list[list[Array]]:
        """The outputs of every sample, those of verification last."""
        return self.run.outputs + (self.extra.outputs if self.extra is not None else [])

    def named(self, outputs: Sequence[TensorType], repeat: int = 1) -> dict[str, Array]:
        """Returns the outputs of the user's own samples by name; of ``repeat`` equal runs that of the first."""
        per_sample = self.run.outputs[::repeat]
        return {tensor.name: batched([values[i] for values in per_sample]) for i, tensor in enumerate(outputs)}


@dataclass(frozen=True)
class Looks:
    """Says what is wanted besides outputs of the user's samples.

    ``extra`` are samples of verification, which count for no figure; ``read`` are the layers whose outputs it wants.
    Without ``counts`` layers are not looked at only because their instructions could be counted."""

    extra: Sequence[list[Array]] = ()
    profile: bool = False
    read: Sequence[int] = ()
    sequence: bool = False  # The samples are frames of one sequence.
    counts: bool = True


class Bench(ABC):
    """Runs firmware of one model where it is: on a board that is given it, or behind the server of a project.

    Figures are taken from plain firmware, as a hook after every layer costs time and flash. Layers are read from a
    second firmware with that hook, if other firmware can be loaded (``exchanges``). On a board that keeps its firmware
    they are read from what runs there, if it has the hook."""

    firmware: Firmware
    progress: Progress
    board: Board | None = None  # None where only the project's server knows it.
    line: str = ""  # The port of a board that must be locked.
    at_line: bool = False  # Whether it runs on a real board, as far as that is known.
    exchanges: bool = True  # Whether other firmware can be run just to look into it.
    timing: Timing | None = None  # The timings to estimate cycles by, where there are any.

    @abstractmethod
    def built(self, *, observe: bool = False) -> Path:
        """Returns the program or ELF file that runs."""

    @property
    @abstractmethod
    def footprint(self) -> Footprint | None:
        """What the plain firmware takes."""

    @abstractmethod
    def session(self, *, observe: bool = False, blocks: Blocks | None = None, on_log: OnLog | None = None) -> Session:
        """Opens a session with the firmware."""

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Lets nobody else use the board until the end of the block."""
        with hold_if_known(self.line):
            yield

    def measure(
        self,
        samples: list[list[Array]],
        looks: Looks,
        count: Callable[[int, int], None] = lambda done, total: None,
        on_log: OnLog | None = None,
    ) -> RunResult:
        """Runs firmware once for each sample.

        ``count`` is called with how many are done, ``on_log`` with lines of the device's log. A second firmware, with
        a hook after every layer, is run if layers shall be read or profiled, or if instructions can be counted."""
        told = BatchProgress(len(samples) + len(looks.extra), self.progress, count)
        result = self._run(samples, looks, told, on_log)
        counted = looks.counts and result.run.instructions is not None
        if self.exchanges and (looks.profile or looks.read or counted):
            result = self._look_inside(result, looks)
        unread = NOT_SHOWN if looks.read and not result.computed else ""
        return replace(result, unread=unread, footprint=self.footprint)

    def _run(self, samples: list[list[Array]], looks: Looks, told: BatchProgress, on_log: OnLog | None) -> RunResult:
        every, cycles, core = [*samples, *looks.extra], None, None
        marks = readings_of_feeding(self.firmware.fed) + FIRST_INFERENCE
        with count_blocks(marks, self.timing) as blocks, self.session(on_log=on_log, blocks=blocks) as session:
            if looks.profile and not self.exchanges:
                require_layers(session)
            told.begin()
            run = run_batch(session, samples, sequence=looks.sequence, count=told.done)
            more = None
            if looks.extra:
                more = run_batch(session, looks.extra, count=partial(told.done, before=len(samples)))
            if self.timing is not None and looks.counts and run.instructions is not None:
                cycles = inference_cycles(self.timing, self.built(), blocks, run.instructions)
                core = core_cycles(self.board, run.first_seconds, blocks)
            digest = file_digest(self.built()) if self.board is not None else ""
            result = RunResult(every, run, None, extra=more, cycles=cycles, core=core, firmware=digest)
            inside = not self.exchanges and session.model.observable
            return _look(session, result, looks) if inside else result

    def _look_inside(self, result: RunResult, looks: Looks) -> RunResult:
        """Runs firmware with a hook after every layer, for the costs of layers and the outputs that are wanted."""
        outputs, fed = self.firmware.layers, self.firmware.fed
        marks = readings_of_feeding(fed) + readings_of_layers(outputs)
        with count_blocks(marks, self.timing) as blocks, self.session(observe=True, blocks=blocks) as session:
            self.progress("read the layers" if looks.read else "profile the layers")
            seen = _look(session, result, replace(looks, profile=looks.profile or looks.counts))
            layers = with_core_cycles(self.board, blocks, seen.layers, outputs, fed)
            if self.timing is not None and result.cycles is not None and result.cycles.total is not None:
                layers = layer_cycles(self.timing, self.built(observe=True), blocks, layers, outputs, fed)
        return replace(seen, layers=layers)


def _look(session: Session, result: RunResult, looks: Looks) -> RunResult:
    """Reads costs and outputs of layers; of a sequence only for the first frame, whose state is the initial one."""
    layers = layer_times(session, result.samples[0]) if looks.profile else []
    looked_at = result.samples[:1] if looks.sequence else result.samples
    computed = [layers_of(session, sample, looks.read) for sample in looked_at] if looks.read else []
    return replace(result, layers=layers, computed=computed)


class BoardBench(Bench):
    """Gives a board firmware that ``maker`` makes; ``port`` leads to one at a line.

    There firmware is flashed if the board file says how, but without ``flashes`` it must run there already."""

    def __init__(
        self, maker: FirmwareMaker, port: str = "", flashes: bool = True, timeouts: Timeouts | None = None
    ) -> None:
        board = maker.board
        self.firmware, self.board, self.progress = maker.product, board, maker.progress
        self._board, self._maker, self._timeouts = board, maker, timeouts
        self.line = find_port(board, port) if port or board.runs[0].kind == "serial" else ""
        self.at_line = bool(self.line)
        self._flashes = flashes and self.at_line and board.flash is not None
        self.exchanges = self._flashes or not self.line
        self.timing = None if self.line else Timing.of(board)

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Builds the plain firmware as well."""
        with super().ready(), closing(self._maker):
            if self.line:
                require_port(self.line, getattr(self._board.console, "baud", DEFAULT_BAUD))
            self.built()
            yield

    def built(self, *, observe: bool = False) -> Path:
        return self._maker.firmware(observe=observe)

    @property
    def footprint(self) -> Footprint | None:
        return self._maker.footprint

    def session(self, *, observe: bool = False, blocks: Blocks | None = None, on_log: OnLog | None = None) -> Session:
        elf = self.built(observe=observe)
        if self._flashes:
            self.progress("flash")
            flash(self._board, elf, self.line)
        to = self._board, elf, self.firmware.identity, self.line
        return connect(*to, timeouts=self._timeouts, blocks=blocks, progress=self.progress, on_log=on_log)


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
