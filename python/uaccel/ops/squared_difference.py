"""The squared difference of quantised tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uaccel.ops import exact
from uaccel.ops.add import AddAttrs, CommonScale
from uaccel.ops.base import register


@dataclass(frozen=True)
class SquaredDifferenceAttrs(AddAttrs):
    """As for a sum, but what is brought to the output's scale is the square."""


@register
class SquaredDifference(CommonScale[SquaredDifferenceAttrs]):
    """(input1 - input2) squared."""

    name = "squared_difference"
    kernel = "uaccel_squared_difference"

    def combine(self, x: Any, y: Any, attrs: SquaredDifferenceAttrs, dtype: str) -> Any:
        square = (x - y) * (x - y)
        scaled = exact.requantize_const(square, attrs.output_multiplier, attrs.output_shift)
        return exact.finish(scaled, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, dtype)
