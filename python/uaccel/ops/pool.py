"""Defines means and maxima over windows of NHWC images: of integers, as TFLite or rounded once, and of floats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Quantisation, TensorInfo
from uaccel.ops import exact
from uaccel.ops.fixedpoint import fixed_ratios, most_that_counts, scale_fraction
from uaccel.ops.kernel import Input, Kernel, Output, dtype_suffix, portable, same
from uaccel.ops.operator import Channels, IntegerOperator, Site, require
from uaccel.ops.reduce import require_sum
from uaccel.ops.storage import overwrite_distance
from uaccel.ops.windows import Pooled, geometry_fields, infer_places, over_windows, window_of
from uaccel.tvm_api import te, tirx
from uaccel.tvm_api.extremes import extreme

# Average and maximum as TFLite has them; padded elements take no part.


class PoolAttrs(Pooled):
    """Results are clamped as they are stored."""

    clamp_min: int
    clamp_max: int


def infer_windows(data: TensorInfo, attrs: Pooled, what: str) -> TensorInfo:
    return TensorInfo((data.shape[0], *infer_places(data, attrs.window, attrs, what), data.shape[3]), data.dtype)


def _over_window(data: Any, attrs: Pooled, what: str, combine: Any, convert: Any, outside: Any) -> Any:
    """Applies ``combine`` over each window to ``convert``-ed elements, and to ``outside`` where there are none."""
    element, axes = over_windows(data, attrs, convert, outside)
    shape = infer_windows(exact.info(data), attrs, what).shape
    name = "sums" if combine is te.sum else "largest"
    return te.compute(shape, lambda *index: combine(element(*index), axis=axes), name=name)


def _maxima(data: Any, attrs: Any, what: str) -> Any:
    """The largest element under each window, clamped; where there is none, the lowest value is."""
    lowest = exact.const(exact.limits(str(data.dtype))[0], "int32")
    largest = _over_window(data, attrs, what, te.max, exact.i32, lowest)

    def clamped(*index: Any) -> Any:
        return exact.clamp(largest(*index), attrs.clamp_min, attrs.clamp_max).astype(str(data.dtype))

    return te.compute(largest.shape, clamped, name="clamped")


def _covered(position: Any, axis: int, attrs: PoolAttrs, extent: int) -> Any:
    """How many elements of one axis the window at this position covers."""
    first = window_of(attrs, attrs.window).place(axis, position)
    return tirx.min(first + attrs.window[axis], extent) - tirx.max(first, 0)


def _rounded_mean(total: Any, count: Any) -> Any:
    """total / count, halves away from zero."""
    half = tirx.truncdiv(count, exact.const(2, "int32"))
    biased = tirx.Select(total > 0, total + half, total - half)
    return tirx.truncdiv(biased, count)


def pool_kernel(function: str, site: Site[PoolAttrs]) -> Kernel:
    name = f"{function}_{dtype_suffix(site.output.dtype)}"
    parameters = _geometry(site)
    return portable(name, "uaccel_pool", parameters, (Input(0), Output(0)), behind=overwrite_distance(site))


def _geometry(site: Site[Any]) -> dict[str, int]:
    """The fields of the kernels' structures that means and maxima share."""
    return geometry_fields(site, site.attrs.window) | same(site.attrs, "clamp_min", "clamp_max")


class _Pool(IntegerOperator[PoolAttrs]):
    channels = Channels.APART
    keeps_number = True

    def infer(self, attrs: PoolAttrs, *inputs: TensorInfo) -> TensorInfo:
        attained = (max(attrs.padding[axis::2]) < attrs.window[axis] for axis in (0, 1))
        output = infer_windows(inputs[0], attrs, self.name)
        require(
            all(attained), f"{self.name}: padding {attrs.padding} leaves windows {attrs.window} without any element"
        )
        return output

    def kernels(self, site: Site[PoolAttrs]) -> Sequence[Kernel]:
        return [pool_kernel(f"uaccel_{self.name.replace('2d', '')}", site)]


class AveragePool2d(_Pool):
    """Computes the mean under each window, halves away from zero; input and output share their scale."""

    name = "average_pool2d"

    def meaning(self, attrs: PoolAttrs, data: Any) -> Any:
        info = exact.info(data)
        sums = _over_window(data, attrs, self.name, te.sum, exact.i32, exact.const(0, "int32"))

        def average(n: Any, y: Any, x: Any, c: Any) -> Any:
            rows, columns = (_covered(p, axis, attrs, info.shape[axis + 1]) for axis, p in enumerate((y, x)))
            count = exact.i32(rows * columns)
            mean = _rounded_mean(sums(n, y, x, c), count)
            return exact.clamp(mean, attrs.clamp_min, attrs.clamp_max).astype(info.dtype)

        return te.compute(sums.shape, average, name="average")


