"""Which devices stand behind drivers while something runs: their models, or their RTL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uaccel.basics.suggest import did_you_mean
from uaccel.errors import AcceleratorError, UaccelError
from uaccel.resources import page

if TYPE_CHECKING:
    from uaccel.accelerator import Accelerator

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
    """``kind`` is ``model`` or ``rtl``. ``waves``: a file, of the first session alone; ``waves_layer``: of this layer
    alone. ``coverage``: a folder that each process adds a file to. ``stalls``: a seed; the memory lets RTL wait."""

    kind: str = MODEL
    waves: Path | None = None
    waves_layer: str = ""
    coverage: Path | None = None
    stalls: int | None = None

    def require_sense(self, accelerators: Sequence[str]) -> None:
        """Of options that mean nothing without the RTL of an accelerator."""
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
        """What to type for the same."""
        return ["--device", RTL] if self.kind == RTL else []


@contextmanager
def devices_in_place(
    devices: Devices,
    accelerators: Sequence[Accelerator],
    progress: Callable[[str], None] = lambda _step: None,
    layers: Mapping[str, int] | None = None,
) -> Iterator[None]:
    """Until the end of the block, processes and emulators that are started take these devices."""
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
    """Of a waveform as FST, whose writer looks at no error: blocks that say how long they are, up to the last byte."""
    with path.open("rb") as stream:
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
    from uaccel.rtl import Variant, device_library
    from uaccel.rtl.description import has_rtl

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
    """What is there already would be taken for that of an earlier session of this run."""
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
    """Until the end of the block."""
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
