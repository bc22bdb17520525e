"""Means and maxima of floats over windows, NHWC."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops.base import Attributes, Channels, IntegerOperator, Site, register, require, window_count
from uaccel.ops.behind import site_behind
from uaccel.ops.kernel import Input, Kernel, Output, portable, sides
from uaccel.tvm_api import te, tirx


@dataclass(frozen=True)
class PoolFloatAttrs(Attributes):
    """``padding`` is top, left, bottom, right. ``counts_padding`` is 1 where the padded elements count as zeros."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    counts_padding: int = 0


class _PoolFloat(IntegerOperator[PoolFloatAttrs]):
    arguments = ("input",)
    channels = Channels.APART
    kernel: ClassVar[str]

    def infer(self, inputs: Sequence[TensorInfo], attrs: PoolFloatAttrs) -> TensorInfo:
        (data,) = inputs
        require(len(data.shape) == 4, f"{self.name}: input {data} has rank {len(data.shape)}, wanted 4 (NHWC)")
        require(data.dtype == "float32", f"{self.name}: input {data}, wanted float32")
        extents = [
            window_count(data.shape[1 + a], attrs.window[a], attrs.strides[a], attrs.dilation[a], *attrs.padding[a::2])
            for a in (0, 1)
        ]
        require(min(extents) > 0, f"{self.name}: the window {attrs.window} is larger than the padded input {data}")
        return TensorInfo((data.shape[0], *extents, data.shape[3]), data.dtype)

    def kernels(self, site: Site[PoolFloatAttrs]) -> Sequence[Kernel]:
        attrs, data, output = site.attrs, site.operands[0].info, site.output
        parameters = {
            "batch": data.shape[0],
            **sides("in", data.shape[1:3]),
            "channels": data.shape[3],
            **sides("out", output.shape[1:3]),
            **sides("window", attrs.window),
            **sides("stride", attrs.strides),
            **sides("dilation", attrs.dilation),
            "pad_top": attrs.padding[0],
            "pad_left": attrs.padding[1],
            "divisor": math.prod(attrs.window) if attrs.counts_padding else 0,
        }
        return [portable(self.kernel, "uaccel_pool_float", parameters, (Input(0), Output(0)), behind=site_behind(site))]


def _shape(operator: _PoolFloat, data: Any, attrs: PoolFloatAttrs) -> tuple[int, ...]:
    info = TensorInfo(tuple(int(extent) for extent in data.shape), str(data.dtype))
    return operator.infer([info], attrs).shape


def _taps(data: Any, attrs: PoolFloatAttrs, outside: float) -> tuple[Any, list[Any]]:
    """The element under tap ky, kx of the window at y, x; and the taps' axes."""
    taps = [te.reduce_axis((0, extent), name=name) for extent, name in zip(attrs.window, ("ky", "kx"), strict=True)]

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        row = y * attrs.strides[0] + taps[0] * attrs.dilation[0] - attrs.padding[0]
        column = x * attrs.strides[1] + taps[1] * attrs.dilation[1] - attrs.padding[1]
        inside = tirx.all(row >= 0, row < int(data.shape[1]), column >= 0, column < int(data.shape[2]))
        return tirx.if_then_else(inside, data(n, row, column, c), tirx.const(outside, "float32"))

    return element, taps


def _inside(position: Any, axis: int, attrs: PoolFloatAttrs, extent: int) -> Any:
    """How many taps of one axis lie inside of the input at this position."""
    total: Any = tirx.const(0, "int32")
    for tap in range(attrs.window[axis]):
        at = position * attrs.strides[axis] + tap * attrs.dilation[axis] - attrs.padding[axis]
        one, none = tirx.const(1, "int32"), tirx.const(0, "int32")
        total = total + tirx.Select(tirx.all(at >= 0, at < extent), one, none)
    return total


@register
class AveragePool2dFloat(_PoolFloat):
    """The mean of the elements under each window: their sum by rows, divided by how many they are."""

    name = "average_pool2d_float"
    kernel = "uaccel_average_pool_float"

    def meaning(self, inputs: Sequence[Any], attrs: PoolFloatAttrs) -> Any:
        (data,) = inputs
        element, taps = _taps(data, attrs, 0.0)
        shape = _shape(self, data, attrs)
        sums = te.compute(shape, lambda *index: te.sum(element(*index), axis=taps), name="sums")

        def average(n: Any, y: Any, x: Any, c: Any) -> Any:
            if attrs.counts_padding:
                return sums(n, y, x, c) / tirx.const(math.prod(attrs.window), "float32")
            count = _inside(y, 0, attrs, int(data.shape[1])) * _inside(x, 1, attrs, int(data.shape[2]))
            return sums(n, y, x, c) / tirx.max(count, tirx.const(1, "int32")).astype("float32")

        return te.compute(shape, average, name="average")


@register
class MaxPool2dFloat(_PoolFloat):
    """The largest element under each window; never less than the lowest finite number."""

    name = "max_pool2d_float"
    kernel = "uaccel_max_pool_float"

    def meaning(self, inputs: Sequence[Any], attrs: PoolFloatAttrs) -> Any:
        (data,) = inputs
        element, taps = _taps(data, attrs, float(np.finfo(np.float32).min))
        shape = _shape(self, data, attrs)
        return te.compute(shape, lambda *index: te.max(element(*index), axis=taps), name="largest")
