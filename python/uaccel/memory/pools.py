"""Which of several memories holds which blocks: the most used, for their size, lie in the first that has room.

A pool of a stated size is filled by leaving blocks away until the rest fits: always one that is live where the pool
overflows, and of these the one with the fewest accesses a byte. What is left away goes on to the next pool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from uaccel.memory.block import Block, Plan, live_bytes

Planned = Callable[[Sequence[Block]], Plan]
"""A plan of some of the blocks."""


ANY_SIZE: Final = 1 << 40
"""More than any layer has."""


@dataclass(frozen=True)
class Pool:
    """``size`` in bytes; None: as large as what is left for it. ``spare``: of memory off the chip. ``fetch``: of
    constants, which are copied into the arena ahead of their layer, so many bytes for one; None where they are not."""

    name: str
    size: int | None = None
    spare: bool = False
    fetch: int | None = None


@dataclass(frozen=True)
class Store:
    """A memory for constants. ``size``: as a pool's. ``copied``: it is RAM, which start-up fills from flash.
    ``spare``: off the chip. ``least``: it is for what is read so many times in an inference, or more often."""

    name: str
    size: int | None = None
    copied: bool = False
    spare: bool = False
    wait_states: int = 0
    least: float = 0.0


Rooms = Callable[[int, int, Mapping[str, int], Sequence[str]], Sequence[Store]]
"""What is free for constants in each memory of a board, in its order. It is told the bytes of the arena, of inputs and
outputs, of each part of an arena that is divided, and the accelerators. A process has no such memories."""


def divide(
    blocks: Sequence[Block], pools: Sequence[Pool], heat: Mapping[str, float], planned: Planned
) -> tuple[list[list[Block]], list[Block]]:
    """The blocks of each pool, the pools in the order in which they are preferred; and those that fit into none.
    ``heat``: accesses a byte, by a block's name."""
    left, divided = list(blocks), []
    for pool in pools:
        inside = left if pool.size is None else _filled(left, pool.size, heat, planned)
        names = {block.name for block in inside}
        divided.append(inside)
        left = [block for block in left if block.name not in names]
    return divided, left


def _filled(blocks: list[Block], size: int, heat: Mapping[str, float], planned: Planned) -> list[Block]:
    """As much as fits: first by sums of bytes, then by plans, at last once more what a gap is left for."""
    inside, outside = [block for block in blocks if block.size <= size], []
    while (overflow := _overflow(inside, size)) is not None:
        outside.append(_coldest([block for block in inside if block.live(overflow)], heat))
        inside.remove(outside[-1])
    while inside and (plan := planned(inside)).size > size:
        outside.append(_coldest([b for b in inside if plan.offsets[b.name] + b.size > size], heat))
        inside.remove(outside[-1])
    for block in sorted(outside, key=lambda block: (-heat[block.name], -block.size, block.name)):
        if _overflow([*inside, block], size) is None and planned([*inside, block]).size <= size:
            inside.append(block)
    chosen = {block.name for block in inside}
    return [block for block in blocks if block.name in chosen]


def _overflow(blocks: Sequence[Block], size: int) -> int | None:
    """The step at which most bytes are live, if these are too many."""
    sums = live_bytes(blocks)
    step = max(sums, key=lambda step: sums[step], default=None)
    return None if step is None or sums[step] <= size else step


def _coldest(blocks: Sequence[Block], heat: Mapping[str, float]) -> Block:
    return min(blocks, key=lambda block: (heat[block.name], -block.size, block.name))
