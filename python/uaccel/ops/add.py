"""Addition and subtraction of quantised tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from uaccel.ops import exact
from uaccel.ops.base import Attributes, register
from uaccel.ops.broadcast import BinaryOperator
from uaccel.ops.kernel import ParameterValue


@dataclass(frozen=True)
class AddAttrs(Attributes):
    """Both inputs are brought to one scale, ``left_shift`` bits finer, added, and brought to the output's."""

    left_shift: int
    zero_point1: int
    multiplier1: int
    shift1: int
    zero_point2: int
    multiplier2: int
    shift2: int
    output_zero_point: int
    output_multiplier: int
    output_shift: int
    clamp_min: int
    clamp_max: int


A = TypeVar("A", bound=AddAttrs)


class CommonScale(BinaryOperator[A]):
    """An operator that works on both inputs at one finer scale."""

    def first(self, value: Any, attrs: A) -> Any:
        return _rescaled(value, attrs.left_shift, attrs.zero_point1, attrs.multiplier1, attrs.shift1)

    def second(self, value: Any, attrs: A) -> Any:
        return _rescaled(value, attrs.left_shift, attrs.zero_point2, attrs.multiplier2, attrs.shift2)


def _rescaled(value: Any, left_shift: int, zero_point: int, multiplier: int, shift: int) -> Any:
    raised = (exact.i32(value) - exact.const(zero_point, "int32")) << exact.const(left_shift, "int32")
    return exact.i32(exact.requantize_const(raised, multiplier, shift))


class _Sum(CommonScale[AddAttrs]):
    kernel = "uaccel_add"
    sign: int

    def combine(self, x: Any, y: Any, attrs: AddAttrs, dtype: str) -> Any:
        total = x + y if self.sign > 0 else x - y
        scaled = exact.requantize_const(total, attrs.output_multiplier, attrs.output_shift)
        return exact.finish(scaled, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, dtype)

    def parameters(self, attrs: AddAttrs) -> Mapping[str, ParameterValue]:
        return {**super().parameters(attrs), "sign": self.sign}


@register
class Add(_Sum):
    """input1 + input2."""

    name = "add"
    sign = 1


@register
class Sub(_Sum):
    """input1 - input2."""

    name = "sub"
    sign = -1
