"""Computes which rows of its inputs a layer needs for some rows of its output, and the operator of these rows alone.

With this, chains of layers run some rows at a time, so that no tensor between them is ever whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from uaccel.lower.program import Layer
from uaccel.model import TensorInfo
from uaccel.ops.conv import Conv2d, DepthwiseConv2d, TransposeConv2d, TransposeConv2dAttrs
from uaccel.ops.layout import Beside, Frame
from uaccel.ops.operator import NAMESPACE, Elementwise, Operand, Site
from uaccel.ops.pool import AveragePool2d, MaxPool2d, WindowMax
from uaccel.ops.resize import ONE, ResizeBilinear, ResizeBilinearAttrs, ResizedRows, ResizeNearest, ResizeNearestAttrs
from uaccel.ops.windows import SlidingWindow, window_of
from uaccel.util.text import CPU

RANK: Final = 4  # Batch, rows, columns, channels.
PIXEL: Final = SlidingWindow()
# The axis of the weights along which a window's rows lie.
WEIGHT_ROWS: Final = {NAMESPACE + Conv2d.name: 1, NAMESPACE + DepthwiseConv2d.name: 0}
# Kinds of rows that a resized or transposed layer may have: each becomes a C function of its own, so more cost flash.
MOST_KINDS: Final = 8
POOLS: Final = frozenset(NAMESPACE + pool.name for pool in (AveragePool2d, MaxPool2d, WindowMax))


@dataclass(frozen=True)
class RowReach:
    """States the input rows under a sliding window; the input has ``height`` rows."""

    height: int
    window: SlidingWindow = PIXEL

    @property
    def scale(self) -> Fraction:
        """Rows of the input for each row of the output."""
        return Fraction(self.window.strides[0])

    @property
    def kept(self) -> int:
        """How many rows the next row of the output reads again, at least."""
        return max(0, min(self.window.extent(0, 1), self.height) - self.window.strides[0])

    def begin(self, row: int) -> int:
        """The first input row that this row of the output reads; rows before it are needed no more."""
        return max(0, int(self.window.place(0, row)))

    def rows(self, first: int, last: int) -> RowRange:
        """The input rows for the output rows from ``first`` up to ``last``. The window spans ``low`` to ``high``. Its
        part outside the input is padding above and below; either may be all of it, so ``begin`` and ``end`` are held
        within the input and ``top`` within the window."""
        low = int(self.window.place(0, first))
        high = low + self.window.extent(0, last - first)
        begin = min(max(0, low), self.height)
        end = max(begin, min(self.height, high))
        top = min(begin, high) - min(low, begin)
        return RowRange(begin, end, top, high - low - top - (end - begin))


@dataclass(frozen=True)
class Listed:
    """Lists the input rows of each output row: from ``begins`` up to ``ends``, both rising.

    ``places``: where each output row lies between the input's rows, in ``unit``ths of a row.
    """

    height: int
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    places: tuple[int, ...]
    unit: int = 1

    @property
    def scale(self) -> Fraction:
        return Fraction(self.height, len(self.begins))

    @property
    def kept(self) -> int:
        return 0

    def begin(self, row: int) -> int:
        return self.begins[row]

    def rows(self, first: int, last: int) -> RowRange:
        begin = self.begins[first]
        return RowRange(
            begin, self.ends[last - 1], places=tuple(p - begin * self.unit for p in self.places[first:last])
        )

    @property
    def kinds(self) -> int:
        """How many different functions it takes to compute one row at a time."""
        spans = (self.rows(row, row + 1) for row in range(len(self.begins)))
        return len({(span.count, span.places) for span in spans})


Reach = RowReach | Listed  # Which rows of an input the rows of the output read.


@dataclass(frozen=True)
class RowRange:
    """Names the rows ``begin`` up to ``end`` of an input, and the rows of padding that a window sees around them.

    ``places``: those of the output's rows, counted from ``begin``, where they are listed.
    """

    begin: int
    end: int
    top: int = 0
    bottom: int = 0
    places: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        return self.end - self.begin


def windows_of(layer: Layer) -> tuple[Reach | None, ...] | None:
    """The rows of each input that a layer reads; None for an input that any row reads as a whole. The result is None
    where the layer cannot be computed by rows."""
    if layer.applied is None or layer.engine != CPU or layer.is_view or layer.definition or layer.kernel.updates:
        return None
    infos = [value.info for value in (*layer.inputs, *layer.outputs)]
    if not layer.inputs or len(layer.outputs) != 1 or any(not _image(info) for info in infos):
        return None
    operator, site = layer.applied.operator, layer.applied.site
    if operator.full_name in LISTED:
        return _listed(operator.full_name, site)
    if operator.full_name in WEIGHT_ROWS or operator.full_name in POOLS:
        return _of_window(operator.full_name, site)
    if isinstance(operator, Frame):
        return (RowReach(infos[0].shape[1], SlidingWindow(padding=site.attrs.padding)),)
    if isinstance(operator, Beside):
        return tuple(RowReach(info.shape[1]) for info in infos[:-1])
    if operator.elementwise is Elementwise.FIRST:
        return (RowReach(infos[0].shape[1]),)
    if operator.elementwise is Elementwise.EACH:
        return _of_each(site)
    return None


def _image(info: TensorInfo) -> bool:
    return len(info.shape) == RANK and info.shape[0] == 1 and info.elements > 0


def _of_window(name: str, site: Site[Any]) -> tuple[Reach | None, ...] | None:
    if any(operand.constant is None for operand in site.operands[1:]):
        return None
    axis = WEIGHT_ROWS.get(name, 0)
    window = window_of(site.attrs, site.attrs.window if name in POOLS else site.operands[1].info.shape[axis : axis + 2])
    reach = RowReach(site.operands[0].info.shape[1], window)
    below = reach.rows(0, site.output.shape[1])
    inside = max(below.top, below.bottom) < window.extent(0, 1)  # every window sees a row
    return (reach,) if inside else None


def _listed(name: str, site: Site[Any]) -> tuple[Reach | None, ...] | None:
    if any(operand.constant is None for operand in site.operands[1:]):
        return None
    found = LISTED[name](site, site.operands[0].info.shape[1], range(site.output.shape[1]))
    return (found,) if found.kinds <= MOST_KINDS else None


def _nearest(site: Site[Any], height: int, _: range) -> Listed:
    rows = tuple(int(row) for row in site.operands[1].value)
    return Listed(height, rows, tuple(row + 1 for row in rows), rows)


def _bilinear(site: Site[Any], height: int, rows: range) -> Listed:
    """Each output row lies at ``start + row * step`` in fixed point, and reads the rows around, held in the input."""
    step, start = site.attrs.step(0, height), site.attrs.start(0, height)
    places = tuple(start + row * step for row in rows)
    begins = tuple(min(max(place, 0) // ONE, height - 1) for place in places)
    ends = tuple(min(max(-(-place // ONE), 0), height - 1) + 1 for place in places)
    return Listed(height, begins, ends, places, ONE)


def _transposed(site: Site[Any], height: int, rows: range) -> Listed:
    """Input row i is added to the output rows (padding included) from i * stride up to i * stride + size. Solved for i,
    this gives the rows that an output row reads. If no window reaches it, it reads one all the same."""
    stride, size = site.attrs.strides[0], site.operands[1].info.shape[1]
    places = tuple(row + site.attrs.padding[0] for row in rows)
    ends = tuple(min(place // stride + 1, height) for place in places)
    begins = tuple(
        min(max(-(-(place - size + 1) // stride), 0), end - 1) for place, end in zip(places, ends, strict=True)
    )
    return Listed(height, begins, ends, places, stride)


LISTED: Final[dict[str, Callable[[Site[Any], int, range], Listed]]] = {
    NAMESPACE + ResizeNearest.name: _nearest,
    NAMESPACE + ResizeBilinear.name: _bilinear,
    NAMESPACE + TransposeConv2d.name: _transposed,
}


def _of_each(site: Site[Any]) -> tuple[Reach | None, ...] | None:
    height = site.output.shape[1]
    found: list[Reach | None] = []
    for operand in site.operands:
        rows = operand.info.shape[-3] if len(operand.info.shape) >= RANK - 1 else 1
        if operand.constant is None:
            found.append(RowReach(height) if rows == height else None)
        elif rows != 1:
            return None
    return tuple(found)


def part_of(site: Site[Any], windows: Sequence[Reach | None], spans: Sequence[RowRange], rows: int) -> Site[Any]:
    """The call that computes ``rows`` rows of the output from the rows ``spans`` of each input."""
    indices = site.input_indices()
    operands = tuple(
        operand if index is None or windows[index] is None else Operand(with_rows(operand.info, spans[index].count))
        for operand, index in zip(site.operands, indices, strict=True)
    )
    attrs, places = site.attrs, spans[0].places
    if isinstance(attrs, ResizeNearestAttrs):
        table = np.array(places, operands[1].value.dtype)
        operands = (operands[0], Operand(replace(operands[1].info, shape=table.shape), table), operands[2])
    elif isinstance(attrs, ResizeBilinearAttrs):
        step = attrs.step(0, site.operands[0].info.shape[1])
        attrs = ResizedRows(**{**vars(attrs), "size": (rows, attrs.size[1])}, row_step=step, row_start=places[0])
    elif isinstance(attrs, TransposeConv2dAttrs):
        attrs = replace(attrs, size=(rows, attrs.size[1]), padding=(places[0], attrs.padding[1]))
    elif hasattr(attrs, "padding"):
        _, left, _, right = attrs.padding
        attrs = replace(attrs, padding=(spans[0].top, left, spans[0].bottom, right))
    return Site(attrs, operands, (with_rows(site.output, rows),))


def with_rows(info: TensorInfo, rows: int) -> TensorInfo:
    return replace(info, shape=(info.shape[0], rows, *info.shape[2:]))


def row_bytes(info: TensorInfo) -> int:
    return info.size // info.shape[1]
