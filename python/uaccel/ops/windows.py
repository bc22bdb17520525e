"""Says where the windows of convolutions and pools lie on an image: how many fit, their elements, their fields in C.

A matrix product is what windows of one pixel come to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.operator import Attributes, Site, require
from uaccel.tvm_api import te, tirx


class Pooled(Attributes):
    """``window`` and ``strides`` are height, width; ``padding`` is top, left, bottom, right."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]


class Grouped(Attributes):
    """``strides`` and ``dilation`` are height, width; ``padding`` is top, left, bottom, right."""

    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


class Transposed(Attributes):
    """``size`` is the output's height and width. ``padding``, top and left, is cut off the sum of the windows."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]


@dataclass(frozen=True)
class SlidingWindow:
    """Holds kernel, strides and dilation in rows and columns, and the padding above and to the left.

    The axes may be others than these. ``padding`` may go on with what lies behind each of them.
    """

    kernel: tuple[int, ...] = (1, 1)
    strides: tuple[int, ...] = (1, 1)
    dilation: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)

    @property
    def taps(self) -> int:
        return math.prod(self.kernel)

    def extent(self, axis: int, outputs: int) -> int:
        """Rows (axis 0) or columns (1) of the input, padding included, that so many of the output depend on."""
        return (outputs - 1) * self.strides[axis] + (self.kernel[axis] - 1) * self.dilation[axis] + 1

    def place(self, axis: int, output: Any, tap: Any = 0) -> Any:
        """Where an element of an output's window lies along an axis of an image without its padding."""
        return output * self.strides[axis] + tap * self.dilation[axis] - self.padding[axis]

    def covered(self, axis: int, outputs: range, extent: int) -> range:
        """What these outputs read along an axis, without padding; one element where all of it is padding."""
        first = outputs.start * self.strides[axis] - self.padding[axis]
        begin = min(max(first, 0), extent - 1)
        return range(begin, max(min(first + self.extent(axis, len(outputs)), extent), begin + 1))

    def counts(self, extents: Sequence[int]) -> list[int]:
        """How often it fits along each axis of an image."""
        padding = [sum(self.padding[axis :: len(extents)]) for axis in range(len(extents))]
        axes = enumerate(zip(extents, padding, self.strides, strict=True))
        return [(whole + more - self.extent(axis, 1)) // stride + 1 for axis, (whole, more, stride) in axes]

    def same(self, extents: Sequence[int]) -> tuple[int, ...]:
        """The padding before each axis, then that behind each, as TFLite's SAME places it."""
        counts = [-(-extent // stride) for extent, stride in zip(extents, self.strides, strict=True)]
        totals = [max(0, self.extent(axis, count) - extents[axis]) for axis, count in enumerate(counts)]
        return (*(total // 2 for total in totals), *(total - total // 2 for total in totals))


def window_of(attrs: Any, kernel: Sequence[int]) -> SlidingWindow:
    """The windows of an operator, whose attributes may have no dilation."""
    return SlidingWindow(tuple(kernel), attrs.strides, getattr(attrs, "dilation", (1, 1)), attrs.padding)


def infer_places(data: TensorInfo, kernel: Sequence[int], attrs: Any, what: str) -> list[int]:
    """How often windows fit along the rows and columns of an NHWC image; raises TypeError where none does."""
    require(len(data.shape) == 4, f"{what}: input {data} has rank {len(data.shape)}, wanted 4 (NHWC)")
    places = window_of(attrs, kernel).counts(data.shape[1:3])
    require(min(places) > 0, f"{what}: the window {tuple(kernel)} is larger than the padded input {data}")
    return places


def infer_convolved(data: TensorInfo, weights: TensorInfo, attrs: Grouped, what: str) -> tuple[int, ...]:
    """The shape of a convolution of NHWC images with weights OHWI; raises TypeError where they do not fit."""
    require(len(data.shape) == len(weights.shape) == 4, f"{what}: {data} and {weights}, wanted rank 4")
    channels, *window, depth = weights.shape
    fits = data.shape[3] == depth * attrs.groups and channels % attrs.groups == 0
    require(fits, f"{what}: input {data} does not fit weights {weights} in {attrs.groups} groups")
    return (data.shape[0], *infer_places(data, window, attrs, what), channels)


def infer_product(data: TensorInfo, weights: TensorInfo, what: str) -> tuple[int, int]:
    """The shape of rows times the rows of weights [units, depth]; raises TypeError where they do not fit."""
    fits = len(data.shape) == len(weights.shape) == 2 and data.shape[1] == weights.shape[1]
    require(fits, f"{what}: input {data} does not fit weights {weights}")
    return data.shape[0], weights.shape[0]


def multiplied(data: Any, weights: Any, depth: int) -> Any:
    """The element of such a product, as a function of row and unit; both sides give elements by their indices."""
    k = te.reduce_axis((0, depth), name="k")
    return lambda row, unit: te.sum(data(row, k) * weights(unit, k), axis=k)


def taps(**extents: int) -> list[Any]:
    """The axes of a reduction over windows, by their names."""
    return [te.reduce_axis((0, extent), name=name) for name, extent in extents.items()]


def padded(data: Any, padding: Sequence[int], value: int = 0, rows: int = 1) -> Any:
    """An image with a border of one value, as a TE expression of indices; axis ``rows`` has its rows, the next columns.

    By default it is NHWC.
    """
    if not any(padding):
        return data
    shape, before, behind = exact.info(data).shape, [0] * 4, [0] * 4
    before[rows : rows + 2], behind[rows : rows + 2] = padding[:2], padding[2:]
    ends = [extent + more for extent, more in zip(shape, before, strict=True)]

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        index, sides = (n, y, x, c), (rows, rows + 1)
        inside = tirx.all(*(test for axis in sides for test in (index[axis] >= before[axis], index[axis] < ends[axis])))
        inner = data(*(place - more for place, more in zip(index, before, strict=True)))
        return tirx.if_then_else(inside, inner, tirx.const(value, data.dtype))

    return te.compute([end + more for end, more in zip(ends, behind, strict=True)], element, name="padded")


def convolved(image: Any, weights: Any, extents: Sequence[int], attrs: Any) -> Any:
    """The element of a convolution at n, y, x and channel, as a function of these.

    ``image``, with its border, and ``weights`` give elements by their indices; ``extents`` are those of the weights,
    OHWI.
    """
    channels, height, width, depth = extents
    ky, kx, ci = taps(ky=height, kx=width, ci=depth)

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        first = tirx.floordiv(c, channels // attrs.groups) * depth if attrs.groups > 1 else 0
        row = y * attrs.strides[0] + ky * attrs.dilation[0]
        column = x * attrs.strides[1] + kx * attrs.dilation[1]
        return te.sum(image(n, row, column, first + ci) * weights(c, ky, kx, ci), axis=[ky, kx, ci])

    return element


def over_windows(data: Any, attrs: Any, reads: Any, outside: Any) -> tuple[Any, list[Any]]:
    """What ``reads`` makes of an element under tap ky, kx of the window at y, x, or ``outside``; and the taps' axes."""
    info, (ky, kx) = exact.info(data), taps(ky=attrs.window[0], kx=attrs.window[1])
    window = window_of(attrs, attrs.window)

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        row, column = window.place(0, y, ky), window.place(1, x, kx)
        inside = tirx.all(row >= 0, row < info.shape[1], column >= 0, column < info.shape[2])
        return tirx.if_then_else(inside, reads(data(n, row, column, c)), outside)

    return element, [ky, kx]


def sides(what: str, extents: Sequence[int]) -> dict[str, int]:
    """Two fields of a structure: ``what_height`` and ``what_width``."""
    height, width = extents
    return {f"{what}_height": height, f"{what}_width": width}


def window_fields(attrs: Any, kernel: Sequence[int], *, dilated: bool = True) -> dict[str, int]:
    """The fields of kernels' structures about windows."""
    return {
        **sides("kernel", kernel),
        **sides("stride", attrs.strides),
        **(sides("dilation", window_of(attrs, kernel).dilation) if dilated else {}),
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
    }


def image_fields(image: Sequence[int], result: Sequence[int]) -> dict[str, int]:
    """The fields about the images that layers with weights read and write."""
    return {
        "batch": image[0],
        **sides("in", image[1:3]),
        "in_channels": image[3],
        **sides("out", result[1:3]),
        "out_channels": result[3],
    }


def plane_fields(image: Sequence[int], result: Sequence[int]) -> dict[str, int]:
    """The same of layers whose channels stay apart, as many on both sides."""
    return {"batch": image[0], **sides("in", image[1:3]), "channels": image[3], **sides("out", result[1:3])}


def geometry_of(image: Sequence[int], result: Sequence[int], kernel: Sequence[int], attrs: Any) -> dict[str, int]:
    """The fields of ``struct uaccel_geometry``, which structures of kernels have for a member."""
    fields = image_fields(image, result) | window_fields(attrs, kernel)
    return {f"geo.{name}": value for name, value in fields.items()}


def geometry_fields(site: Site[Any], kernel: Sequence[int]) -> dict[str, int]:
    """The same, of a layer whose windows have this size."""
    return geometry_of(site.operands[0].info.shape, site.output.shape, kernel, site.attrs)
