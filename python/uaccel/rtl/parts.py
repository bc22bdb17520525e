"""FPGAs that open tools know: what is in them, and how the tools are asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from uaccel.basics.suggest import did_you_mean
from uaccel.errors import UaccelError

KINDS: Final = ("lut", "ff", "bram", "dsp")
DEFAULT: Final = "ecp5-85k"


@dataclass(frozen=True)
class Family:
    """``cells``: what each type of a netlist counts as; ``format`` is the option that takes a placed design."""

    synthesis: str
    router: str
    packer: str
    format: str
    loose: tuple[str, ...]
    """Options without pins, for figures alone."""
    pinned: tuple[str, ...]
    """With pins, which the tool chooses."""
    cells: Mapping[str, Mapping[str, int]]


ECP5: Final = Family(
    "synth_ecp5",
    "nextpnr-ecp5",
    "ecppack",
    "--textcfg",
    ("--out-of-context",),
    ("--lpf-allow-unconstrained",),
    {
        "LUT4": {"lut": 1},
        "CCU2C": {"lut": 2},
        "TRELLIS_DPR16X4": {"lut": 6},
        "TRELLIS_FF": {"ff": 1},
        "DP16KD": {"bram": 1},
        "PDPW16KD": {"bram": 1},
        "MULT18X18D": {"dsp": 1},
    },
)
ICE40: Final = Family(
    "synth_ice40",
    "nextpnr-ice40",
    "icepack",
    "--asc",
    (),
    (),
    {
        "SB_LUT4": {"lut": 1},
        "SB_DFF": {"ff": 1},
        "SB_RAM40_4K": {"bram": 1},
        "SB_MAC16": {"dsp": 1},
    },
)


@dataclass(frozen=True)
class Part:
    """``available`` in the order of :data:`KINDS`."""

    family: Family
    flags: tuple[str, ...]
    available: tuple[int, int, int, int]
    synthesis: tuple[str, ...] = ()

    @property
    def has(self) -> dict[str, int]:
        return dict(zip(KINDS, self.available, strict=True))


PARTS: Final[Mapping[str, Part]] = {
    "ecp5-25k": Part(ECP5, ("--25k", "--package", "CABGA381"), (24288, 24288, 56, 28)),
    "ecp5-45k": Part(ECP5, ("--45k", "--package", "CABGA554"), (43848, 43848, 108, 72)),
    "ecp5-85k": Part(ECP5, ("--85k", "--package", "CABGA756"), (83640, 83640, 208, 156)),
    "ice40-hx8k": Part(ICE40, ("--hx8k", "--package", "ct256"), (7680, 7680, 32, 0)),
    "ice40-up5k": Part(ICE40, ("--up5k", "--package", "sg48"), (5280, 5280, 30, 8), ("-dsp",)),
}


def part_of(name: str) -> Part:
    """By its name; :class:`UaccelError` for one that nobody knows."""
    if name not in PARTS:
        raise UaccelError(f"--part: there is no part '{name}'{did_you_mean(name, PARTS)}; known: {', '.join(PARTS)}")
    return PARTS[name]


def counted(family: Family, types: Mapping[str, int]) -> dict[str, int]:
    """What a netlist takes, by the number of its cells of each type. Flip-flops of iCE40 have many types."""
    taken = dict.fromkeys(KINDS, 0)
    for cell, number in types.items():
        known = "SB_DFF" if cell.startswith("SB_DFF") else cell
        for kind, each in family.cells.get(known, {}).items():
            taken[kind] += number * each
    return taken
