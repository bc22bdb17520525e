"""Blocks that live in each other's bytes: views, which must, and in-place results, which may.

A share is a pair (child, parent): the child begins at the parent's first byte. A view (reshape) holds the parent's
values, so it shares at any time. An in-place result overwrites the parent, so it may share only if nothing reads the
parent's bytes afterwards; and it should share only where that saves memory: a small result in a large block that
already was near its end keeps the large block occupied for the result's whole life.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uaccel.basics.roots import roots_of
from uaccel.errors import InternalError
from uaccel.memory.block import Block, Overlap, saved_bytes, validate

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
    """Overlaps of blocks as overlaps of those that they were merged into; without those that no longer hold, because
    somebody else begins or ends what was to overlap."""
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
    Equal sizes are tried first, as they never cost anything; otherwise the order given decides.
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
    """The sets of blocks that share bytes so far, by the name of their outermost parent; ``live`` are bytes by step,
    from ``origin`` on, and ``overlapped`` those of them that are counted twice; ``overlaps`` go by the step."""

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
        """Whether the child can begin in the parent's bytes without destroying what is still needed."""
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
        overlapped, joined = self.overlapped.copy(), self._joined(child, group)
        known = self.merged | {child: joined, group: joined}
        for block in (self.merged[child], self.merged[group]):
            for step in {block.first, block.last} & self.overlaps.keys():
                overlapped[step - self.origin] = self.overlapped_at(step, known)
        return overlapped

    def overlapped_at(self, step: int, known: Mapping[str, Block]) -> int:
        """What overlaps save at a step, where the groups are these."""
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
    """For each block the outermost parent, which is the block itself where it shares with none."""
    _refuse_unknown(blocks, shares)
    parents: dict[str, str] = {}
    for child, parent in shares:
        if parents.setdefault(child, parent) != parent:
            raise InternalError(
                f"memory plan: '{child}' shares the bytes of both '{parents[child]}' and '{parent}'; choose one"
            )
    roots = roots_of(parents)
    return {block.name: roots.get(block.name, block.name) for block in blocks}
