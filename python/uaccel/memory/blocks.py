"""Describes blocks of bytes with live ranges and plans of their offsets; bounds the arena from below.

It also decides which results are computed in place, and checks a finished plan without using the planner's code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import InternalError, need

# View roots: the name whose bytes a view of a view, or an in-place result of one, finally uses.


def roots_of(parents: Mapping[str, str]) -> dict[str, str]:
    """Map each name that has a parent to its outermost one; every name is walked once, as results are reused."""
    roots: dict[str, str] = {}
    for start in parents:
        name, path = start, {start: None}
        while name in parents and name not in roots:
            name = parents[name]
            if name in path:
                raise InternalError(f"memory plan: '{name}' shares its own bytes; look for a cycle among {list(path)}")
            path[name] = None
        root = roots.get(name, name)
        roots.update({child: root for child in path if child in parents})
    return roots


# The planner's question and answer: blocks of bytes with a live range, and a plan with their offsets.


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
    """An output ``low`` may reach into its input ``high`` if it begins at least ``distance`` bytes before it.

    The two share one step, the last of ``high`` and the first of ``low``. In that step the kernel reads ``high`` and
    writes ``low``, both from the first byte upwards. Beginning ``distance`` bytes lower keeps every write behind the
    last read of the byte that it destroys.
    """

    low: str
    high: str
    distance: int


@dataclass(frozen=True)
class Plan:
    """Says where every block lies in the arena, and how good that is.

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
    """Raise InternalError for blocks or overlaps that are inconsistent; every entry point of this package calls it."""
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
    """Refuse, too, a step in which two blocks overlap others: bounds and searches take one at most for granted."""
    written: dict[int, str] = {}
    pairs = {(overlap.low, overlap.high) for overlap in overlaps}
    for overlap in overlaps:
        what = f"memory plan: '{overlap.low}' is to overlap '{overlap.high}'"
        for name in (overlap.low, overlap.high):
            need(name in blocks, f"{what}, but there is no block '{name}'", InternalError)
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
    """The most bytes that a block of ``low`` bytes shares with disjoint others, each given as (size, distance).

    With one other it shares ``low - distance`` bytes at most, and no more than that one has. With several, the shared
    parts are disjoint and all lie at or above the smallest distance, so that together they fit into what is above it.
    """
    each = [max(0, min(size, low - distance)) for size, distance in highs]
    return min(sum(each), low - min(distance for _, distance in highs)) if any(each) else 0


def saved_bytes(blocks: Sequence[Block], overlaps: Sequence[Overlap]) -> dict[int, int]:
    """The bytes that overlaps save at most, by the step in which they happen."""
    by_name = {block.name: block for block in blocks}
    pairs: dict[str, list[tuple[int, int]]] = {}
    for overlap in overlaps:
        pairs.setdefault(overlap.low, []).append((by_name[overlap.high].size, overlap.distance))
    return {by_name[low].first: saved(by_name[low].size, highs) for low, highs in pairs.items()}


def live_bytes(blocks: Sequence[Block], overlaps: Sequence[Overlap] = ()) -> dict[int, int]:
    """Live bytes at every step where some block begins. Sums grow at these steps only, so the largest is among them."""
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


# Sharing: blocks that live in each other's bytes. Views must share, in-place results may.
#
# A share is a pair (child, parent): the child begins at the parent's first byte. A view (reshape) holds the parent's
# values, so it shares at any time. An in-place result overwrites the parent, so it may share only if nothing reads the
# parent's bytes afterwards. It should share only where that saves memory: a small result in a large block that was
# about to end keeps the large block occupied for the result's whole life.

Share = tuple[str, str]


def merge_shared(blocks: Sequence[Block], shares: Sequence[Share]) -> tuple[list[Block], Mapping[str, str]]:
    """One block for each set of blocks that share bytes, and for each name the name of the block it became part of.

    The merged block has the name of the outermost parent, lives while any of its members lives, and has the largest
    size and alignment among them. The caller guarantees that the shares are legal.
    """
    validate(blocks)
    representative = _roots(blocks, shares)
    by_name = {block.name: block for block in blocks}
    merged: dict[str, Block] = {}
    for block in blocks:
        name = representative[block.name]
        merged[name] = _union(merged.get(name, by_name[name]), block)
    return list(merged.values()), representative


def overlaps_of(
    merged: Sequence[Block], representative: Mapping[str, str], overlaps: Sequence[Overlap]
) -> list[Overlap]:
    """Overlaps of blocks as overlaps of the merged blocks that they are part of now.

    An overlap is dropped if its step is no longer the last of ``high`` and the first of ``low``, because another member
    of the merged block lives longer. It is dropped, too, if its distance is so large that nothing is shared.
    """
    by_name = {block.name: block for block in merged}
    found: dict[tuple[str, str], int] = {}
    for overlap in overlaps:
        low, high = by_name[representative[overlap.low]], by_name[representative[overlap.high]]
        if high.first < high.last == low.first and overlap.distance < low.size:
            pair = low.name, high.name
            found[pair] = max(overlap.distance, found.get(pair, 0))
    return [Overlap(low, high, distance) for (low, high), distance in found.items()]


