"""Orders in which a tensor's axes lie: ``np.transpose(value, layout)`` is what is stored."""

from __future__ import annotations

import bisect
import itertools
import operator
from collections.abc import Sequence
from typing import Final

Layout = tuple[int, ...]

_NAMES: Final[dict[Layout, str]] = {(0, 3, 1, 2): "nchw", (0, 2, 3, 1): "nhwc"}


def identity(rank: int) -> Layout:
    return tuple(range(rank))


def compose(first: Sequence[int], then: Sequence[int]) -> Layout:
    """The layout of a tensor that lies as ``first`` says, once its axes are permuted by ``then``."""
    return tuple(first[axis] for axis in then)


def inverse(layout: Sequence[int]) -> Layout:
    return tuple(layout.index(axis) for axis in range(len(layout)))


def bytes_order(shape: Sequence[int], layout: Layout) -> Layout:
    """Layouts that agree in this hold the same bytes: axes of one element may lie anywhere."""
    return tuple(axis for axis in layout if shape[axis] != 1)


def reshape_groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[Layout, Layout]]:
    """The axes that a reshape keeps, splits or joins: neighbours with as many elements as those that come of them."""
    olds, news = (list(itertools.accumulate(extents, operator.mul)) for extents in (before, after))
    cuts = sorted(set(olds) & set(news))

    def axes_of(ends: list[int], cut: int) -> Layout:
        return tuple(axis for axis, end in enumerate(ends) if bisect.bisect_left(cuts, end) == cut)

    return [(axes_of(olds, cut), axes_of(news, cut)) for cut in range(len(cuts))]


def layout_name(layout: Layout) -> str:
    """Of a tensor that models call NCHW; any other by the numbers of its axes."""
    return _NAMES.get(layout, "axes" + "".join(map(str, layout)))