class UnsignedAveragePool2d(AveragePool2d):
    """Computes the mean of unsigned elements under each window; its C is printed from its meaning."""

    name = "unsigned_average_pool2d"

    def kernels(self, site: Site[PoolAttrs]) -> Sequence[Kernel]:
        return ()


class MaxPool2d(_Pool):
    """Finds the largest element under each window; input and output share their scale."""

    name = "max_pool2d"

    def meaning(self, attrs: PoolAttrs, *inputs: Any) -> Any:
        return _maxima(inputs[0], attrs, self.name)


# Means and maxima over windows for models that are not TFLite: any padding, dilation, one rounding.
#
# Windows at the border may count fewer elements. So there is a multiplier for each count, with one shift for all.

BITS = 31  # of the largest multiplier: a sum of 32 bits with its sign times that fits 64


class WindowAttrs(Pooled):
    """``dilation`` is height, width; results are clamped as they are stored."""

    dilation: tuple[int, ...]
    clamp_min: int
    clamp_max: int


class WindowMeanAttrs(WindowAttrs):
    """``counted`` says how far outside the input elements count, as zeros: top, left, bottom, right.

    The multiplier of a window that counts ``n`` elements has the index ``n - least``; ``multiplier / 2**shift`` is
    input scale / output scale / n, and ``tolerance`` as in ``exact.RoundedOnce``.
    """

    counted: tuple[int, ...]
    least: int
    input_zero_point: int
    output_zero_point: int
    shift: int
    tolerance: int


def _counts(data: TensorInfo, attrs: WindowMeanAttrs) -> tuple[int, int]:
    """How many elements a window counts at least and at most."""
    sides, window = [], window_of(attrs, attrs.window)
    for axis, count in enumerate(window.counts(data.shape[1:3])):
        taps = window.place(axis, np.arange(count)[:, None], np.arange(attrs.window[axis]))
        low, high = -attrs.counted[axis], data.shape[axis + 1] + attrs.counted[axis + 2]
        sides.append(((taps >= low) & (taps < high)).sum(axis=1))
    least, most = (int(function(sides[0]) * function(sides[1])) for function in (np.min, np.max))
    reason = f"{WindowMean.name}: padding {attrs.padding} leaves windows {attrs.window} that count no element"
    require(least > 0, reason)
    return least, most


def _counted_along(data: TensorInfo, attrs: Pooled, axis: int, counted: Sequence[int] = (0, 0, 0, 0)) -> Any:
    """How many elements each window counts along one axis, ``counted`` outside of the image."""
    tap = te.reduce_axis((0, attrs.window[axis]), name="k")
    low, high, window = -counted[axis], data.shape[axis + 1] + counted[axis + 2], window_of(attrs, attrs.window)

    def element(position: Any) -> Any:
        place = window.place(axis, position, tap)
        inside = tirx.all(place >= low, place < high)
        return te.sum(tirx.if_then_else(inside, exact.const(1, "int32"), exact.const(0, "int32")), axis=tap)

    return te.compute((window.counts(data.shape[1:3])[axis],), element, name="counted")


# The fields of the kernels' structure that maxima do not use.
OF_MEANS = (
    *("counted_top", "counted_left", "counted_bottom", "counted_right"),
    *("least", "input_zero_point", "output_zero_point", "shift", "tolerance"),
)


class WindowMax(IntegerOperator[WindowAttrs]):
    """Finds the largest element under each window, or the lowest value where there is none; quantisation stays."""

    name = "window_max"

    def infer(self, attrs: WindowAttrs, *inputs: TensorInfo) -> TensorInfo:
        return infer_windows(inputs[0], attrs, self.name)

    def meaning(self, attrs: WindowAttrs, *inputs: Any) -> Any:
        return _maxima(inputs[0], attrs, self.name)

    def kernels(self, site: Site[WindowAttrs]) -> Sequence[Kernel]:
        parameters = _geometry(site) | dict.fromkeys(OF_MEANS, 0)
        return self.one_call(site, parameters, struct="uaccel_window", function=f"uaccel_{self.name}")


