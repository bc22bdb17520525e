"""Multiplication of quantised tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uaccel.ops import exact
from uaccel.ops.base import Attributes, register
from uaccel.ops.broadcast import BinaryOperator


@dataclass(frozen=True)
class MulAttrs(Attributes):
    zero_point1: int
    zero_point2: int
    output_zero_point: int
    multiplier: int
    shift: int
    clamp_min: int
    clamp_max: int


@register
class Mul(BinaryOperator[MulAttrs]):
    """input1 * input2."""

    name = "mul"
    kernel = "uaccel_mul"

    def first(self, value: Any, attrs: MulAttrs) -> Any:
        return exact.i32(value) - exact.const(attrs.zero_point1, "int32")

    def second(self, value: Any, attrs: MulAttrs) -> Any:
        return exact.i32(value) - exact.const(attrs.zero_point2, "int32")

    def combine(self, x: Any, y: Any, attrs: MulAttrs, dtype: str) -> Any:
        scaled = exact.requantize_const(x * y, attrs.multiplier, attrs.shift)
        return exact.finish(scaled, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, dtype)
