"""Cycles of what was executed: blocks that the counting plugin saw, their instructions, and a core's timings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from uaccel.cycles.blocks import Block, Executed, Mark
from uaccel.cycles.code import Code, Instruction, functions_in, listed
from uaccel.cycles.cores import Core, core_of
from uaccel.cycles.listing import parse
from uaccel.cycles.pipeline import cycles


class Region(NamedTuple):
    """Of addresses, from ``begin`` up to, not including, ``end``: a fetch that goes astray waits so many cycles."""

    begin: int
    end: int
    wait_states: int


class _UnknownCodeError(Exception):
    """Something was executed that the listing does not have."""


@dataclass(frozen=True)
class Estimator:
    """For one firmware on one core."""

    core: Core
    code: Code
    slow: Sequence[Region] = ()
    functions: Mapping[int, str] = field(default_factory=dict)
    """By the address at which each begins."""
    _rows: dict[Block, list[Instruction]] = field(default_factory=dict)
    _costs: dict[tuple[Block, Block | None], int] = field(default_factory=dict)

    def of(self, marks: Iterable[Mark]) -> int | None:
        """Cycles between the readings; None where code was executed that the listing does not have."""
        try:
            return sum(self._executed(row) for mark in marks for row in mark.executed)
        except _UnknownCodeError:
            return None

    def each(self, mark: Mark) -> list[int]:
        """Cycles of each row of what was executed; empty where the listing does not have all of it."""
        try:
            return [self._executed(row) for row in mark.executed]
        except _UnknownCodeError:
            return []

    def _executed(self, row: Executed) -> int:
        known = sum(times * self._cost(row.block, before) for before, times in row.before.items())
        return known + (row.times - sum(row.before.values())) * self._cost(row.block, None)

    def _cost(self, block: Block, before: Block | None) -> int:
        """Of one execution, directly behind another block; behind one that is unknown there was a jump."""
        key = (block, before)
        if key not in self._costs:
            row, earlier = self._row(block), self._row(before) if before is not None else []
            last = earlier[-1] if earlier else None
            jumped = last is None or last.address + last.size != block.address
            jump = self._jump(last) + self._wait(block) if jumped else 0
            literals = self._wait(block) * sum(_is_literal(instruction) for instruction in row)
            context = [] if jump or (jumped and not self.core.units) else earlier
            if before == block:
                context = context * 2  # what goes on and on is steady by then
            self._costs[key] = jump + literals + cycles(self.core, context + row) - cycles(self.core, context)
        return self._costs[key]

    def _row(self, block: Block) -> list[Instruction]:
        if block not in self._rows:
            row: list[Instruction] = []
            address = block.address
            for _ in range(block.instructions):
                instruction = self.code.get(address)
                if instruction is None:
                    raise _UnknownCodeError
                row.append(instruction)
                address += instruction.size
            self._rows[block] = row
        return self._rows[block]

    def _jump(self, last: Instruction | None) -> int:
        taken = self.core.kind(last).taken if last is not None else None
        return self.core.taken if taken is None else taken

    def _wait(self, block: Block) -> int:
        regions = (region.wait_states for region in self.slow if region.begin <= block.address < region.end)
        return next(regions, 0)


def _is_literal(instruction: Instruction) -> bool:
    """A constant among the code."""
    return instruction.name.startswith(("ldr", "vldr")) and "[pc" in instruction.operands


def estimator_for(core_name: str, elf: Path, objdump: str, slow: Sequence[Region] = ()) -> tuple[Estimator | None, str]:
    """Or why there is none, in words."""
    core = core_of(core_name)
    if core is None:
        return None, f"the timings of {core_name} are not published, or not known here"
    listing = listed(elf, objdump, core.objdump)
    code = parse(listing)
    if not code:
        return None, f"{objdump} is missing or does not read {elf.name}; install the binutils of the board's toolchain"
    return Estimator(core, code, slow, functions_in(listing)), ""
