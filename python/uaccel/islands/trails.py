"""Several moves in a row as one: of which parts a tensor's elements are, and in which order these lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from uaccel.model import Shape
from uaccel.ops.axes import Layout, identity

MOST_PARTS: Final = 6
"""Axes that a transposition has."""


@dataclass(frozen=True)
class Trail:
    """A tensor that came of ``base`` by reshapes and transpositions: of ``base`` seen with ``extents`` the axes in this
    ``order``, none of them of one element."""

    base: Any
    extents: Shape
    order: Layout

    @property
    def moves(self) -> bool:
        return self.order != identity(len(self.order))

    def permuted(self, shape: Shape, axes: Layout) -> Trail | None:
        """The tensor seen with this shape, with its axes permuted; None where an axis begins within a part."""
        trail: Trail = self
        groups: list[list[int]] = []
        place = 0
        for extent in shape:
            first, wanted = place, extent
            while wanted > 1:
                part = trail.extents[trail.order[place]]
                if wanted % part and part % wanted:
                    return None
                if part > wanted:
                    trail, part = trail._cut(trail.order[place], wanted), wanted
                wanted, place = wanted // part, place + 1
            groups.append(list(range(first, place)))
        return Trail(self.base, trail.extents, tuple(trail.order[at] for axis in axes for at in groups[axis]))

    def _cut(self, part: int, outer: int) -> Trail:
        """With a part in two."""
        inner = self.extents[part] // outer
        extents = (*self.extents[:part], outer, inner, *self.extents[part + 1 :])
        order: list[int] = []
        for number in self.order:
            order += [number, number + 1] if number == part else [number + (number > part)]
        return Trail(self.base, extents, tuple(order))

    @property
    def joined(self) -> Trail:
        """Parts that follow each other before and after are one."""
        runs: list[list[int]] = []
        for number in self.order:
            if runs and runs[-1][-1] + 1 == number:
                runs[-1].append(number)
            else:
                runs.append([number])
        first = sorted(run[0] for run in runs)
        sizes = {run[0]: math.prod(self.extents[number] for number in run) for run in runs}
        return Trail(self.base, tuple(sizes[at] for at in first), tuple(first.index(run[0]) for run in runs))


def beginning(base: Any, shape: Sequence[int]) -> Trail:
    """A tensor of no moves yet."""
    extents = tuple(int(extent) for extent in shape if extent != 1)
    return Trail(base, extents, identity(len(extents)))
