"""Addition and subtraction whose real result is rounded once, half to even."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uaccel.model import Quantisation
from uaccel.ops import exact
from uaccel.ops.base import register
from uaccel.ops.broadcast import BinaryOperator
from uaccel.ops.ratio import fixed_ratios, scale_fraction
from uaccel.ops.rounded import RoundedOnce

BITS = 31  # of the larger multiplier


@dataclass(frozen=True)
class WeightedSumAttrs(RoundedOnce):
    """``multiplier / 2**shift`` is input scale / output scale, the second negative for a difference."""

    zero_point1: int
    multiplier1: int
    zero_point2: int
    multiplier2: int


@register
class WeightedSum(BinaryOperator[WeightedSumAttrs]):
    """(input1 - zero_point1) * ratio1 + (input2 - zero_point2) * ratio2, rounded once, half to even."""

    name = "weighted_sum"
    kernel = "uaccel_weighted_sum"

    def first(self, value: Any, attrs: WeightedSumAttrs) -> Any:
        return (exact.i64(value) - exact.const(attrs.zero_point1)) * exact.const(attrs.multiplier1)

    def second(self, value: Any, attrs: WeightedSumAttrs) -> Any:
        return (exact.i64(value) - exact.const(attrs.zero_point2)) * exact.const(attrs.multiplier2)

    def combine(self, x: Any, y: Any, attrs: WeightedSumAttrs, dtype: str) -> Any:
        return attrs.finish(x + y, dtype)


def weighted_sum_attrs(
    first: Quantisation,
    second: Quantisation,
    output: Quantisation,
    dtype: str,
    *,
    sign: int = 1,
    clamp: tuple[int, int] | None = None,
) -> WeightedSumAttrs:
    """first + ``sign`` * second; ``clamp`` bounds the stored result, for an activation that comes after."""
    wanted = scale_fraction(output.scale)
    ratios = fixed_ratios([scale_fraction(first.scale) / wanted, sign * scale_fraction(second.scale) / wanted], BITS)
    low, high = exact.limits(dtype)
    multiplier1, multiplier2 = ratios.multipliers
    return WeightedSumAttrs(
        zero_point1=first.zero_point,
        multiplier1=multiplier1,
        zero_point2=second.zero_point,
        multiplier2=multiplier2,
        shift=ratios.shift,
        tolerance=ratios.tolerance(2 * (high - low)),
        output_zero_point=output.zero_point,
        clamp_min=clamp[0] if clamp else low,
        clamp_max=clamp[1] if clamp else high,
    )
