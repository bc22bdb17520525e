"""Says what is to be run and what is wanted of it, as plain data that needs no compiler.

It holds the choice of devices, the options of a run (runner/options.py), and who is told of its progress.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from uaccel.board import Board
from uaccel.build.children import environment
from uaccel.codegen.options import EmitOptions
from uaccel.errors import AcceleratorError, UaccelError
from uaccel.runner.options import APART, WHERE, CompileOptions, EngineRequest, ProjectRunOptions
from uaccel.util import incoming
from uaccel.util.files import page
from uaccel.util.option import like, option, shared, words_of
from uaccel.util.text import did_you_mean

if TYPE_CHECKING:
    from uaccel.accelerator import Accelerator
    from uaccel.runner.job import Job
    from uaccel.session.session import LogLine

# Devices behind the drivers: their models in C, or their RTL. Environment variables tell processes and emulators.

MODEL: Final = "model"
RTL: Final = "rtl"
KINDS: Final = (MODEL, RTL)
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

    PANEL = WHERE
    kind: str = option(
        MODEL,
        "Behind the drivers: models of the devices, or their Verilog, verilated.",
        "--device",
        choices=KINDS,
        row=False,
    )
    waves: Path | None = option(None, "Write the waveform of the RTL.", metavar="FILE.fst|FILE.vcd", rare=True, **APART)
    waves_layer: str = option(
        "", "Of the waveform only what belongs to this layer.", metavar="LAYER", rare=True, **APART
    )
    coverage: Path | None = option(
        None,
        "Add what of the RTL was exercised, for verilator_coverage.",
        metavar="DIR",
        rare=True,
        **APART,
    )
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


# The request for a run of a model.


@dataclass(frozen=True)
class RunRequest(CompileOptions):
    """Describes a run of a model. ``board_file`` is what the user calls the board. ``project``: a folder that keeps the
    firmware. ``workspace_io``: None if the user did not say (see ``io_in_workspace``). ``beside``: whether verification
    begins with test data that lie beside the model.
    """

    PANEL = EmitOptions.PANEL
    model: Path
    board: Board
    board_file: str
    wishes: ProjectRunOptions = field(default_factory=ProjectRunOptions)
    engines: EngineRequest = field(default_factory=EngineRequest)
    emit: EmitOptions = field(default_factory=EmitOptions)
    workspace_io: bool | None = like(EmitOptions, "workspace_io", None)
    devices: Devices = field(default_factory=Devices)
    project: Path | None = option(
        None, "Keep the firmware project in this new folder.", metavar="DIR", panel=WHERE, rare=True, **APART
    )
    beside: bool = False

    @property
    def io_in_workspace(self) -> bool:
        """Whether inputs and outputs lie in the arena: as the user says, else if we make and load the firmware.

        That takes the least RAM. Firmware that is on the board already may have been built otherwise."""
        ours = not self.at_line or (self.wishes.flashes and self.board.flash is not None)
        return ours if self.workspace_io is None else self.workspace_io

    def what(self) -> Job:
        """Returns what to compile."""
        from uaccel.runner.job import Job

        emit = replace(self.emit, workspace_io=self.io_in_workspace)
        said, (accelerators, wishes) = shared(self, CompileOptions), self.engines.load()
        return Job(self.model, self.board, self.board_file, emit, accelerators, wishes, self.engines, **said)

    @property
    def words(self) -> str:
        """What to type after the options of the compilation, for the same run and verification."""
        apart = ["--no-workspace-io"] if self.workspace_io is False else []
        return shlex.join([*words_of(self.wishes, self.devices), *apart])

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
