"""Says what is to be run and what is wanted of it, as plain data that needs no compiler.

It holds the choice of devices and accelerators, the options of a run, and who is told of its progress.
"""

from __future__ import annotations

import os
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from uaccel.board import Board
from uaccel.errors import AcceleratorError, UaccelError
from uaccel.util import incoming
from uaccel.util.favour import Favour
from uaccel.util.files import page
from uaccel.util.text import did_you_mean

if TYPE_CHECKING:
    from uaccel.accelerator import Accelerator
    from uaccel.build.project import Footprint
    from uaccel.build.project_api import OptionValue
    from uaccel.memory import Pool
    from uaccel.model import Array
    from uaccel.partition import Decision, Wishes
    from uaccel.pipeline import Compiled
    from uaccel.runner.job import Job
    from uaccel.session.session import LogLine
    from uaccel.session.tensors import TensorType

    Samples = list[list[Array]]

# Devices behind the drivers: their models in C, or their RTL. Environment variables tell processes and emulators.

MODEL: Final = "model"
RTL: Final = "rtl"
LIBRARY: Final = "UACCEL_DEVICE_LIBRARY"
WAVES: Final = "UACCEL_DEVICE_WAVES"
WAVES_LAYER: Final = "UACCEL_DEVICE_WAVES_LAYER"
STALLS: Final = "UACCEL_DEVICE_STALLS"
COVERAGE: Final = "UACCEL_DEVICE_COVERAGE"
_FORMATS: Final = (".fst", ".vcd")


@dataclass(frozen=True)
class Devices:
    """Says what stands behind drivers: ``kind`` is ``model`` or ``rtl``.

    ``waves``: a file for the waveform of the first session, or of ``waves_layer`` alone. ``coverage``: a folder; each
    process adds a file to it. ``stalls``: a seed for wait states of the memory behind RTL."""

    kind: str = MODEL
    waves: Path | None = None
    waves_layer: str = ""
    coverage: Path | None = None
    stalls: int | None = None

    def require_sense(self, accelerators: Sequence[str]) -> None:
        """Raises an error for options that mean nothing without the RTL of an accelerator."""
        given = {"--waves": self.waves, "--waves-layer": self.waves_layer, "--coverage": self.coverage}
        named = [option for option, value in given.items() if value]
        if self.kind != RTL and named:
            raise UaccelError(f"{named[0]} is of RTL; add --device rtl")
        if self.kind == RTL and not accelerators:
            raise UaccelError(
                "--device rtl is about an accelerator's RTL, and none is given; add --accelerator NAME|PATH"
            )
        if self.waves_layer and self.waves is None:
            raise UaccelError("--waves-layer says which part of a waveform; add --waves FILE.fst")
        if self.waves is not None and self.waves.suffix not in _FORMATS:
            raise UaccelError(f"--waves {self.waves}: wanted a name that ends in {' or '.join(_FORMATS)}")

    @property
    def words(self) -> list[str]:
        """The options that say the same."""
        return ["--device", RTL] if self.kind == RTL else []


@contextmanager
def devices_in_place(
    devices: Devices,
    accelerators: Sequence[Accelerator],
    progress: Callable[[str], None] = lambda _step: None,
    layers: Mapping[str, int] | None = None,
) -> Iterator[None]:
    """Makes processes and emulators that are started in the block take these devices; afterwards checks waveforms."""
    if devices.kind == MODEL:
        yield
        return
    settings = _settings(devices, accelerators, progress, layers or {})
    with environment(settings):
        yield
    for pair in settings.get(WAVES, "").split(","):
        path = Path(pair.partition("=")[2])
        if path.suffix == ".fst" and path.is_file() and is_cut_short(path):
            raise UaccelError(f"--waves {path}: its end is missing; is the disk full?")


def is_cut_short(path: Path) -> bool:
    """Says whether an FST waveform lacks its end. Its writer ignores errors, so that a full disk would go unnoticed.

    The file consists of blocks: a byte for the type, then the length in 8 bytes, which counts itself but not the type.
    So a length is at least 8, and the last block must end with the file."""
    with incoming.opened(path, incoming.ARCHIVE) as stream:
        size, at = path.stat().st_size, 0
        while at < size:
            stream.seek(at + 1)
            length = int.from_bytes(stream.read(8), "big")
            if length < 8:
                return True
            at += 1 + length
    return at != size or size == 0


