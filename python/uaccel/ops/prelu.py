"""PRELU: the factor of negative values is a tensor of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uaccel.ops import exact
from uaccel.ops.base import Attributes, register
from uaccel.ops.broadcast import BinaryOperator
from uaccel.tvm_api import tirx


@dataclass(frozen=True)
class PreluAttrs(Attributes):
    input_zero_point: int
    alpha_zero_point: int
    output_zero_point: int
    positive_multiplier: int
    positive_shift: int
    negative_multiplier: int
    negative_shift: int
    clamp_min: int
    clamp_max: int


@register
class Prelu(BinaryOperator[PreluAttrs]):
    """x for x >= 0, x * alpha for x < 0; alpha is int8 beside int8 and int16."""

    name = "prelu"
    arguments = ("input", "alpha")
    kernel = "uaccel_prelu"

    def second_dtypes(self, dtype: str) -> tuple[str, ...]:
        return ("int8",)

    def first(self, value: Any, attrs: PreluAttrs) -> Any:
        return exact.i32(value) - exact.const(attrs.input_zero_point, "int32")

    def second(self, value: Any, attrs: PreluAttrs) -> Any:
        return exact.i32(value) - exact.const(attrs.alpha_zero_point, "int32")

    def combine(self, x: Any, y: Any, attrs: PreluAttrs, dtype: str) -> Any:
        positive = exact.requantize_const(x, attrs.positive_multiplier, attrs.positive_shift)
        negative = exact.requantize_const(x * y, attrs.negative_multiplier, attrs.negative_shift)
        scaled = tirx.Select(x >= exact.const(0, "int32"), positive, negative)
        return exact.finish(scaled, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, dtype)
