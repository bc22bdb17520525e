"""Operators of two inputs with broadcasting: ADD, SUB, MUL, MINIMUM, MAXIMUM, SQUARED_DIFFERENCE on int8 and int16."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uaccel.errors import need
from uaccel.frontend.tflite.convert import (
    INTEGER_ACTIVATIONS,
    Context,
    Expr,
    activation_range,
    converts,
    factor,
    need_dtype,
)
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.ops import exact
from uaccel.ops.add import Add, AddAttrs, Sub
from uaccel.ops.base import Attributes, get
from uaccel.ops.broadcast import BinaryOperator, broadcast_shape
from uaccel.ops.fixedpoint import quantize_multiplier
from uaccel.ops.minimum_maximum import Maximum, Minimum, MinimumMaximumAttrs
from uaccel.ops.mul import Mul, MulAttrs
from uaccel.ops.squared_difference import SquaredDifference, SquaredDifferenceAttrs
from uaccel.tvm_api import relax

SUMS: Mapping[str, type[BinaryOperator[Any]]] = {"ADD": Add, "SUB": Sub}
EXTREMES: Mapping[str, type[BinaryOperator[Any]]] = {"MINIMUM": Minimum, "MAXIMUM": Maximum}
SUM_LEFT_SHIFT = {"int8": 20, "int16": 15}
DIFFERENCE_LEFT_SHIFT = {"int8": 7, "int16": 0}

Tensors = tuple[Tensor, Tensor, Tensor]


def need_one_scale(tensor: Tensor) -> None:
    quantisation = tensor.quantisation
    fits = quantisation is None or not quantisation.per_channel
    need(fits, f'"{tensor.name}" has a scale for each slice along an axis; this operator takes one for the tensor')


def _tensors(operator: Operator) -> Tensors:
    """Both inputs and the output, of one type."""
    first, second, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_dtype(first, INTEGER_ACTIVATIONS, "input")
    need_dtype(second, (first.info.dtype,), "input")
    need_dtype(output, (first.info.dtype,), "output")
    for tensor in (first, second, output):
        need_one_scale(tensor)
    shape = broadcast_shape(first.info.shape, second.info.shape)
    need(shape == output.info.shape, f"{first.info} and {second.info} broadcast to {list(shape)}, not {output.info}")
    return first, second, output


def _binary(context: Context, op: type[BinaryOperator[Any]], tensors: Tensors, attrs: Attributes) -> Expr:
    first, second, _ = tensors
    return get(op)(context.expr(first), context.expr(second), attrs=attrs)


def fraction(real: float, what: str) -> tuple[int, int]:
    """The multiplier and shift of a real factor that the reference takes only below one."""
    multiplier, shift = quantize_multiplier(float(real))
    need(0 < real < 1 and shift <= 0, f"{what} {real:.6g} is not between 0 and 1: the output's scale is too small")
    return multiplier, shift


def _on_a_common_scale(first: Tensor, second: Tensor, left_shift: int) -> dict[str, int]:
    """What AddAttrs says of the inputs: they meet at twice the coarser scale, ``left_shift`` bits finer."""
    twice = 2.0 * max(first.scale, second.scale)
    multiplier1, shift1 = fraction(first.scale / twice, "relative scale of input 1")
    multiplier2, shift2 = fraction(second.scale / twice, "relative scale of input 2")
    return {
        "left_shift": left_shift,
        "zero_point1": first.zero_point,
        "multiplier1": multiplier1,
        "shift1": shift1,
        "zero_point2": second.zero_point,
        "multiplier2": multiplier2,
        "shift2": shift2,
    }


@converts(*SUMS)
def total(context: Context, operator: Operator) -> Expr:
    tensors = _tensors(operator)
    first, second, output = tensors
    left_shift = SUM_LEFT_SHIFT[output.info.dtype]
    factor = 2.0 * max(first.scale, second.scale) / ((1 << left_shift) * output.scale)
    multiplier, shift = fraction(factor, "relative scale of the sum")
    low, high = activation_range(operator, output)
    attrs = AddAttrs(
        **_on_a_common_scale(first, second, left_shift),
        output_zero_point=output.zero_point,
        output_multiplier=multiplier,
        output_shift=shift,
        clamp_min=low,
        clamp_max=high,
    )
    return _binary(context, SUMS[operator.name], tensors, attrs)


@converts("MUL")
def mul(context: Context, operator: Operator) -> Expr:
    tensors = _tensors(operator)
    first, second, output = tensors
    if output.info.dtype == "int16":
        points = [tensor.zero_point for tensor in tensors]
        need(not any(points), f"int16 zero points are {points}; the reference multiplies only with zero points of 0")
    multiplier, shift = quantize_multiplier(first.scale * second.scale / output.scale)
    low, high = activation_range(operator, output)
    attrs = MulAttrs(
        zero_point1=first.zero_point,
        zero_point2=second.zero_point,
        output_zero_point=output.zero_point,
        multiplier=multiplier,
        shift=shift,
        clamp_min=low,
        clamp_max=high,
    )
    return _binary(context, Mul, tensors, attrs)


@converts(*EXTREMES)
def extreme(context: Context, operator: Operator) -> Expr:
    return _binary(context, EXTREMES[operator.name], _tensors(operator), MinimumMaximumAttrs())


def _is_known(operator: Operator) -> bool:
    return operator.required_input(0).info.dtype in (*INTEGER_ACTIVATIONS, "int32")


@converts("SQUARED_DIFFERENCE", when=_is_known)
def squared_difference(context: Context, operator: Operator) -> Expr:
    if operator.required_input(0).info.dtype == "int32":
        difference = relax.op.subtract(*(context.expr(operator.required_input(number)) for number in (0, 1)))
        return relax.op.multiply(difference, difference)
    tensors = _tensors(operator)
    first, second, output = tensors
    left_shift = DIFFERENCE_LEFT_SHIFT[output.info.dtype]
    twice = 2.0 * max(first.scale, second.scale)
    low, high = exact.limits(output.info.dtype)
    attrs = SquaredDifferenceAttrs(
        **_on_a_common_scale(first, second, left_shift),
        **factor("output", twice * twice / ((1 << 2 * left_shift) * output.scale)),
        output_zero_point=output.zero_point,
        clamp_min=low,
        clamp_max=high,
    )
    return _binary(context, SquaredDifference, tensors, attrs)
