"""Converts TFLite's elementwise operators of two inputs: arithmetic, comparisons, choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uaccel.errors import need
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.checks import is_int8, need_dtype, need_one_scale, need_same_type, need_shape
from uaccel.frontend.tflite.converter import INTEGERS, Context, Expr, activation_range, converts, factor, reshaped
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.ops import binary, exact
from uaccel.ops.binary import KINDS, Compare, CompareAttrs
from uaccel.ops.fixedpoint import quantize_multiplier
from uaccel.ops.operator import Attributes, get
from uaccel.tvm_api import relax

# Operators of two inputs with broadcasting: ADD, SUB, MUL, MINIMUM, MAXIMUM, SQUARED_DIFFERENCE on int8 and int16.

SUMS: Mapping[str, type[binary.BinaryOperator[Any]]] = {"ADD": binary.Add, "SUB": binary.Sub}
EXTREMES: Mapping[str, type[binary.BinaryOperator[Any]]] = {"MINIMUM": binary.Minimum, "MAXIMUM": binary.Maximum}
# The reference's shifts. An int8 less its zero point is below 2**8 (raised: 2**28), an int16 at most 2**15 (2**30).
# Scaling to twice the coarser scale at least halves both, so that their sum fits int32.
SUM_LEFT_SHIFT = {"int8": 20, "int16": 15}
# Scaled operands are at most 2**14 here, their difference 2**15 and its square 2**30.
DIFFERENCE_LEFT_SHIFT = {"int8": 7, "int16": 0}

Tensors = tuple[Tensor, Tensor, Tensor]


def _tensors(operator: Operator) -> Tensors:
    """Returns both inputs and the output, which are of one type."""
    first, second, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_dtype(first, INTEGERS, "input")
    need_dtype(second, (first.info.dtype,), "input")
    need_dtype(output, (first.info.dtype,), "output")
    need_one_scale(first, second, output)
    shape = binary.broadcast_shape(first.info.shape, second.info.shape)
    need(shape == output.info.shape, f"{first.info} and {second.info} broadcast to {list(shape)}, not {output.info}")
    return first, second, output


def _binary(context: Context, op: type[binary.BinaryOperator[Any]], tensors: Tensors, attrs: Attributes) -> Expr:
    first, second, _ = tensors
    return get(op)(context.expr(first), context.expr(second), attrs=attrs)


def fraction(real: float, what: str) -> tuple[int, int]:
    """Multiplier and shift of a real factor; refuses one that is not below 1, as the reference does."""
    multiplier, shift = quantize_multiplier(float(real))
    need(0 < real < 1 and shift <= 0, f"{what} {real:.6g} is not between 0 and 1: the output's scale is too small")
    return multiplier, shift


def _on_a_common_scale(first: Tensor, second: Tensor, left_shift: int) -> dict[str, int]:
    """The attributes that bring both inputs to twice the coarser scale, ``left_shift`` bits finer."""
    twice = 2.0 * max(first.scale, second.scale)
    found = {"left_shift": left_shift}
    for number, tensor in enumerate((first, second), 1):
        multiplier, shift = fraction(tensor.scale / twice, f"relative scale of input {number}")
        found |= {f"zero_point{number}": tensor.zero_point, f"multiplier{number}": multiplier, f"shift{number}": shift}
    return found


@converts(*SUMS)
def total(context: Context, operator: Operator) -> Expr:
    tensors = _tensors(operator)
    first, second, output = tensors
    left_shift = SUM_LEFT_SHIFT[output.info.dtype]
    factor = 2.0 * max(first.scale, second.scale) / ((1 << left_shift) * output.scale)
    multiplier, shift = fraction(factor, "relative scale of the sum")
    low, high = activation_range(operator, output)
    attrs = binary.AddAttrs(
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
    points = (first.zero_point, second.zero_point, output.zero_point)
    fits = output.info.dtype != "int16" or not any(points)
    need(fits, f"int16 zero points are {[*points]}; the reference multiplies only with zero points of 0")
    scale = quantize_multiplier(first.scale * second.scale / output.scale)
    attrs = binary.MulAttrs(*points, *scale, *activation_range(operator, output))
    return _binary(context, binary.Mul, tensors, attrs)


@converts(*EXTREMES)
def extreme(context: Context, operator: Operator) -> Expr:
    return _binary(context, EXTREMES[operator.name], _tensors(operator), Attributes())


@converts("SQUARED_DIFFERENCE")
def squared_difference(context: Context, operator: Operator) -> Expr:
    tensors = _tensors(operator)
    first, second, output = tensors
    left_shift = DIFFERENCE_LEFT_SHIFT[output.info.dtype]
    twice = 2.0 * max(first.scale, second.scale)
    low, high = exact.limits(output.info.dtype)
    attrs = binary.AddAttrs(
        **_on_a_common_scale(first, second, left_shift),
        **factor("output", twice * twice / ((1 << 2 * left_shift) * output.scale)),
        output_zero_point=output.zero_point,
        clamp_min=low,
        clamp_max=high,
    )
    return _binary(context, binary.SquaredDifference, tensors, attrs)


# Comparisons and DIV on int8, and choices between tensors.

LEFT_SHIFT = 8  # Bits by which the reference raises both sides of a comparison before it scales them.
# A quotient is shifted right by 31 - zeros + room - shift bits, which must not be negative. The divisor has at most 32
# leading zeros, and a dividend of 8 bits leaves room for at least 23 bits: 31 - 32 + 23 = 22.
MOST_SHIFT = 22


def _is_scaled(operator: Operator) -> bool:
    """Whether the first input is int8 with a scale; plain int8 is compared as it is."""
    return is_int8(operator) and operator.required_input(0).quantisation is not None


@converts(*KINDS, when=_is_scaled)
def compare(context: Context, operator: Operator) -> Expr:
    first, second, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_dtype(second, ("int8",), "input")
    need_dtype(output, ("bool",), "output")
    need_one_scale(first, second)
    need_shape(output, binary.broadcast_shape(first.info.shape, second.info.shape))
    scales: list[int] = []
    for number, tensor in enumerate((first, second), 1):
        fits = tensor.scale < 1
        need(fits, f"scale of input {number} {tensor.scale:.6g} is not between 0 and 1, as the reference compares them")
        scales += [tensor.zero_point, *quantize_multiplier(tensor.scale)]
    attrs = CompareAttrs(KINDS.index(operator.name), LEFT_SHIFT, *scales)
    return get(Compare)(context.expr(first), context.expr(second), attrs=attrs)


@converts("DIV", when=_is_scaled)
def div(context: Context, operator: Operator) -> Expr:
    first, second, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    for tensor in (second, output):
        need_dtype(tensor, ("int8",), "input" if tensor is second else "output")
    need_one_scale(first, second, output)
    need_shape(output, binary.broadcast_shape(first.info.shape, second.info.shape))
    multiplier, shift = quantize_multiplier(first.scale / (second.scale * output.scale))
    need(shift <= MOST_SHIFT, f"the output's scale is finer than the quotient's by 2**{shift}, at most 2**{MOST_SHIFT}")
    points = (first.zero_point, second.zero_point, output.zero_point)
    attrs = binary.MulAttrs(*points, multiplier, shift, *activation_range(operator, output))
    return get(binary.Div)(context.expr(first), context.expr(second), attrs=attrs)


@converts("SELECT_V2", when=always)
def select_v2(context: Context, operator: Operator) -> Expr:
    """Picks stored values whatever the scales, as the reference does."""
    condition, first, second = (operator.required_input(number) for number in range(3))
    output = operator.outputs[0]
    need_dtype(condition, ("bool",), "condition")
    for tensor in (first, second):
        need_same_type(tensor, output)
    shape = binary.broadcast_shape(condition.info.shape, binary.broadcast_shape(first.info.shape, second.info.shape))
    need_shape(output, shape)
    return relax.op.where(*(context.expr(tensor) for tensor in (condition, first, second)))


@converts("SELECT", when=always)
def select(context: Context, operator: Operator) -> Expr:
    """Picks elements where the condition has the operands' shape, else one operand, or rows along the first axis."""
    condition, first, second = (operator.required_input(number) for number in range(3))
    output, shape = operator.outputs[0], operator.required_input(1).info.shape
    need_dtype(condition, ("bool",), "condition")
    for tensor in (first, second):
        need_same_type(tensor, output)
        need(tensor.info.shape == shape, f"{first.info} and {second.info} have different shapes")
    need_shape(output, shape)
    given = condition.info.shape
    fits = given == shape or condition.info.elements == 1 or (len(given) == 1 and given[:1] == shape[:1])
    need(fits, f"condition {condition.info} is neither one for all, nor one for each row or element of {first.info}")
    rows = () if condition.info.elements == 1 else (*given, *(1,) * (len(shape) - len(given)))
    picks = reshaped(context.expr(condition), given, rows)
    return relax.op.where(picks, context.expr(first), context.expr(second))
