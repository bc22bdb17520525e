"""What the planner is asked and what it answers: blocks of bytes with a lifetime, and a plan with their offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uaccel.errors import InternalError


@dataclass(frozen=True)
class Block:
    """Bytes that must stay intact from step ``first`` to step ``last``, both included.

    Two blocks whose lifetimes share a step never share a byte: a layer reads its inputs while it writes its output.
    """

    name: str
    size: int
    first: int
    last: int
    alignment: int = 4

    def live(self, step: int) -> bool:
        return self.first <= step <= self.last


@dataclass(frozen=True)
class Plan:
    """Where every block lies in the arena, and how good that is.

    ``lower_bound`` is the largest sum of simultaneously live bytes, padding not counted: no arena can be smaller.
    ``optimal`` says that no arena of fewer bytes than ``size`` exists at all, alignment considered.
    ``method`` names what found the plan of the largest part: an order of placement, "local-search" or "exact".
    """

    offsets: Mapping[str, int]
    size: int
    lower_bound: int
    optimal: bool
    method: str


def validate(blocks: Sequence[Block]) -> None:
    """Raise InternalError for a block that means nothing; every entry of this package calls it."""
    names: set[str] = set()
    for block in blocks:
        if block.name in names:
            raise InternalError(f"memory plan: block '{block.name}' is given twice; names must be unique")
        names.add(block.name)
        if block.size < 0:
            raise InternalError(f"memory plan: block '{block.name}' has size {block.size}; sizes are 0 or more")
        if block.first > block.last:
            raise InternalError(
                f"memory plan: block '{block.name}' lives from step {block.first} to {block.last}; "
                "the first step must not come after the last"
            )
        if block.alignment < 1 or block.alignment & (block.alignment - 1):
            raise InternalError(
                f"memory plan: block '{block.name}' has alignment {block.alignment}; it must be a power of two"
            )


def live_at(blocks: Sequence[Block], step: int) -> list[Block]:
    """The blocks whose bytes must be intact at ``step``, in the given order."""
    return [block for block in blocks if block.live(step)]


def live_bytes(blocks: Sequence[Block]) -> dict[int, int]:
    """Live bytes at every step where some block begins; the largest sum always occurs at one of these."""
    change: dict[int, int] = {}
    for block in blocks:
        change[block.first] = change.get(block.first, 0) + block.size
        change[block.last + 1] = change.get(block.last + 1, 0) - block.size
    beginnings = {block.first for block in blocks}
    sums: dict[int, int] = {}
    total = 0
    for step in sorted(change):
        total += change[step]
        if step in beginnings:
            sums[step] = total
    return sums


def lower_bound(blocks: Sequence[Block]) -> int:
    """The largest sum of simultaneously live bytes; no arena can be smaller."""
    validate(blocks)
    return max(live_bytes(blocks).values(), default=0)
