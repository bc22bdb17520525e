"""The planner's working form: blocks in a canonical order, time compressed to the steps that matter.

Only the sets of simultaneously live blocks count, so a step whose live set is contained in a neighbour's is dropped.
What remains are ``sections``, numbered from 0; a block covers the sections ``begin[i]`` up to but without ``end[i]``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from uaccel.basics.numbers import round_up
from uaccel.memory.block import Block, Overlap, saved


@dataclass(frozen=True)
class Problem:
    """Blocks with at least one byte, connected in time; index ``i`` means ``blocks[i]`` everywhere."""

    blocks: tuple[Block, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    sections: int
    overlaps: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """How far the first must begin before the second, to overlap it."""

    @cached_property
    def sizes(self) -> list[int]:
        return [block.size for block in self.blocks]

    @cached_property
    def alignments(self) -> list[int]:
        return [block.alignment for block in self.blocks]

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """For each block, those that are live together with it."""
        result: list[list[int]] = [[] for _ in self.blocks]
        active: list[int] = []
        for i in sorted(range(len(self.blocks)), key=self.begin.__getitem__):
            active = [j for j in active if self.end[j] > self.begin[i]]
            for j in active:
                result[j].append(i)
            result[i] = list(active)
            active.append(i)
        return result

    def clearance(self, lower: int, upper: int) -> int:
        """How far the upper block begins behind the beginning of the lower one, at least."""
        return min(self.sizes[lower], self.overlaps.get((lower, upper), self.sizes[lower]))

    @cached_property
    def clearances(self) -> list[list[tuple[int, int, int]]]:
        """For each block its neighbours, with the clearance where they are above it and where they are below."""
        return [
            [(j, self.clearance(i, j), self.clearance(j, i)) for j in near] for i, near in enumerate(self.neighbours)
        ]

    @cached_property
    def written(self) -> dict[int, tuple[int, list[int]]]:
        """For each section in which a block overlaps others, that block and those."""
        result: dict[int, tuple[int, list[int]]] = {}
        for low, high in self.overlaps:
            result.setdefault(self.begin[low], (low, []))[1].append(high)
        return result

    def saved(self, low: int, highs: Iterable[int], sizes: Sequence[int], grain: int = 1) -> int:
        """What overlaps save where blocks are ``sizes`` large and begin at multiples of ``grain``."""
        return saved(sizes[low], [(sizes[high], round_up(self.overlaps[low, high], grain)) for high in highs])

    @cached_property
    def live(self) -> list[list[int]]:
        """For each section, the blocks that are live in it."""
        result: list[list[int]] = [[] for _ in range(self.sections)]
        for i in range(len(self.blocks)):
            for section in range(self.begin[i], self.end[i]):
                result[section].append(i)
        return result


def split(blocks: Sequence[Block], overlaps: Sequence[Overlap] = ()) -> list[Problem]:
    """The independent parts of a problem in time order: no block of one part is ever live with one of another.

    The result does not depend on the order in which the blocks are given.
    """
    ordered = sorted(
        (block for block in blocks if block.size),
        key=lambda block: (block.first, block.last, -block.size, -block.alignment, block.name),
    )
    parts: list[list[Block]] = []
    last = 0
    for block in ordered:
        if not parts or block.first > last:
            parts.append([])
            last = block.last
        parts[-1].append(block)
        last = max(last, block.last)
    return [_compress(part, overlaps) for part in parts]


def _compress(blocks: Sequence[Block], overlaps: Sequence[Overlap]) -> Problem:
    number = {block.name: i for i, block in enumerate(blocks)}
    within = {
        (number[overlap.low], number[overlap.high]): overlap.distance
        for overlap in overlaps
        if overlap.low in number and overlap.high in number
    }
    steps = _telling_steps(blocks)
    begin = tuple(bisect_left(steps, block.first) for block in blocks)
    end = tuple(bisect_right(steps, block.last) for block in blocks)
    return Problem(tuple(blocks), begin, end, len(steps), within)


def _telling_steps(blocks: Iterable[Block]) -> list[int]:
    """The steps with a maximal live set: a block begins there and one ends before the next begins."""
    firsts = sorted({block.first for block in blocks})
    lasts = sorted({block.last for block in blocks})
    telling = []
    for step, following in zip(firsts, [*firsts[1:], None], strict=True):
        index = bisect_left(lasts, step)
        if following is None or lasts[index] < following:
            telling.append(step)
    return telling