def _settings(
    devices: Devices, accelerators: Sequence[Accelerator], progress: Callable[[str], None], layers: Mapping[str, int]
) -> dict[str, str]:
    from uaccel.build.rtl.build import Variant, device_library
    from uaccel.build.rtl.description import has_rtl

    units = [one.name for one in accelerators if one.instructions]
    if units:
        raise AcceleratorError(
            f"{units[0]} is part of a core, and so its RTL runs on one; leave --device rtl away, and take a board "
            "whose core is RTL: --board rtl_vexriscv"
        )
    found = [accelerator for accelerator in accelerators if has_rtl(accelerator.folder)]
    if not found:
        names = ", ".join(accelerator.name for accelerator in accelerators)
        raise AcceleratorError(
            f"{names} has no RTL: no rtl/rtl.toml in its folder; leave --device rtl away ({page('rtl.md')})"
        )
    variant = Variant(devices.waves.suffix[1:] if devices.waves is not None else "", devices.coverage is not None)
    libraries = {one.name: str(device_library(one.name, one.folder, variant, progress)) for one in found}
    settings = {LIBRARY: libraries}
    if devices.waves is not None:
        settings[WAVES] = {one.name: _fresh(devices.waves, one.name if len(found) > 1 else "") for one in found}
    if devices.coverage is not None:
        devices.coverage.mkdir(parents=True, exist_ok=True)
        settings[COVERAGE] = {one.name: str(devices.coverage.absolute()) for one in found}
    joined = {variable: _joined(variable, values) for variable, values in settings.items()}
    if devices.stalls is not None:
        joined[STALLS] = str(devices.stalls)
    if devices.waves_layer:
        joined[WAVES_LAYER] = str(_layer(devices.waves_layer, layers))
    return joined


def _joined(variable: str, values: Mapping[str, str]) -> str:
    for value in values.values():
        if "," in value:
            raise UaccelError(f"{value}: a path with a comma cannot be handed to a device ({variable}); choose another")
    return ",".join(f"{name}={value}" for name, value in values.items())


def _fresh(path: Path, name: str) -> str:
    """Removes an old waveform, which would be taken for one of an earlier session of this run; returns its path."""
    path = path.with_suffix(f".{name}{path.suffix}") if name else path
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UaccelError(f"--waves {path}: {error.strerror}; name a file that can be written") from error
    if not path.absolute().parent.is_dir():
        raise UaccelError(f"--waves {path}: no folder {path.parent}; make it, or name another")
    return str(path.absolute())


def _layer(name: str, layers: Mapping[str, int]) -> int:
    if name not in layers:
        raise UaccelError(
            f"--waves-layer {name}: no layer is called so{did_you_mean(name, list(layers))}; "
            f"accelerators compute: {', '.join(layers) or 'none'}"
        )
    return layers[name]


@contextmanager
def environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables until the end of the block."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# The choice of accelerators, as the user types it; they are loaded when a model is compiled.

LATENCY: Final = "latency"


