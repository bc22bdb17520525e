"""Average and maximum over windows, NHWC; padded elements take no part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, Channels, IntegerOperator, Site, register, require, window_count
from uaccel.ops.behind import site_behind
from uaccel.ops.kernel import Input, Kernel, Output, dtype_suffix, portable, same, sides
from uaccel.tvm_api import te, tirx


@dataclass(frozen=True)
class PoolAttrs(Attributes):
    """``window`` and ``strides`` are height, width; ``padding`` is top, left, bottom, right."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    clamp_min: int
    clamp_max: int


def infer_pool(data: TensorInfo, attrs: PoolAttrs, what: str) -> TensorInfo:
    require(len(data.shape) == 4, f"{what}: input {data} has rank {len(data.shape)}, wanted 4 (NHWC)")
    top, left, bottom, right = attrs.padding
    height = window_count(data.shape[1], attrs.window[0], attrs.strides[0], 1, top, bottom)
    width = window_count(data.shape[2], attrs.window[1], attrs.strides[1], 1, left, right)
    require(height > 0 and width > 0, f"{what}: the window {attrs.window} is larger than the padded input {data}")
    largest = (max(attrs.padding[0::2]) < attrs.window[0], max(attrs.padding[1::2]) < attrs.window[1])
    require(all(largest), f"{what}: padding {attrs.padding} leaves windows {attrs.window} without any element")
    return TensorInfo((data.shape[0], height, width, data.shape[3]), data.dtype)


def _taps(data: Any, attrs: PoolAttrs, padded: int) -> tuple[Any, list[Any]]:
    """The element under tap ky, kx of the window at y, x as int32, ``padded`` outside; and the taps' axes."""
    info = exact.info(data)
    taps = [te.reduce_axis((0, extent), name=name) for extent, name in zip(attrs.window, ("ky", "kx"), strict=True)]

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        row = y * attrs.strides[0] + taps[0] - attrs.padding[0]
        column = x * attrs.strides[1] + taps[1] - attrs.padding[1]
        inside = tirx.all(row >= 0, row < info.shape[1], column >= 0, column < info.shape[2])
        return tirx.if_then_else(inside, exact.i32(data(n, row, column, c)), exact.const(padded, "int32"))

    return element, taps


def _covered(position: Any, axis: int, attrs: PoolAttrs, extent: int) -> Any:
    """How many elements of one axis the window at this position covers."""
    first = position * attrs.strides[axis] - attrs.padding[axis]
    return tirx.min(first + attrs.window[axis], extent) - tirx.max(first, 0)


def _rounded_mean(total: Any, count: Any) -> Any:
    """total / count, halves away from zero."""
    half = tirx.truncdiv(count, exact.const(2, "int32"))
    biased = tirx.Select(total > 0, total + half, total - half)
    return tirx.truncdiv(biased, count)


def pool_kernel(function: str, site: Site[PoolAttrs]) -> Kernel:
    attrs, data, output = site.attrs, site.operands[0].info, site.output
    parameters = {
        "batch": data.shape[0],
        **sides("in", data.shape[1:3]),
        **sides("out", output.shape[1:3]),
        "channels": data.shape[3],
        **sides("window", attrs.window),
        **sides("stride", attrs.strides),
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
        **same(attrs, "clamp_min", "clamp_max"),
    }
    name = f"{function}_{dtype_suffix(data.dtype)}"
    return portable(name, "uaccel_pool", parameters, (Input(0), Output(0)), behind=site_behind(site))


class _Pool(IntegerOperator[PoolAttrs]):
    arguments = ("input",)
    channels = Channels.APART
    keeps_number = True
    kernel: ClassVar[str]

    def infer(self, inputs: Sequence[TensorInfo], attrs: PoolAttrs) -> TensorInfo:
        return infer_pool(inputs[0], attrs, self.name)

    def kernels(self, site: Site[PoolAttrs]) -> Sequence[Kernel]:
        return [pool_kernel(self.kernel, site)]


@register
class AveragePool2d(_Pool):
    """The mean of the elements under each window, halves away from zero; input and output share their scale."""

    name = "average_pool2d"
    kernel = "uaccel_average_pool"

    def meaning(self, inputs: Sequence[Any], attrs: PoolAttrs) -> Any:
        (data,) = inputs
        info = exact.info(data)
        element, taps = _taps(data, attrs, 0)
        shape = infer_pool(info, attrs, self.name).shape
        sums = te.compute(shape, lambda *index: te.sum(element(*index), axis=taps), name="sums")

        def average(n: Any, y: Any, x: Any, c: Any) -> Any:
            rows, columns = (_covered(p, axis, attrs, info.shape[axis + 1]) for axis, p in enumerate((y, x)))
            count = exact.i32(rows * columns)
            mean = _rounded_mean(sums(n, y, x, c), count)
            return exact.clamp(mean, attrs.clamp_min, attrs.clamp_max).astype(info.dtype)

        return te.compute(shape, average, name="average")


@register
class UnsignedAveragePool2d(AveragePool2d):
    """Of unsigned elements; its C is printed from its meaning."""

    name = "unsigned_average_pool2d"

    def kernels(self, site: Site[PoolAttrs]) -> Sequence[Kernel]:
        return ()


@register
class MaxPool2d(_Pool):
    """The largest element under each window; input and output share their scale."""

    name = "max_pool2d"
    kernel = "uaccel_max_pool"

    def meaning(self, inputs: Sequence[Any], attrs: PoolAttrs) -> Any:
        (data,) = inputs
        info = exact.info(data)
        element, taps = _taps(data, attrs, exact.limits(info.dtype)[0])
        shape = infer_pool(info, attrs, self.name).shape
        largest = te.compute(shape, lambda *index: te.max(element(*index), axis=taps), name="largest")

        def clamped(*index: Any) -> Any:
            return exact.clamp(largest(*index), attrs.clamp_min, attrs.clamp_max).astype(info.dtype)

        return te.compute(shape, clamped, name="clamped")