class WindowMean(IntegerOperator[WindowMeanAttrs]):
    """Computes the mean of the elements that each window counts, rescaled and rounded once, half to even."""

    name = "window_mean"
    arguments = ("input", "multipliers")

    def infer(self, attrs: WindowMeanAttrs, data: TensorInfo, multipliers: TensorInfo) -> TensorInfo:
        output = infer_windows(data, attrs, self.name)
        least, most = _counts(data, attrs)
        require_sum(most, data.dtype, self.name)
        wanted = TensorInfo((most - attrs.least + 1,), "int32")
        fits = attrs.least == least and multipliers == wanted
        reason = f"{self.name}: the multipliers from {attrs.least} are {multipliers}, wanted {wanted} from {least}"
        require(fits, reason)
        return output

    def meaning(self, attrs: WindowMeanAttrs, data: Any, multipliers: Any) -> Any:
        zero_point = exact.const(attrs.input_zero_point)
        sums = _over_window(
            data, attrs, self.name, te.sum, lambda element: exact.i64(element) - zero_point, exact.const(0)
        )
        rows, columns = (_counted_along(exact.info(data), attrs, axis, attrs.counted) for axis in (0, 1))

        def output(n: Any, y: Any, x: Any, c: Any) -> Any:
            multiplier = multipliers(rows(y) * columns(x) - attrs.least)
            return exact.rounded_once(sums(n, y, x, c) * exact.i64(multiplier), attrs, str(data.dtype))

        return te.compute(sums.shape, output, name=self.name)

    def kernels(self, site: Site[WindowMeanAttrs]) -> Sequence[Kernel]:
        attrs = site.attrs
        parameters = {
            **_geometry(site),
            **dict(zip(OF_MEANS, attrs.counted, strict=False)),
            **same(attrs, *OF_MEANS[len(attrs.counted) :]),
        }
        return self.one_call(site, parameters, struct="uaccel_window", function=f"uaccel_{self.name}")


def window_mean_operands(
    data: TensorInfo,
    given: Quantisation,
    wanted: Quantisation,
    windows: WindowAttrs,
    counted: Sequence[int] = (0, 0, 0, 0),
) -> tuple[WindowMeanAttrs, NDArray[np.int32]]:
    """Attributes and multipliers. ``counted`` is the padding that the model counts as zeros; elements beyond it, which
    a last window may reach with ``ceil_mode``, are not counted."""
    unscaled = WindowMeanAttrs(**asdict(windows), counted=tuple(counted), least=1, input_zero_point=given.zero_point,
                               output_zero_point=wanted.zero_point, shift=1, tolerance=0)  # fmt: skip
    infer_windows(data, windows, WindowMean.name)
    least, most = _counts(data, unscaled)
    ratio = scale_fraction(given.scale) / scale_fraction(wanted.scale)
    ratios = fixed_ratios([ratio / count for count in range(least, most + 1)], BITS)
    low, high = exact.limits(data.dtype)
    tolerance = ratios.tolerance(most_that_counts(ratio / most, most * (high - low), high - low))
    attrs = replace(unscaled, least=least, shift=ratios.shift, tolerance=tolerance)
    return attrs, np.array(ratios.multipliers, np.int32)


# Means and maxima of floats over windows.


class PoolFloatAttrs(Pooled):
    """``dilation`` is height, width. ``counts_padding`` is 1 where padded elements count: as zeros of a mean,
    as the lowest finite number of a maximum."""

    dilation: tuple[int, ...]
    counts_padding: int = 0


class _PoolFloat(IntegerOperator[PoolFloatAttrs]):
    channels = Channels.APART

    def infer(self, attrs: PoolFloatAttrs, data: TensorInfo) -> TensorInfo:
        require(data.dtype == "float32", f"{self.name}: input {data}, wanted float32")
        return infer_windows(data, attrs, self.name)

    def kernels(self, site: Site[PoolFloatAttrs]) -> Sequence[Kernel]:
        attrs = site.attrs
        divisor = math.prod(attrs.window) if attrs.counts_padding else 0
        parameters = geometry_fields(site, attrs.window) | {"divisor": divisor}
        function, behind = f"uaccel_{self.name.replace('2d', '')}", overwrite_distance(site)
        return [portable(function, "uaccel_pool_float", parameters, (Input(0), Output(0)), behind=behind)]


def _unchanged(element: Any) -> Any:
    return element


class AveragePool2dFloat(_PoolFloat):
    """Computes the mean of the elements under each window: their sum, row by row, divided by their number."""

    name = "average_pool2d_float"

    def meaning(self, attrs: PoolFloatAttrs, data: Any) -> Any:
        sums = _over_window(data, attrs, self.name, te.sum, _unchanged, exact.real(0))
        rows, columns = (_counted_along(exact.info(data), attrs, axis) for axis in (0, 1))

        def average(n: Any, y: Any, x: Any, c: Any) -> Any:
            if attrs.counts_padding:
                return sums(n, y, x, c) / exact.real(math.prod(attrs.window))
            count = tirx.max(rows(y) * columns(x), exact.const(1, "int32"))
            return sums(n, y, x, c) / count.astype("float32")

        return te.compute(sums.shape, average, name="average")


class MaxPool2dFloat(_PoolFloat):
    """Finds the largest element under each window."""

    name = "max_pool2d_float"

    def meaning(self, attrs: PoolFloatAttrs, *inputs: Any) -> Any:
        least = float(np.finfo(np.float32).min) if attrs.counts_padding else -math.inf
        largest = extreme(tirx.max, least)
        return _over_window(inputs[0], attrs, self.name, largest, _unchanged, exact.real(least))