@dataclass(frozen=True)
class EngineRequest:
    """Says which accelerators may compute layers, and how to choose between them.

    ``accelerators``: names, or paths of folders, the preferred one first. ``file``: pins, prohibitions and subgraphs.
    An empty ``choose`` means by preference, or as the file says."""

    accelerators: tuple[str, ...] = ()
    choose: str = ""
    pins: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    file: Path | None = None
    cpu_fallback: bool = False
    objective: str = LATENCY
    allow_none: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The options that say the same, with files and folders by name, as the command is for any computer."""
        given = {
            "--accelerator": [_shown(name) for name in self.accelerators],
            "--engines": [self.file.name] if self.file is not None else [],
            "--choose": [self.choose] if self.choose else [],
            "--pin": list(self.pins),
            "--forbid": list(self.forbidden),
            "--fallback": ["cpu"] if self.cpu_fallback else [],
            "--objective": [self.objective] if self.objective != LATENCY else [],
        }
        return tuple(word for option, values in given.items() for value in values for word in (option, value))

    def require_accelerators(self) -> None:
        """Raises an error if there are options about accelerators, but no accelerator."""
        if self.words and not self.accelerators:
            words = self.words
            raise AcceleratorError(f"{words[0]} is about accelerators, and none is given; add --accelerator NAME|PATH")

    def load(self) -> tuple[list[Accelerator], Wishes]:
        """Loads the accelerators as they are now, and reads the constraints; raises an error for a faulty one."""
        from uaccel.partition.claims import Wishes, read_wishes

        if not self.accelerators:
            return [], Wishes()
        from uaccel.accelerator import load_accelerators, planning_for

        base = read_wishes(self.file) if self.file is not None else Wishes()
        wishes = base.and_also(self.choose, self.pins, self.forbidden)
        return planning_for(self.objective, load_accelerators(list(self.accelerators))), wishes

    def arguments(self) -> tuple[list[Accelerator], Wishes, bool, tuple[str, ...]]:
        """Returns the arguments of :class:`~uaccel.runner.job.Job` about accelerators, in its order."""
        accelerators, wishes = self.load()
        return accelerators, wishes, self.cpu_fallback, self.words

    def missing_offload(self, compiled: Compiled) -> str:
        """Says why nothing is offloaded; empty if something is, or if the CPU alone was found to be the cheapest.

        Offloading nothing is never silent: without this, a run would seem to prove the accelerator."""
        if not self.accelerators or compiled.offloads or compiled.kept_on_cpu:
            return ""
        return nothing_offloaded(self.load()[0], compiled.partitioned.decisions)

    def require_offload(self, compiled: Compiled) -> None:
        """Raises an error if nothing is offloaded, unless that is allowed."""
        missing = "" if self.allow_none else self.missing_offload(compiled)
        if missing:
            raise AcceleratorError(missing)


def _shown(name: str) -> str:
    """Returns a name as it is, and for a path the folder's name with a slash, so that it stays a path."""
    path = Path(name)
    if "/" not in name and path.suffix != ".py":
        return name
    folder = path.parent if path.suffix == ".py" else path
    return f"{folder.resolve().name}/"


def nothing_offloaded(accelerators: Sequence[Accelerator], decisions: Sequence[Decision]) -> str:
    """Says that nothing is offloaded, with the three most frequent reasons."""
    counts = Counter(
        reason for decision in decisions for reason in {rejection.reason for rejection in decision.rejections}
    )
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    shown = [f"{reason} ({count} layer{'s' if count > 1 else ''})" for reason, count in ranked[:3]]
    others = len(ranked) - 3
    more = f"; and {others} further reason{'s' if others > 1 else ''}" if others > 0 else ""
    names = ", ".join(accelerator.name for accelerator in accelerators)
    return (
        f"nothing is offloaded to {names}: {'; '.join(shown) or 'the model has no operators'}{more}; "
        "'uaccel explain' tells layer by layer, --allow-none goes on without"
    )


# The request for a run: a model or a project, and what is wanted of the run.


@dataclass(frozen=True)
class ProjectRunOptions:
    """Holds the options of ``run`` that make sense for a project as well as for a model."""

    inputs: Path | None = None
    outputs: Path | None = None
    repeat: int = 1
    profile: bool = False
    verify: bool = False
    every_layer: bool = False  # ``--verify layers``.
    port: str = ""
    trace: Path | None = None
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    symbols: bool = False
    sequence: bool = False  # The samples are frames: the model keeps its state from each to the next.
    verified_samples: int | None = None
    seed: int = 0
    details: bool = False  # All that a report page shows, in the JSON.
    report: Path | None = None  # Where such a page is written.
    flashes: bool = True  # Write a model's firmware to a board at a line, where its board file says how.

    def add_symbols(self, report: dict[str, Any], taken: Footprint | None) -> None:
        """Adds symbols to the report's memory if they were asked for."""
        from uaccel.report.run_json import symbols_report

        for memory, rows in symbols_report(taken).items() if self.symbols or self.details else ():
            report[memory]["symbols"] = rows

    def samples(self, tensors: Sequence[TensorType]) -> Samples:
        from uaccel.session.tensors import load_inputs, ramp

        samples = load_inputs(self.inputs, tensors) if self.inputs else [[ramp(tensor) for tensor in tensors]]
        return [sample for sample in samples for _ in range(self.repeat)]

    @property
    def words(self) -> list[str]:
        """The options that say the same, quoted for a shell."""
        found = ["--inputs", shlex.quote(str(self.inputs))] if self.inputs is not None else []
        found += ["--repeat", str(self.repeat)] if self.repeat > 1 else []
        found += ["--sequence"] if self.sequence else []
        found += ["--verify layers" if self.every_layer else "--verify"] if self.verify else []
        found += ["--samples", str(self.verified_samples)] if self.verified_samples is not None else []
        found += ["--seed", str(self.seed)] if self.seed else []
        return found + (["--profile"] if self.profile else [])

    @property
    def more_samples(self) -> bool:
        """Whether verification adds samples: it does if the user gives none."""
        return self.verify and self.inputs is None and not self.sequence

    def more(self, tensors: Sequence[TensorType]) -> Samples:
        """Returns the samples that only verification wants."""
        from uaccel.runner.samples import SAMPLES, default_samples

        count = SAMPLES if self.verified_samples is None else self.verified_samples
        return default_samples(tensors, count, self.seed)[1:] if self.more_samples else []


