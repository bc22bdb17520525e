"""Says where the windows of convolutions and pools lie on an image: how many fit, their elements, their fields in C."""

from __future__ import annotations

import math
from collections.abc import Sequence
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


def same_padding(extent: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """Zeros before and after, as TFLite's SAME padding places them."""
    effective = (kernel - 1) * dilation + 1
    out = math.ceil(extent / stride)
    total = max(0, (out - 1) * stride + effective - extent)
    return total // 2, total - total // 2


def window_count(extent: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    """How often a window fits along one axis."""
    return (extent + before + after - ((kernel - 1) * dilation + 1)) // stride + 1


def steps(attrs: Any) -> tuple[int, ...]:
    """The distances between the elements of a window, for operators that may have none."""
    dilation: tuple[int, ...] = getattr(attrs, "dilation", (1, 1))
    return dilation


def window_places(extents: Sequence[int], kernel: Sequence[int], attrs: Any) -> list[int]:
    """How often windows fit along the rows and columns of an image."""
    return [
        window_count(extents[axis], kernel[axis], attrs.strides[axis], steps(attrs)[axis], *attrs.padding[axis::2])
        for axis in (0, 1)
    ]


def infer_places(data: TensorInfo, kernel: Sequence[int], attrs: Any, what: str) -> list[int]:
    """The same for an NHWC image; raises TypeError where a window does not fit."""
    require(len(data.shape) == 4, f"{what}: input {data} has rank {len(data.shape)}, wanted 4 (NHWC)")
    places = window_places(data.shape[1:3], kernel, attrs)
    require(min(places) > 0, f"{what}: the window {kernel} is larger than the padded input {data}")
    return places


def infer_convolved(data: TensorInfo, weights: TensorInfo, attrs: Grouped, what: str) -> tuple[int, ...]:
    """The shape of a convolution of NHWC images with weights OHWI; raises TypeError where they do not fit."""
    require(len(data.shape) == len(weights.shape) == 4, f"{what}: {data} and {weights}, wanted rank 4")
    channels, *window, depth = weights.shape
    fits = data.shape[3] == depth * attrs.groups and channels % attrs.groups == 0
    require(fits, f"{what}: input {data} does not fit weights {weights} in {attrs.groups} groups")
    return (data.shape[0], *infer_places(data, window, attrs, what), channels)


def taps(**extents: int) -> list[Any]:
    """The axes of a reduction over windows, by their names."""
    return [te.reduce_axis((0, extent), name=name) for name, extent in extents.items()]


def padded(data: Any, padding: Sequence[int], value: int = 0) -> Any:
    """An NHWC image with a border of one value, as a TE expression of indices."""
    if not any(padding):
        return data
    batch, height, width, channels = exact.info(data).shape
    top, left, bottom, right = padding

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        inside = tirx.all(y >= top, y < height + top, x >= left, x < width + left)
        return tirx.if_then_else(inside, data(n, y - top, x - left, c), tirx.const(value, data.dtype))

    return te.compute((batch, height + top + bottom, width + left + right, channels), element, name="padded")


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


def tap_place(position: Any, axis: int, attrs: Any, tap: Any) -> Any:
    """Where a window's element lies on rows (``axis`` 0) or columns of an image without its padding."""
    return position * attrs.strides[axis] + tap * steps(attrs)[axis] - attrs.padding[axis]


def over_windows(data: Any, attrs: Any, reads: Any, outside: Any) -> tuple[Any, list[Any]]:
    """What ``reads`` makes of an element under tap ky, kx of the window at y, x, or ``outside``; and the taps' axes."""
    info, (ky, kx) = exact.info(data), taps(ky=attrs.window[0], kx=attrs.window[1])

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        row, column = tap_place(y, 0, attrs, ky), tap_place(x, 1, attrs, kx)
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
        **(sides("dilation", steps(attrs)) if dilated else {}),
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


def geometry_of(image: Sequence[int], result: Sequence[int], kernel: Sequence[int], attrs: Any) -> dict[str, int]:
    """The fields of ``struct uaccel_geometry``, which structures of kernels have for a member."""
    fields = image_fields(image, result) | window_fields(attrs, kernel)
    return {f"geo.{name}": value for name, value in fields.items()}


def geometry_fields(site: Site[Any], kernel: Sequence[int]) -> dict[str, int]:
    """The same, of a layer whose windows have this size."""
    return geometry_of(site.operands[0].info.shape, site.output.shape, kernel, site.attrs)
