"""The cores whose timings are known: a file each in ``cores/``, named as a board file names the core."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any, Final

from uaccel.basics.documents import parse_toml
from uaccel.cycles.code import Instruction

FOLDER: Final = Path(__file__).with_name("cores")
CONDITION: Final = "(eq|ne|cs|cc|hs|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?"


@dataclass(frozen=True)
class Kind:
    """A row of a core's table: instructions that take the same. The fields from ``units`` on are of pipelines."""

    match: str
    """Of the whole name without width and condition, as a regular expression; so of the operands, any part."""
    operands: str = ""
    cycles: int = 1
    registers_each_cycle: float = 0
    """Of those between braces, which take cycles beside ``cycles``."""
    follows: tuple[str, ...] = ()
    """Names of kinds: behind one of these, whose result is no part of its address, it takes a cycle less."""
    taken: int | None = None
    """Cycles that its jump adds; None: as many as any other's."""
    name: str = ""
    units: tuple[str, ...] = ()
    """That it keeps busy for ``cycles``."""
    latency: int = 1
    alone: bool = False
    """Nothing is issued in the same cycle."""
    first: bool = False
    """Not behind another one in the same cycle."""
    second: bool = False
    """One of a pair must be of such a kind, where the core has ``narrow_pairs``."""
    blocks: bool = False
    """Nothing is issued until its cycles are over."""
    early: int = 0
    """So many cycles earlier than others it needs its sources."""
    late: int = 0
    """So many cycles later than others it needs what it stores, or adds to."""

    def fits(self, instruction: Instruction) -> bool:
        fits = _compiled(self.match).fullmatch(instruction.name) is not None
        return fits and (not self.operands or re.search(self.operands, instruction.operands) is not None)

    def time(self, instruction: Instruction) -> int:
        """Cycles of its own."""
        each = self.registers_each_cycle
        return self.cycles + (ceil(instruction.listed / each) if each else 0)


@lru_cache(maxsize=1024)
def _compiled(match: str) -> re.Pattern[str]:
    """Types of vectors may be part of the pattern or not."""
    return re.compile(f"(?:{match}){CONDITION}(?:\\..*)?")


@dataclass(frozen=True)
class Core:
    """``source`` says whose figures these are. ``units``: how many there are of each; a core without them takes one
    instruction after the other."""

    name: str
    source: str
    taken: int
    kinds: tuple[Kind, ...]
    units: Mapping[str, int] = field(default_factory=dict)
    issue: int = 1
    """Instructions in a cycle."""
    narrow_pairs: bool = False
    """Only instructions of 16 bits are issued together."""
    address_early: int = 0
    """So many cycles earlier than other operands an address is needed."""
    otherwise: Kind = Kind("")
    objdump: tuple[str, ...] = ()
    """Its options for this core."""

    def kind(self, instruction: Instruction) -> Kind:
        """The first row that fits."""
        return next((kind for kind in self.kinds if kind.fits(instruction)), self.otherwise)


@lru_cache(maxsize=16)
def core_of(name: str) -> Core | None:
    """None where nothing is known of it."""
    file = FOLDER / f"{name}.toml"
    if not re.fullmatch(r"[a-z0-9-]+", name) or not file.is_file():
        return None
    content = parse_toml(file.read_text(encoding="utf-8"))
    like = content.pop("like", None)
    if like is not None:
        base = core_of(like)
        return None if base is None else replace(base, name=name, **content)
    kinds = tuple(_kind(row) for row in content.pop("kind"))
    options = tuple(content.pop("objdump", ()))
    otherwise = _kind({"match": "", **content.pop("otherwise", {})})
    return Core(name=name, kinds=kinds, otherwise=otherwise, objdump=options, **content)


def _kind(row: dict[str, Any]) -> Kind:
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return Kind(**values)
