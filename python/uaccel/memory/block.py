"""What the planner is asked and what it answers: blocks of bytes with a lifetime, and a plan with their offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uaccel.errors import InternalError


@dataclass(frozen=True)
class Block:
    """Bytes that must stay intact from step ``first`` to step ``last``, both included.

    Two blocks whose lifetimes share a step never share a byte, but for an ``Overlap``: a layer reads its inputs while
    it writes its output.
    """

    name: str
    size: int
    first: int
    last: int
    alignment: int = 4

    def live(self, step: int) -> bool:
        return self.first <= step <= self.last


@dataclass(frozen=True)
class Overlap:
    """``low`` may reach into ``high`` if it begins at least ``distance`` bytes before it.

    The two share one step, the last of ``high`` and the first of ``low``: there the one is read and the other written,
    both upwards, and ``distance`` keeps the writing behind the reading.
    """

    low: str
    high: str
    distance: int


@dataclass(frozen=True)
class Plan:
    """Where every block lies in the arena, and how good that is.

    ``lower_bound`` is the largest sum of simultaneously live bytes, what may overlap counted once and padding not at
    all: no arena can be smaller.
    ``optimal`` says that no arena of fewer bytes than ``size`` exists at all, alignment considered.
    ``method`` names what found the plan of the largest part: an order of placement, "local-search" or "exact".
    """

    offsets: Mapping[str, int]
    size: int
    lower_bound: int
    optimal: bool
    method: str


def validate(blocks: Sequence[Block], overlaps: Sequence[Overlap] = ()) -> None:
    """Raise InternalError for a block or an overlap that means nothing; every entry of this package calls it."""
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
    _validate_overlaps({block.name: block for block in blocks}, overlaps)


def _validate_overlaps(blocks: Mapping[str, Block], overlaps: Sequence[Overlap]) -> None:
    written: dict[int, str] = {}
    pairs = {(overlap.low, overlap.high) for overlap in overlaps}
    for overlap in overlaps:
        what = f"memory plan: '{overlap.low}' is to overlap '{overlap.high}'"
        for name in (overlap.low, overlap.high):
            if name not in blocks:
                raise InternalError(f"{what}, but there is no block '{name}'")
        low, high = blocks[overlap.low], blocks[overlap.high]
        if not high.first < high.last == low.first:
            raise InternalError(f"{what}, which must begin before step {low.first} and end there")
        if overlap.distance < 0 or len(pairs) < len(overlaps):
            raise InternalError(f"{what} by distance {overlap.distance}; give one a pair, of 0 or more")
        if written.setdefault(low.first, overlap.low) != overlap.low:
            raise InternalError(f"{what} at step {low.first}, where '{written[low.first]}' does so, too; choose one")


def live_at(blocks: Sequence[Block], step: int) -> list[Block]:
    """The blocks whose bytes must be intact at ``step``, in the given order."""
    return [block for block in blocks if block.live(step)]


def saved(low: int, highs: Sequence[tuple[int, int]]) -> int:
    """The most bytes that a block of ``low`` bytes shares with disjoint others, each given as (size, distance)."""
    each = [max(0, min(size, low - distance)) for size, distance in highs]
    return min(sum(each), low - min(distance for _, distance in highs)) if any(each) else 0


def saved_bytes(blocks: Sequence[Block], overlaps: Sequence[Overlap]) -> dict[int, int]:
    """What overlaps save at most, by the step."""
    by_name = {block.name: block for block in blocks}
    pairs: dict[str, list[tuple[int, int]]] = {}
    for overlap in overlaps:
        pairs.setdefault(overlap.low, []).append((by_name[overlap.high].size, overlap.distance))
    return {by_name[low].first: saved(by_name[low].size, highs) for low, highs in pairs.items()}


def live_bytes(blocks: Sequence[Block], overlaps: Sequence[Overlap] = ()) -> dict[int, int]:
    """Live bytes at every step where some block begins; the largest sum always occurs at one of these."""
    overlapped = saved_bytes(blocks, overlaps)
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
            sums[step] = total - overlapped.get(step, 0)
    return sums


def lower_bound(blocks: Sequence[Block], overlaps: Sequence[Overlap] = ()) -> int:
    """The largest sum of simultaneously live bytes, what may overlap counted once; no arena can be smaller."""
    validate(blocks, overlaps)
    return max(live_bytes(blocks, overlaps).values(), default=0)
