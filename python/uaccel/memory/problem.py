"""The planner's working form: blocks in a canonical order, time compressed to the steps that matter.

Only the sets of simultaneously live blocks count, so a step whose live set is contained in a neighbour's is dropped.
What remains are ``sections``, numbered from 0; a block covers the sections ``begin[i]`` up to but without ``end[i]``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from uaccel.memory.block import Block


@dataclass(frozen=True)
class Problem:
    """Blocks with at least one byte, connected in time; index ``i`` means ``blocks[i]`` everywhere."""

    blocks: tuple[Block, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    sections: int

    @cached_property
    def sizes(self) -> list[int]:
        return [block.size for block in self.blocks]

    @cached_property
    def alignments(self) -> list[int]:
        return [block.alignment for block in self.blocks]

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """For each block, the blocks it may not share a byte with."""
        result: list[list[int]] = [[] for _ in self.blocks]
        active: list[int] = []
        for i in sorted(range(len(self.blocks)), key=self.begin.__getitem__):
            active = [j for j in active if self.end[j] > self.begin[i]]
            for j in active:
                result[j].append(i)
            result[i] = list(active)
            active.append(i)
        return result

    @cached_property
    def live(self) -> list[list[int]]:
        """For each section, the blocks that are live in it."""
        result: list[list[int]] = [[] for _ in range(self.sections)]
        for i in range(len(self.blocks)):
            for section in range(self.begin[i], self.end[i]):
                result[section].append(i)
        return result


def split(blocks: Sequence[Block]) -> list[Problem]:
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
    return [_compress(part) for part in parts]


def _compress(blocks: Sequence[Block]) -> Problem:
    steps = _telling_steps(blocks)
    begin = tuple(bisect_left(steps, block.first) for block in blocks)
    end = tuple(bisect_right(steps, block.last) for block in blocks)
    return Problem(tuple(blocks), begin, end, len(steps))


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
