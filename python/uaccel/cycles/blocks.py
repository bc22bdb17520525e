"""What the counting plugin wrote: which blocks of instructions were executed between two readings of the counter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Block:
    """Instructions in a row, all of them executed or none."""

    address: int
    instructions: int


@dataclass(frozen=True)
class Executed:
    """``before``: how often it came directly behind another block; not all of them need be known."""

    block: Block
    times: int
    before: Mapping[Block, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Mark:
    """A reading of the counter: ``count`` instructions so far; ``executed`` since the reading before."""

    count: int
    executed: tuple[Executed, ...]
    told: tuple[int, ...] = ()
    """What stands behind the count: cycles, and those that a simulated core waited for code, data and devices."""

    @property
    def instructions(self) -> int:
        """Since the reading before."""
        return sum(row.times * row.block.instructions for row in self.executed)


def read_marks(file: Path) -> list[Mark]:
    """None where nothing was written, or not to its end."""
    known: dict[int, Block] = {}
    marks: list[tuple[list[int], list[list[int]]]] = []
    try:
        for line in file.read_text(encoding="ascii").splitlines():
            if line.startswith("mark "):
                marks.append(([int(word) for word in line.split()[1:]], []))
            else:
                number, address, *numbers = line.split()
                known[int(number)] = Block(int(address, 16), int(numbers[0]))
                marks[-1][1].append([int(number), *map(int, numbers[1:])])
        return [Mark(head[0], tuple(_executed(row, known) for row in rows), tuple(head[1:])) for head, rows in marks]
    except (OSError, ValueError, LookupError):
        return []


def _executed(row: list[int], known: Mapping[int, Block]) -> Executed:
    number, times, *before = row
    pairs = zip(before[::2], before[1::2], strict=True)
    counts: dict[Block, int] = {}
    for other, count in pairs:  # QEMU may have translated the same instructions more than once
        counts[known[other]] = counts.get(known[other], 0) + count
    return Executed(known[number], times, counts)