@dataclass(frozen=True)
class RunRequest:
    """Describes a run of a model. ``board_file`` is what the user calls the board. ``project``: a folder that keeps the
    firmware. ``workspace_io``: None if the user did not say (see ``io_in_workspace``).
    """

    model: Path
    board: Board
    board_file: str
    name: str = ""
    project: Path | None = None
    wishes: ProjectRunOptions = field(default_factory=ProjectRunOptions)
    engines: EngineRequest = field(default_factory=EngineRequest)
    workspace_io: bool | None = None
    records: Path | None = None
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    favour: Favour = Favour.balanced
    pools: tuple[Pool, ...] = ()
    ram: int | None = None
    feed: bool = False
    constant_pools: tuple[Pool, ...] = ()
    devices: Devices = field(default_factory=Devices)

    @property
    def io_in_workspace(self) -> bool:
        """Whether inputs and outputs lie in the arena: as the user says, else if we make and load the firmware.

        That takes the least RAM. Firmware that is on the board already may have been built otherwise."""
        ours = not self.at_line or (self.wishes.flashes and self.board.flash is not None)
        return ours if self.workspace_io is None else self.workspace_io

    def what(self) -> Job:
        """Returns what to compile."""
        from uaccel.codegen.options import EmitOptions
        from uaccel.runner.job import Job

        options = EmitOptions(
            self.pools, self.io_in_workspace, ram=self.ram, feed=self.feed, constant_pools=self.constant_pools
        )
        words = self.board_file
        given = (*self.engines.arguments(), self.records, self.input_shapes, self.favour)
        return Job(self.model, self.board, words, self.name, options, *given)

    @property
    def words(self) -> str:
        """What to type after the options of the compilation, for the same run and verification."""
        return " ".join(
            self.wishes.words + self.devices.words + (["--no-workspace-io"] if self.workspace_io is False else [])
        )

    @property
    def at_line(self) -> bool:
        """Whether a board at a line runs it."""
        return bool(self.wishes.port) or self.board.runs[0].kind == "serial"


# Progress of a run: whom to tell.


class Steps(Protocol):
    """Is called with each step as it begins."""

    def __call__(self, description: str) -> None: ...
    def count(self, done: int, total: int) -> None:
        """Tells how many parts of the step are done."""

    def log(self, line: LogLine) -> None:
        """Tells a line of the device's log."""


class Quiet:
    """Ignores all progress."""

    def __call__(self, description: str) -> None:
        pass

    def count(self, done: int, total: int) -> None:
        pass

    def log(self, line: LogLine) -> None:
        pass


# Progress of a batch of inferences, with an estimate of its time after the first one.

LONG: Final = 5.0  # Seconds; a batch that will take longer says so.


class BatchProgress:
    """Tells how far a batch is, and after the first inference how long it will take, if that is long."""

    def __init__(self, total: int, progress: Callable[[str], None], count: Callable[[int, int], None]) -> None:
        self._text = f"run {total} inference{'s' if total > 1 else ''}"
        self._total = total
        self._progress = progress
        self._count = count
        self._begun = 0.0

    def begin(self) -> None:
        """Tells that the batch begins."""
        self._progress(self._text)

    def done(self, done: int, _total: int, before: int = 0) -> None:
        """Tells that ``done`` inferences are done, besides those ``before``."""
        done += before
        if not done:
            self._begun = time.monotonic()
        elif done == 1:
            whole = (time.monotonic() - self._begun) * self._total
            if whole > LONG:
                self._progress(f"{self._text}, about {whole:.0f} s")
        self._count(done, self._total)