def choose_inplace(
    blocks: Sequence[Block], required: Sequence[Share], optional: Sequence[Share], overlaps: Sequence[Overlap] = ()
) -> list[Share]:
    """All required shares, and those of the optional ones that do not increase the lower bound.

    Give every block the lifetime of its own value alone. An optional share is dropped where another member of the
    parent's set (say, a view of it) is still needed when the child begins, and where the child already has a place.
    ``overlaps`` are those of blocks that are not shared.

    The choice is greedy, one share after the other, and keeps this invariant: the lower bound never rises. Between two
    blocks of equal size a share costs nothing, since one ends where the other begins. So these are tried first;
    otherwise the order given decides.
    """
    merged, representative = merge_shared(blocks, required)
    _refuse_unknown(blocks, optional)
    groups = _groups(blocks, merged, representative, overlaps)
    declared = set(optional)
    sizes = {block.name: block.size for block in blocks}
    bound = groups.bound()
    chosen = list(required)
    for child, parent in sorted(optional, key=lambda share: sizes[share[0]] != sizes[share[1]]):
        if not groups.may_overwrite(child, parent, declared):
            continue
        attempt = groups.bound_if_joined(child, parent)
        if attempt <= bound:
            groups.join(child, parent)
            bound = attempt
            chosen.append((child, parent))
    return chosen


@dataclass(frozen=True)
class _Groups:
    """The sets of blocks that share bytes so far, by the name of their outermost parent.

    ``live[step - origin]`` are the live bytes of a step, and ``overlapped`` those of them that overlaps count twice:
    the lower bound is the largest difference. Both arrays are kept up to date, so that a join is tried in time linear
    in the steps. ``overlaps`` are given by their step.
    """

    merged: dict[str, Block]
    representative: dict[str, str]
    members: dict[str, list[Block]]
    live: NDArray[np.int64]
    overlapped: NDArray[np.int64]
    overlaps: Mapping[int, Sequence[Overlap]]
    origin: int

    def bound(self) -> int:
        return int((self.live - self.overlapped).max(initial=0))

    def may_overwrite(self, child: str, parent: str, declared: set[Share]) -> bool:
        """Whether the child can begin in the parent's bytes without destroying what is still needed.

        The child must be the outermost of its own set and the first of it to live. Every member of the parent's set
        must have ended before, or be read last by the child's own layer, which declares that it may overwrite it.
        """
        group = self.representative[parent]
        if self.representative[child] != child or group == child:
            return False
        start = self.merged[child].first
        if start != next(own for own in self.members[child] if own.name == child).first:
            return False
        return all(
            own.last < start or (own.last == start and (child, own.name) in declared) for own in self.members[group]
        )

    def bound_if_joined(self, child: str, parent: str) -> int:
        group = self.representative[parent]
        return int((self._live_if_joined(child, group) - self._overlapped_if_joined(child, group)).max())

    def _live_if_joined(self, child: str, group: str) -> NDArray[np.int64]:
        live = self.live.copy()
        for block, sign in ((self.merged[child], -1), (self.merged[group], -1), (self._joined(child, group), 1)):
            live[block.first - self.origin : block.last + 1 - self.origin] += sign * block.size
        return live

    def _overlapped_if_joined(self, child: str, group: str) -> NDArray[np.int64]:
        """Recomputed where one of the two begins or ends: an overlap is the last step of one and the first of another,
        so no other step can gain or lose one."""
        overlapped, joined = self.overlapped.copy(), self._joined(child, group)
        known = self.merged | {child: joined, group: joined}
        for block in (self.merged[child], self.merged[group]):
            for step in {block.first, block.last} & self.overlaps.keys():
                overlapped[step - self.origin] = self.overlapped_at(step, known)
        return overlapped

    def overlapped_at(self, step: int, known: Mapping[str, Block]) -> int:
        """The bytes that overlaps save at a step, where ``known`` are the merged blocks."""
        names = {name for overlap in self.overlaps[step] for name in (overlap.low, overlap.high)}
        parts = {name: known[self.representative[name]] for name in names}
        merged = list({part.name: part for part in parts.values()}.values())
        still = overlaps_of(merged, {name: part.name for name, part in parts.items()}, self.overlaps[step])
        return saved_bytes(merged, still).get(step, 0)

    def _joined(self, child: str, group: str) -> Block:
        return _union(self.merged[group], self.merged[child])

    def join(self, child: str, parent: str) -> None:
        group = self.representative[parent]
        self.live[:], self.overlapped[:] = (
            self._live_if_joined(child, group),
            self._overlapped_if_joined(child, group),
        )
        self.merged[group] = self._joined(child, group)
        del self.merged[child]
        for own in self.members[child]:
            self.representative[own.name] = group
        self.members[group] += self.members.pop(child)


