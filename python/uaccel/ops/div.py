"""Division of quantised tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, register, require
from uaccel.ops.broadcast import Broadcast, broadcast_shape, element_at
from uaccel.ops.exact import const, i64
from uaccel.ops.softmax_steps import leading_zeros, reciprocal_of
from uaccel.tvm_api import te, tirx

OF_ZERO: Final = -1515870788
"""What the reference's Newton steps make of 1 / 0, after which a quotient has the other sign."""


@dataclass(frozen=True)
class DivAttrs(Attributes):
    """``multiplier`` and ``shift`` bring the quotient of the stored values to the output's scale."""

    zero_point1: int
    zero_point2: int
    output_zero_point: int
    multiplier: int
    shift: int
    clamp_min: int
    clamp_max: int


@register
class Div(Broadcast[DivAttrs]):
    """input1 / input2, of int8. A quotient that takes a shift by more than 31 bits is zero."""

    name = "div"
    kernel = "uaccel_div"

    def infer(self, inputs: Sequence[TensorInfo], attrs: DivAttrs) -> TensorInfo:
        require(inputs[0].dtype == "int8", f"div: input is {inputs[0].dtype}, wanted int8")
        return super().infer(inputs, attrs)

    def meaning(self, inputs: Sequence[Any], attrs: DivAttrs) -> Any:
        infos = [exact.info(tensor) for tensor in inputs]
        divisor = te.compute(infos[1].shape, lambda *i: i64(inputs[1](*i)) - const(attrs.zero_point2), name="divisor")
        size = te.compute(infos[1].shape, lambda *i: tirx.max(divisor(*i), -divisor(*i)), name="size")
        zeros = te.compute(infos[1].shape, lambda *i: leading_zeros(size(*i)), name="zeros")

        def normalised(*i: Any) -> Any:
            """2**31 stands for zero."""
            return tirx.Select(size(*i) > const(0), size(*i) << zeros(*i), const(1 << 31))

        inverse = reciprocal_of(te.compute(infos[1].shape, normalised, name="normalised"))

        shape = broadcast_shape(infos[0].shape, infos[1].shape)

        def dividend(*index: Any) -> Any:
            value = i64(element_at(inputs[0], infos[0].shape, index)) - const(attrs.zero_point1)
            return tirx.Select(element_at(divisor, infos[1].shape, index) < const(0), -value, value)

        signed = te.compute(shape, dividend, name="dividend")
        positive = te.compute(shape, lambda *i: tirx.max(signed(*i), -signed(*i) - const(1)), name="positive")
        room = te.compute(shape, lambda *i: leading_zeros(positive(*i)) - const(1), name="room")

        def scaled(*index: Any) -> Any:
            is_zero = element_at(size, infos[1].shape, index) < const(1)
            factor = tirx.Select(is_zero, const(OF_ZERO), element_at(inverse, infos[1].shape, index))
            raised = signed(*index) << room(*index)
            return exact.high_mul(exact.high_mul(raised, factor), const(attrs.multiplier))

        def right(*index: Any) -> Any:
            bits = const(31 - attrs.shift) - element_at(zeros, infos[1].shape, index)
            return bits + room(*index)

        scaleds, rights = te.compute(shape, scaled, name="scaled"), te.compute(shape, right, name="right")

        def quotient(*index: Any) -> Any:
            rounded = exact.rounding_divide_by_power(scaleds(*index), tirx.min(rights(*index), const(31)))
            return tirx.Select(rights(*index) > const(31), const(0), rounded)

        quotients = te.compute(shape, quotient, name="quotient")

        def element(*index: Any) -> Any:
            return exact.finish(
                quotients(*index), attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, infos[0].dtype
            )

        return te.compute(shape, element, name="div")
