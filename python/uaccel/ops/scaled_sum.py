"""Sums and means along any axes whose real result is rounded once, half to even."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import Quantisation, Shape, TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import IntegerOperator, Site, register, require
from uaccel.ops.kernel import Input, Kernel, Output, dtype_suffix, portable, same
from uaccel.ops.ratio import fixed_ratios, most_that_counts, scale_fraction
from uaccel.ops.reduce import (
    LONGEST,
    ReduceAttrs,
    infer_reduced,
    loop_extents,
    loop_parameters,
    reduced,
    reduced_elements,
)
from uaccel.ops.rounded import RoundedOnce
from uaccel.tvm_api import te

BITS = 31  # of the multiplier: the sums have 32


@dataclass(frozen=True)
class ScaledSumAttrs(RoundedOnce, ReduceAttrs):
    """``multiplier / 2**shift`` is input scale / output scale, for a mean divided by the count."""

    input_zero_point: int
    multiplier: int


def require_sum(count: int, dtype: str, what: str) -> None:
    """A sum, less what the zero point adds up to, fits 32 bits."""
    low, high = exact.limits(dtype)
    most = ((1 << 31) - 1) // (high - low)
    require(
        count <= most, f"{what}: the sum of {count} {dtype} elements overflows 32 bits; at most {most} are possible"
    )


@register
class ScaledSum(IntegerOperator[ScaledSumAttrs]):
    """The sum of input - input_zero_point times a ratio, rounded once, half to even."""

    name = "scaled_sum"
    arguments = ("input",)

    def infer(self, inputs: Sequence[TensorInfo], attrs: ScaledSumAttrs) -> TensorInfo:
        output = infer_reduced(inputs[0], attrs, self.name)
        runs = len(loop_extents(inputs[0].shape, attrs.axes))
        require(runs <= LONGEST, f"{self.name}: axes {attrs.axes} of {inputs[0]} take {runs} loops, at most {LONGEST}")
        require_sum(reduced_elements(inputs[0].shape, attrs.axes), inputs[0].dtype, self.name)
        return output

    def meaning(self, inputs: Sequence[Any], attrs: ScaledSumAttrs) -> Any:
        (data,) = inputs
        zero_point = exact.const(attrs.input_zero_point)
        sums = reduced(data, attrs, self.name, te.sum, lambda element: exact.i64(element) - zero_point)

        def output(*index: Any) -> Any:
            scaled = sums(*index) * exact.const(attrs.multiplier)
            return attrs.finish(scaled, str(data.dtype))

        return te.compute(sums.shape, output, name=self.name)

    def kernels(self, site: Site[ScaledSumAttrs]) -> Sequence[Kernel]:
        attrs, data = site.attrs, site.operands[0].info
        count = reduced_elements(data.shape, attrs.axes)
        parameters = {
            **loop_parameters(data.shape, attrs.axes),
            "offset": -attrs.input_zero_point * count,
            **same(attrs, "multiplier", "shift", "tolerance", "output_zero_point", "clamp_min", "clamp_max"),
        }
        function, struct = f"uaccel_scaled_sum_{dtype_suffix(data.dtype)}", "uaccel_scaled_sum"
        return [portable(function, struct, parameters, (Input(0), Output(0)))]


def scaled_sum_attrs(
    data: TensorInfo,
    given: Quantisation,
    wanted: Quantisation,
    axes: Sequence[int],
    *,
    keep_dims: bool,
    mean: bool,
    clamp: tuple[int, int] | None = None,
) -> ScaledSumAttrs:
    """The sum of ``data`` along ``axes``, which may count from the end, or its mean."""
    ascending = _ascending(data.shape, axes)
    count = reduced_elements(data.shape, ascending)
    ratio = scale_fraction(given.scale) / scale_fraction(wanted.scale) / (count if mean else 1)
    ratios = fixed_ratios([ratio], BITS)
    low, high = exact.limits(data.dtype)
    return ScaledSumAttrs(
        axes=ascending,
        keep_dims=keep_dims,
        input_zero_point=given.zero_point,
        multiplier=ratios.multipliers[0],
        shift=ratios.shift,
        tolerance=ratios.tolerance(most_that_counts(ratio, count * (high - low), high - low)),
        output_zero_point=wanted.zero_point,
        clamp_min=clamp[0] if clamp else low,
        clamp_max=clamp[1] if clamp else high,
    )


def _ascending(shape: Shape, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({axis + len(shape) if axis < 0 else axis for axis in axes}))