def _groups(
    blocks: Sequence[Block],
    merged: Sequence[Block],
    representative: Mapping[str, str],
    overlaps: Sequence[Overlap],
) -> _Groups:
    members: dict[str, list[Block]] = {block.name: [] for block in merged}
    for own in blocks:
        members[representative[own.name]].append(own)
    origin = min((block.first for block in merged), default=0)
    live = np.zeros(max((block.last for block in merged), default=0) + 1 - origin, np.int64)
    for block in merged:
        live[block.first - origin : block.last + 1 - origin] += block.size
    written: dict[int, list[Overlap]] = {}
    firsts = {block.name: block.first for block in blocks}
    for overlap in overlaps:
        written.setdefault(firsts[overlap.low], []).append(overlap)
    by_name = {block.name: block for block in merged}
    groups = _Groups(by_name, dict(representative), members, live, np.zeros_like(live), written, origin)
    for step in written:
        groups.overlapped[step - origin] = groups.overlapped_at(step, by_name)
    return groups


def _union(parent: Block, child: Block) -> Block:
    return Block(
        name=parent.name,
        size=max(parent.size, child.size),
        first=min(parent.first, child.first),
        last=max(parent.last, child.last),
        alignment=max(parent.alignment, child.alignment),
    )


def _refuse_unknown(blocks: Sequence[Block], shares: Sequence[Share]) -> None:
    names = {block.name for block in blocks}
    for child, parent in shares:
        for name in (child, parent):
            if name not in names:
                raise InternalError(
                    f"memory plan: '{child}' shares the bytes of '{parent}', but there is no block '{name}'"
                )


def _roots(blocks: Sequence[Block], shares: Sequence[Share]) -> dict[str, str]:
    """Map each block to its outermost parent, which is the block itself where it shares with none."""
    _refuse_unknown(blocks, shares)
    parents: dict[str, str] = {}
    for child, parent in shares:
        if parents.setdefault(child, parent) != parent:
            raise InternalError(
                f"memory plan: '{child}' shares the bytes of both '{parents[child]}' and '{parent}'; choose one"
            )
    roots = roots_of(parents)
    return {block.name: roots.get(block.name, block.name) for block in blocks}


# An independent check of a plan. It shares no code with the planner, so that a bug there cannot hide itself here.


def check(blocks: Sequence[Block], plan: Plan, overlaps: Sequence[Overlap] = ()) -> None:
    """Raise InternalError if the plan would let a block be overwritten, misaligned or placed outside the arena.

    Two blocks share a byte exactly if the upper one begins before the lower one ends. So in order of offsets each
    block is compared with those behind it, up to the first that begins at or above its end.
    """
    validate(blocks, overlaps)
    distances = {(overlap.low, overlap.high): overlap.distance for overlap in overlaps}
    for block in blocks:
        _check_place(block, plan)
    unknown = sorted(set(plan.offsets) - {block.name for block in blocks})
    if unknown:
        raise InternalError(f"memory plan: offset for '{unknown[0]}', which is not among the blocks")
    by_offset = sorted((block for block in blocks if block.size), key=lambda block: plan.offsets[block.name])
    for index, low in enumerate(by_offset):
        end = plan.offsets[low.name] + low.size
        for high in by_offset[index + 1 :]:
            if plan.offsets[high.name] >= end:
                break
            if not any(_stays_behind(*pair, plan, distances) for pair in ((low, high), (high, low))):
                _check_disjoint_in_time(low, high, plan)


def _stays_behind(low: Block, high: Block, plan: Plan, distances: Mapping[tuple[str, str], int]) -> bool:
    """Whether ``low`` may overlap ``high`` and begins far enough before it."""
    distance = distances.get((low.name, high.name))
    return distance is not None and plan.offsets[high.name] - plan.offsets[low.name] >= distance


def _check_place(block: Block, plan: Plan) -> None:
    need(block.name in plan.offsets, f"memory plan: no offset for block '{block.name}'", InternalError)
    offset = plan.offsets[block.name]
    if offset % block.alignment:
        raise InternalError(
            f"memory plan: block '{block.name}' lies at offset {offset}; it must be a multiple of {block.alignment}"
        )
    if offset < 0 or offset + block.size > plan.size:
        raise InternalError(
            f"memory plan: block '{block.name}' takes bytes {offset} to {offset + block.size}; "
            f"the arena has {plan.size}"
        )


def _check_disjoint_in_time(low: Block, high: Block, plan: Plan) -> None:
    step = max(low.first, high.first)
    if step <= min(low.last, high.last):
        raise InternalError(
            f"memory plan: blocks '{low.name}' and '{high.name}' are both live at step {step} "
            f"and share byte {plan.offsets[high.name]}"
        )
