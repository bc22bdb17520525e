"""Means and maxima over windows for models that are not TFLite: any padding, dilation, one rounding; NHWC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Quantisation, TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require, window_count
from uaccel.ops.kernel import Argument, Constant, Input, Kernel, Output, dtype_suffix, portable, same, sides
from uaccel.ops.ratio import fixed_ratios, most_that_counts, scale_fraction
from uaccel.ops.scaled_sum import require_sum
from uaccel.tvm_api import te, tirx

BITS = 31  # of the largest multiplier: the sums have 32


@dataclass(frozen=True)
class WindowAttrs(Attributes):
    """``window``, ``strides`` and ``dilation`` are height, width; ``padding`` is top, left, bottom, right."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    clamp_min: int
    clamp_max: int


@dataclass(frozen=True)
class WindowMeanAttrs(WindowAttrs):
    """``counted`` says how far outside the input elements count, as zeros: top, left, bottom, right.

    The multiplier of a window that counts ``n`` elements has the index ``n - least``; ``multiplier / 2**shift`` is
    input scale / output scale / n, and ``tolerance`` as in ``rounded.py``.
    """

    counted: tuple[int, ...]
    least: int
    input_zero_point: int
    output_zero_point: int
    shift: int
    tolerance: int


def infer_windows(data: TensorInfo, attrs: WindowAttrs, what: str) -> TensorInfo:
    require(len(data.shape) == 4, f"{what}: input {data} has rank {len(data.shape)}, wanted 4 (NHWC)")
    extents = [_positions(data, attrs, axis) for axis in (0, 1)]
    fits = all(extent > 0 for extent in extents)
    require(fits, f"{what}: the window {attrs.window} is larger than the padded input {data}")
    return TensorInfo((data.shape[0], *extents, data.shape[3]), data.dtype)


def _positions(data: TensorInfo, attrs: WindowAttrs, axis: int) -> int:
    before, after = attrs.padding[axis], attrs.padding[axis + 2]
    return window_count(
        data.shape[axis + 1], attrs.window[axis], attrs.strides[axis], attrs.dilation[axis], before, after
    )


def _counts(data: TensorInfo, attrs: WindowMeanAttrs) -> NDArray[np.int64]:
    """How many elements each window counts, by its row and column."""
    sides = []
    for axis in (0, 1):
        first = np.arange(_positions(data, attrs, axis))[:, None] * attrs.strides[axis] - attrs.padding[axis]
        taps = first + np.arange(attrs.window[axis]) * attrs.dilation[axis]
        low, high = -attrs.counted[axis], data.shape[axis + 1] + attrs.counted[axis + 2]
        sides.append(((taps >= low) & (taps < high)).sum(axis=1))
    return np.asarray(np.multiply.outer(sides[0], sides[1]), np.int64)


def _tap(position: Any, axis: int, attrs: WindowAttrs, tap: Any) -> Any:
    return position * attrs.strides[axis] + tap * attrs.dilation[axis] - attrs.padding[axis]


def _over_window(data: Any, attrs: WindowAttrs, what: str, combine: Any, convert: Any, outside: Any) -> Any:
    """``combine`` over each window, of elements that are ``convert``-ed, ``outside`` where there are none."""
    info = exact.info(data)
    taps = [te.reduce_axis((0, extent), name=name) for extent, name in zip(attrs.window, ("ky", "kx"), strict=True)]

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        row, column = _tap(y, 0, attrs, taps[0]), _tap(x, 1, attrs, taps[1])
        inside = tirx.all(row >= 0, row < info.shape[1], column >= 0, column < info.shape[2])
        return combine(tirx.if_then_else(inside, convert(data(n, row, column, c)), outside), axis=taps)

    return te.compute(infer_windows(info, attrs, what).shape, element, name="windows")


def _counted_along(data: TensorInfo, attrs: WindowMeanAttrs, axis: int) -> Any:
    """How many elements each window counts along one axis."""
    tap = te.reduce_axis((0, attrs.window[axis]), name="k")
    low, high = -attrs.counted[axis], data.shape[axis + 1] + attrs.counted[axis + 2]

    def element(position: Any) -> Any:
        place = _tap(position, axis, attrs, tap)
        inside = tirx.all(place >= low, place < high)
        return te.sum(tirx.if_then_else(inside, exact.const(1, "int32"), exact.const(0, "int32")), axis=tap)

    return te.compute((_positions(data, attrs, axis),), element, name="counted")


def _geometry(data: TensorInfo, output: TensorInfo, attrs: WindowAttrs) -> dict[str, int]:
    """The fields of the kernels' structure that means and maxima share."""
    return {
        "batch": data.shape[0],
        **sides("in", data.shape[1:3]),
        **sides("out", output.shape[1:3]),
        "channels": data.shape[3],
        **sides("window", attrs.window),
        **sides("stride", attrs.strides),
        **sides("dilation", attrs.dilation),
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
        **same(attrs, "clamp_min", "clamp_max"),
    }


OF_MEANS = (
    *("counted_top", "counted_left", "counted_bottom", "counted_right"),
    *("least", "input_zero_point", "output_zero_point", "shift", "tolerance"),
)
"""Fields that maxima have no use for."""


