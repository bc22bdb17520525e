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
from uaccel.memory.block import Block, lower_bound, validate

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


def choose_inplace(blocks: Sequence[Block], required: Sequence[Share], optional: Sequence[Share]) -> list[Share]:
    """All required shares, and those of the optional ones that do not increase the lower bound.

    Give every block the lifetime of its own value alone. An optional share is dropped where another member of the
    parent's set (say, a view of it) is still needed when the child begins, and where the child already has a place.
    Equal sizes are tried first, as they never cost anything; otherwise the order given decides.
    """
    merged, representative = merge_shared(blocks, required)
    _refuse_unknown(blocks, optional)
    groups = _groups(blocks, merged, representative)
    declared = set(optional)
    sizes = {block.name: block.size for block in blocks}
    bound = lower_bound(merged)
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
    from ``origin`` on."""

    merged: dict[str, Block]
    representative: dict[str, str]
    members: dict[str, list[Block]]
    live: NDArray[np.int64]
    origin: int

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
        return int(self._live_if_joined(child, self.representative[parent]).max())

    def _live_if_joined(self, child: str, group: str) -> NDArray[np.int64]:
        live = self.live.copy()
        for block, sign in ((self.merged[child], -1), (self.merged[group], -1), (self._joined(child, group), 1)):
            live[block.first - self.origin : block.last + 1 - self.origin] += sign * block.size
        return live

    def _joined(self, child: str, group: str) -> Block:
        return _union(self.merged[group], self.merged[child])

    def join(self, child: str, parent: str) -> None:
        group = self.representative[parent]
        self.live[:] = self._live_if_joined(child, group)
        self.merged[group] = self._joined(child, group)
        del self.merged[child]
        for own in self.members[child]:
            self.representative[own.name] = group
        self.members[group] += self.members.pop(child)


def _groups(blocks: Sequence[Block], merged: Sequence[Block], representative: Mapping[str, str]) -> _Groups:
    members: dict[str, list[Block]] = {block.name: [] for block in merged}
    for own in blocks:
        members[representative[own.name]].append(own)
    origin = min((block.first for block in merged), default=0)
    live = np.zeros(max((block.last for block in merged), default=0) + 1 - origin, np.int64)
    for block in merged:
        live[block.first - origin : block.last + 1 - origin] += block.size
    return _Groups({block.name: block for block in merged}, dict(representative), members, live, origin)


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
