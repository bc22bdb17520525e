"""Chips that a board file can be written for, by what their data sheets say: ``boards/chips/chips.toml``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from uaccel.basics.documents import parse_toml
from uaccel.basics.suggest import did_you_mean
from uaccel.board.types import Arch, Feature
from uaccel.errors import BoardError
from uaccel.resources import data_dir

KIB: Final = 1 << 10
SMALL: Final = 32 << 10
"""RAM below which stack and rings are made smaller."""
CLOCK_HZ: Final = 8_000_000
"""A guess for chips whose clock nobody tells; the user corrects it."""


@dataclass(frozen=True)
class Core:
    """A processor, and how code for it is compiled."""

    name: str
    arch: Arch
    toolchain: str
    flags: tuple[str, ...]
    features: tuple[Feature, ...] = ()


@dataclass(frozen=True)
class Chip:
    """``code`` and ``ram`` are origins and lengths in bytes; ``hz`` is what the core has after reset."""

    name: str
    about: str
    core: str
    hz: int
    code: tuple[int, int]
    ram: tuple[tuple[int, int], ...]
    pyocd: str | None
    openocd: tuple[str, ...] = ()
    port: str = "rtt"
    pack: str | None = None
    """The CMSIS-Pack that pyOCD needs for it, where that is not installed."""
    guessed_clock: bool = False


def _arm(cpu: str, arch: Arch, *flags: str, features: tuple[Feature, ...] = ()) -> Core:
    return Core(cpu.partition("+")[0], arch, "arm-none-eabi", (f"-mcpu={cpu}", "-mthumb", *flags), features)


_HARD: Final = "-mfloat-abi=hard"
CORES: Final[dict[str, Core]] = {
    "cortex-m0": _arm("cortex-m0", "armv6m"),
    "cortex-m0plus": _arm("cortex-m0plus", "armv6m"),
    "cortex-m3": _arm("cortex-m3", "armv7m"),
    "cortex-m4": _arm("cortex-m4", "armv7em", features=("dsp",)),
    "cortex-m4f": _arm("cortex-m4", "armv7em", _HARD, "-mfpu=fpv4-sp-d16", features=("fpu", "dsp")),
    "cortex-m7": _arm("cortex-m7", "armv7em", features=("dsp",)),
    "cortex-m7f": _arm("cortex-m7", "armv7em", _HARD, "-mfpu=fpv5-sp-d16", features=("fpu", "dsp")),
    "cortex-m7fd": _arm("cortex-m7", "armv7em", _HARD, "-mfpu=fpv5-d16", features=("fpu", "dsp")),
    "cortex-m33": _arm("cortex-m33+nodsp+nofp", "armv8m"),
    "cortex-m33d": _arm("cortex-m33+nofp", "armv8m", features=("dsp",)),
    "cortex-m33f": _arm("cortex-m33", "armv8m", _HARD, features=("fpu", "dsp")),
    "cortex-m55": _arm("cortex-m55", "armv8.1m", _HARD, features=("fpu", "dsp", "helium")),
    "rv32imac": Core(
        "rv32imac",
        "rv32",
        "riscv64-unknown-elf",
        ("-march=rv32imac", "-mabi=ilp32", "-misa-spec=2.2", "-mno-relax", "--specs=picolibc.specs"),
    ),
}


def known_chips() -> dict[str, Chip]:
    """By name."""
    text = (data_dir("boards") / "chips" / "chips.toml").read_text(encoding="utf-8")
    return {name: _chip(name, row) for name, row in parse_toml(text).items()}


def find_chip(name: str) -> Chip | None:
    """The chip of that name; where a name stands for a family, the one whose name begins so. None: it is not known."""
    chips = known_chips()
    wanted = name.lower().replace("-", "_")
    if wanted in chips:
        return chips[wanted]
    near = [chip for known, chip in chips.items() if _same(wanted, known)]
    if len(near) > 1:
        raise BoardError(f"target {name!r} may be {' or '.join(chip.name for chip in near)}; name one of them")
    return near[0] if near else None


def _same(wanted: str, known: str) -> bool:
    """Where either has an x, the other may have any letter: ``stm32h743zi`` is of ``stm32h743xx``."""
    if len(wanted) < len(known) and not wanted.endswith("x"):
        return len(wanted) >= 5 and all(map(_fits, wanted, known))
    return len(wanted) == len(known) and all(map(_fits, wanted, known))


def _fits(one: str, other: str) -> bool:
    return one == other or "x" in (one, other)


def core_named(name: str) -> Core:
    """One of :data:`CORES`."""
    if name not in CORES:
        raise BoardError(f"no core is called {name!r}{did_you_mean(name, CORES)} (known: {', '.join(CORES)})")
    return CORES[name]


def unknown_chip(name: str, others: Sequence[str] = ()) -> BoardError:
    """What to say of a target that nobody knows."""
    known = [*known_chips(), *others]
    return BoardError(
        f"no chip is called {name!r}{did_you_mean(name, known)}; uaccel knows {', '.join(known_chips())}; "
        "--pack FILE takes those of a CMSIS-Pack; "
        "pip install 'uaccel[probe]' adds pyOCD's, with --core for their processor"
    )


def _chip(name: str, row: dict[str, Any]) -> Chip:
    ram = tuple((origin, kib * KIB) for origin, kib in row["ram"])
    origin, kib = row["code"]
    openocd = tuple(row.get("openocd", ()))
    pyocd = None if openocd else row.get("pyocd", name)
    return Chip(
        name, row["about"], row["core"], row["hz"], (origin, kib * KIB), ram, pyocd, openocd, row.get("port", "rtt")
    )