def _kernel(what: str, site: Site[Any], parameters: dict[str, int], arguments: tuple[Argument, ...]) -> Kernel:
    data = site.operands[0].info
    fields = _geometry(data, site.output, site.attrs) | parameters
    function = f"uaccel_{what}_{dtype_suffix(data.dtype)}"
    return portable(function, "uaccel_window", fields, (Input(0), *arguments, Output(0)))


@register
class WindowMax(IntegerOperator[WindowAttrs]):
    """The largest element under each window, the lowest value where there is none; the quantisation stays."""

    name = "window_max"
    arguments = ("input",)

    def infer(self, inputs: Sequence[TensorInfo], attrs: WindowAttrs) -> TensorInfo:
        return infer_windows(inputs[0], attrs, self.name)

    def meaning(self, inputs: Sequence[Any], attrs: WindowAttrs) -> Any:
        (data,) = inputs
        lowest = exact.const(attrs.clamp_min, "int32")
        largest = _over_window(data, attrs, self.name, te.max, exact.i32, lowest)

        def clamped(*index: Any) -> Any:
            return exact.clamp(largest(*index), attrs.clamp_min, attrs.clamp_max).astype(str(data.dtype))

        return te.compute(largest.shape, clamped, name=self.name)

    def kernels(self, site: Site[WindowAttrs]) -> Sequence[Kernel]:
        return [_kernel(self.name, site, dict.fromkeys(OF_MEANS, 0), ())]


@register
class WindowMean(IntegerOperator[WindowMeanAttrs]):
    """The mean of what each window counts, rescaled and rounded once, half to even."""

    name = "window_mean"
    arguments = ("input", "multipliers")

    def infer(self, inputs: Sequence[TensorInfo], attrs: WindowMeanAttrs) -> TensorInfo:
        data, multipliers = inputs
        output = infer_windows(data, attrs, self.name)
        counts = _counts(data, attrs)
        least, most = int(counts.min()), int(counts.max())
        require(least > 0, f"{self.name}: padding {attrs.padding} leaves windows {attrs.window} that count no element")
        require_sum(most, data.dtype, self.name)
        wanted = TensorInfo((most - attrs.least + 1,), "int32")
        fits = attrs.least == least and multipliers == wanted
        require(
            fits, f"{self.name}: the multipliers from {attrs.least} are {multipliers}, wanted {wanted} from {least}"
        )
        return output

    def meaning(self, inputs: Sequence[Any], attrs: WindowMeanAttrs) -> Any:
        data, multipliers = inputs
        zero_point = exact.const(attrs.input_zero_point)
        sums = _over_window(
            data, attrs, self.name, te.sum, lambda element: exact.i64(element) - zero_point, exact.const(0)
        )
        rows, columns = (_counted_along(exact.info(data), attrs, axis) for axis in (0, 1))

        def output(n: Any, y: Any, x: Any, c: Any) -> Any:
            multiplier = multipliers(rows(y) * columns(x) - attrs.least)
            rounded = exact.round_half_even(sums(n, y, x, c) * exact.i64(multiplier), attrs.shift, attrs.tolerance)
            low, high = attrs.clamp_min, attrs.clamp_max
            return exact.finish(rounded, attrs.output_zero_point, low, high, str(data.dtype))

        return te.compute(sums.shape, output, name=self.name)

    def kernels(self, site: Site[WindowMeanAttrs]) -> Sequence[Kernel]:
        attrs = site.attrs
        names = ("counted_top", "counted_left", "counted_bottom", "counted_right")
        parameters = {
            **dict(zip(names, attrs.counted, strict=True)),
            **same(attrs, "least", "input_zero_point", "output_zero_point", "shift", "tolerance"),
        }
        return [_kernel(self.name, site, parameters, (Constant("multipliers", site.operands[1].value),))]


def window_mean_operands(
    data: TensorInfo,
    given: Quantisation,
    wanted: Quantisation,
    windows: WindowAttrs,
    counted: Sequence[int] = (0, 0, 0, 0),
) -> tuple[WindowMeanAttrs, NDArray[np.int32]]:
    """Attributes and multipliers. ``counted`` is the padding that the model counts as zeros; what a last window reaches
    beyond that, as with ``ceil_mode``, counts for nothing."""
    fields = {name: getattr(windows, name) for name in windows.__dataclass_fields__}
    unscaled = WindowMeanAttrs(**fields, counted=tuple(counted), least=1, input_zero_point=given.zero_point,
                               output_zero_point=wanted.zero_point, shift=1, tolerance=0)  # fmt: skip
    infer_windows(data, windows, WindowMean.name)
    counts = _counts(data, unscaled)
    least, most = int(counts.min()), int(counts.max())
    require(least > 0, f"window_mean: padding {windows.padding} leaves windows {windows.window} that count no element")
    ratio = scale_fraction(given.scale) / scale_fraction(wanted.scale)
    ratios = fixed_ratios([ratio / count for count in range(least, most + 1)], BITS)
    low, high = exact.limits(data.dtype)
    tolerance = ratios.tolerance(most_that_counts(ratio / most, most * (high - low), high - low))
    attrs = replace(unscaled, least=least, shift=ratios.shift, tolerance=tolerance)
    return attrs, np.array(ratios.multipliers, np.int32)
