"""The sums of a two-dimensional convolution as an accelerator gives them: raw products added up, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import Shape, TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, register, require, window_count
from uaccel.tvm_api import te, tirx

NCHW = "NCHW"
NHWC = "NHWC"
TO_NHWC: dict[str, tuple[int, ...]] = {NCHW: (0, 2, 3, 1), NHWC: (0, 1, 2, 3)}
"""Where batch (or output channel), height, width and depth lie in activations and weights of a layout."""


@dataclass(frozen=True)
class Conv2dSumsAttrs(Attributes):
    """``padding`` is top, left, bottom, right, of zeros. ``layout``: NCHW with weights OIHW, NHWC with weights OHWI."""

    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    layout: str


@register
class Conv2dSums(IntegerOperator[Conv2dSumsAttrs]):
    """sum(input * weights) in int32, which wraps; zero points, bias and requantisation are other operators' work."""

    name = "conv2d_sums"
    arguments = ("input", "weights")

    def infer(self, inputs: Sequence[TensorInfo], attrs: Conv2dSumsAttrs) -> TensorInfo:
        data, weights = inputs
        require(attrs.layout in TO_NHWC, f"conv2d_sums: layout {attrs.layout!r}, wanted {' or '.join(TO_NHWC)}")
        require(len(data.shape) == 4 and len(weights.shape) == 4, "conv2d_sums: input and weights have rank 4")
        require(data.dtype == weights.dtype == "int8", f"conv2d_sums: {data} and {weights}, wanted int8")
        batch, height, width, channels = _nhwc(data.shape, attrs.layout)
        out_channels, kernel_h, kernel_w, depth = _nhwc(weights.shape, attrs.layout)
        fits = channels == depth * attrs.groups
        require(fits, f"conv2d_sums: {data} does not fit {weights}, {attrs.groups} groups")
        require(out_channels % attrs.groups == 0, "conv2d_sums: the groups do not divide the output channels")
        top, left, bottom, right = attrs.padding
        rows = window_count(height, kernel_h, attrs.strides[0], attrs.dilation[0], top, bottom)
        columns = window_count(width, kernel_w, attrs.strides[1], attrs.dilation[1], left, right)
        large = f"conv2d_sums: the window {(kernel_h, kernel_w)} is larger than the padded input {data}"
        require(rows > 0 and columns > 0, large)
        return TensorInfo(_from_nhwc((batch, rows, columns, out_channels), attrs.layout), "int32")

    def meaning(self, inputs: Sequence[Any], attrs: Conv2dSumsAttrs) -> Any:
        data, weights = inputs
        infos = [exact.info(tensor) for tensor in inputs]
        out_channels, kernel_h, kernel_w, depth = _nhwc(infos[1].shape, attrs.layout)
        source = _padded(data, attrs)
        ky, kx, ci = (te.reduce_axis((0, e), name=n) for e, n in ((kernel_h, "ky"), (kernel_w, "kx"), (depth, "ci")))
        per_group = out_channels // attrs.groups

        def element(*index: Any) -> Any:
            n, y, x, o = _nhwc(index, attrs.layout)
            first = tirx.floordiv(o, per_group) * depth if attrs.groups > 1 else 0
            row = y * attrs.strides[0] + ky * attrs.dilation[0]
            column = x * attrs.strides[1] + kx * attrs.dilation[1]
            value = source(*_from_nhwc((n, row, column, first + ci), attrs.layout))
            weight = weights(*_from_nhwc((o, ky, kx, ci), attrs.layout))
            return te.sum(exact.i32(value) * exact.i32(weight), axis=[ky, kx, ci])

        return te.compute(self.infer(infos, attrs).shape, element, name="sums")


def _nhwc(entries: Sequence[Any], layout: str) -> tuple[Any, ...]:
    """Extents or indices of a layout as batch, height, width, channel."""
    return tuple(entries[place] for place in TO_NHWC[layout])


def _from_nhwc(entries: Sequence[Any], layout: str) -> tuple[Any, ...]:
    return tuple(entries[TO_NHWC[layout].index(place)] for place in range(4))


def _padded(data: Any, attrs: Conv2dSumsAttrs) -> Any:
    """The input with its border of zeros."""
    if not any(attrs.padding):
        return data
    batch, height, width, channels = _nhwc(exact.info(data).shape, attrs.layout)
    top, left, bottom, right = attrs.padding

    def element(*index: Any) -> Any:
        n, y, x, c = _nhwc(index, attrs.layout)
        inside = tirx.all(y >= top, y < height + top, x >= left, x < width + left)
        value = data(*_from_nhwc((n, y - top, x - left, c), attrs.layout))
        return tirx.if_then_else(inside, value, exact.const(0, "int8"))

    shape: Shape = _from_nhwc((batch, height + top + bottom, width + left + right, channels), attrs.layout)
    return te.compute(shape, element, name="padded")
