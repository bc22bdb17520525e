"""Mean, sum, maximum and minimum along any axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import Shape, TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.kernel import Input, Kernel, Output, dtype_suffix, portable
from uaccel.ops.rounding import FLOAT32, TFLITE, check_rounding, kernel_suffix
from uaccel.tvm_api import te


@dataclass(frozen=True)
class ReduceAttrs(Attributes):
    """``axes`` ascend; ``keep_dims`` leaves them behind with extent 1."""

    axes: tuple[int, ...]
    keep_dims: bool


@dataclass(frozen=True)
class ReduceSumAttrs(ReduceAttrs):
    """``multiplier * 2**(shift - 31)`` is input scale / output scale."""

    input_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int
    rounding: str = TFLITE


def infer_reduced(data: TensorInfo, attrs: ReduceAttrs, what: str) -> TensorInfo:
    axes, rank = attrs.axes, len(data.shape)
    require(len(axes) > 0, f"{what}: there are no axes to reduce")
    require(list(axes) == sorted(set(axes)), f"{what}: axes {axes} do not ascend")
    require(all(0 <= axis < rank for axis in axes), f"{what}: axes {axes} are not axes of {data}")
    kept = [1 if axis in axes else extent for axis, extent in enumerate(data.shape)]
    shape = kept if attrs.keep_dims else [extent for axis, extent in enumerate(kept) if axis not in axes]
    return TensorInfo(tuple(shape), data.dtype)


def reduced_elements(shape: Shape, axes: Sequence[int]) -> int:
    """How many elements make one of the output."""
    return math.prod(shape[axis] for axis in axes)


def loop_extents(shape: Shape, axes: Sequence[int]) -> list[int]:
    """The axes joined to alternating runs, the first kept, the last kept: kept, reduced, kept, ..."""
    runs = [1]
    for axis, extent in enumerate(shape):
        reduced = axis in axes
        if extent == 1:
            continue
        if reduced == (len(runs) % 2 == 0):
            runs[-1] *= extent
        else:
            runs.append(extent)
    return runs if len(runs) % 2 else [*runs, 1]


LONGEST = 5  # runs that the kernels' loops have


def reduced(data: Any, attrs: ReduceAttrs, what: str, combine: Any, convert: Any) -> Any:
    """``combine`` over the reduced axes, of each element ``convert``-ed."""
    info = exact.info(data)
    shape = infer_reduced(info, attrs, what).shape
    taken = {axis: te.reduce_axis((0, info.shape[axis]), name=f"r{axis}") for axis in attrs.axes}

    def element(*index: Any) -> Any:
        kept = list(index)
        if attrs.keep_dims:
            kept = [position for axis, position in enumerate(index) if axis not in taken]
        full = [taken[axis] if axis in taken else kept.pop(0) for axis in range(len(info.shape))]
        return combine(convert(data(*full)), axis=list(taken.values()))

    return te.compute(shape, element, name="reduced")


def loop_parameters(shape: Shape, axes: Sequence[int]) -> dict[str, int]:
    """The loops as fields of a kernel's structure; those that are missing run once."""
    runs = loop_extents(shape, axes)
    names = ("outer", "reduced_outer", "middle", "reduced_inner", "inner")
    return dict(zip(names, [*runs, *[1] * (LONGEST - len(runs))], strict=True))


OF_SUMS = ("offset", "multiplier", "shift", "output_zero_point")
"""Fields that extremes have no use for."""


def _kernel(function: str, site: Site[Any], parameters: dict[str, int]) -> Kernel:
    data = site.operands[0].info
    loops = loop_parameters(data.shape, site.attrs.axes)
    name = f"{function}_{dtype_suffix(data.dtype)}"
    return portable(name, "uaccel_reduce", loops | parameters, (Input(0), Output(0)))


class _RequantisedSum(IntegerOperator[ReduceSumAttrs]):
    """What mean and sum share: they differ in the factor alone."""

    arguments = ("input",)

    def factor(self, attrs: ReduceSumAttrs, count: int) -> tuple[int, int]:
        """Multiplier and shift for the sum of ``count`` elements."""
        return attrs.multiplier, attrs.shift

    def infer(self, inputs: Sequence[TensorInfo], attrs: ReduceSumAttrs) -> TensorInfo:
        check_rounding(attrs, self.name)
        return infer_reduced(inputs[0], attrs, self.name)

    def meaning(self, inputs: Sequence[Any], attrs: ReduceSumAttrs) -> Any:
        (data,) = inputs
        info = exact.info(data)
        count = reduced_elements(info.shape, attrs.axes)
        sums = reduced(data, attrs, self.name, te.sum, exact.i64)
        low, high = exact.limits(info.dtype)
        factor = [exact.const(number, "int32") for number in self.factor(attrs, count)]

        def output(*index: Any) -> Any:
            centred = sums(*index) - exact.const(attrs.input_zero_point * count)
            scaled = exact.requantize_as(attrs.rounding, exact.i32(centred), *factor)
            return exact.finish(scaled, attrs.output_zero_point, low, high, info.dtype)

        return te.compute(sums.shape, output, name=self.name)

    def kernels(self, site: Site[ReduceSumAttrs]) -> Sequence[Kernel]:
        attrs, data = site.attrs, site.operands[0].info
        count = reduced_elements(data.shape, attrs.axes)
        multiplier, shift = self.factor(attrs, count)
        parameters = {
            "offset": -attrs.input_zero_point * count,
            "multiplier": multiplier,
            "shift": shift,
            "output_zero_point": attrs.output_zero_point,
        }
        return [_kernel(f"uaccel_reduce_sum{kernel_suffix(attrs)}", site, parameters)]


@register
class ReduceSum(_RequantisedSum):
    """The sum, requantised."""

    name = "sum"


@register
class ReduceMean(_RequantisedSum):
    """The mean: the sum, requantised by a multiplier that holds the division by the count."""

    name = "mean"

    def factor(self, attrs: ReduceSumAttrs, count: int) -> tuple[int, int]:
        """TFLite's quotient keeps as many bits as the reference keeps, and is cut off, not rounded.

        With float32 rounding the attributes hold the whole factor, division and all, as a float32 can hold it.
        """
        if attrs.rounding == FLOAT32:
            return attrs.multiplier, attrs.shift
        bits = min(count.bit_length() - 1, 32, 31 + attrs.shift)
        return (attrs.multiplier << bits) // count, attrs.shift - bits


class _Extreme(IntegerOperator[ReduceAttrs]):
    """What maximum and minimum share."""

    arguments = ("input",)
    combine: Any

    def infer(self, inputs: Sequence[TensorInfo], attrs: ReduceAttrs) -> TensorInfo:
        return infer_reduced(inputs[0], attrs, self.name)

    def meaning(self, inputs: Sequence[Any], attrs: ReduceAttrs) -> Any:
        return reduced(inputs[0], attrs, self.name, type(self).combine, lambda element: element)

    def kernels(self, site: Site[ReduceAttrs]) -> Sequence[Kernel]:
        return [_kernel(f"uaccel_{self.name}", site, dict.fromkeys(OF_SUMS, 0))]


@register
class ReduceMax(_Extreme):
    """The largest element; input and output share their quantisation."""

    name = "reduce_max"
    combine = te.max


@register
class ReduceMin(_Extreme):
    """The smallest element; input and output share their quantisation."""

    name = "reduce_min"
    combine = te.min
