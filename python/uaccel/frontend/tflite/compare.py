"""Comparisons and DIV on int8, and choices between tensors."""

from __future__ import annotations

from uaccel.errors import need
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.convert import Context, Expr, activation_range, converts, need_dtype
from uaccel.frontend.tflite.elementwise import need_one_scale
from uaccel.frontend.tflite.folding import need_same_dtype, need_shape
from uaccel.frontend.tflite.reader import Operator
from uaccel.ops.base import get
from uaccel.ops.broadcast import broadcast_shape
from uaccel.ops.compare import KINDS, Compare, CompareAttrs
from uaccel.ops.div import Div, DivAttrs
from uaccel.ops.fixedpoint import quantize_multiplier
from uaccel.tvm_api import relax

LEFT_SHIFT = 8
MOST_SHIFT = 22
"""Of a quotient: the reference shifts it to the right by this less than its own bits."""


def _is_int8(operator: Operator) -> bool:
    """With a scale: stored integers are compared as they are, by TVM's converter."""
    first = operator.required_input(0)
    return first.info.dtype == "int8" and first.quantisation is not None


@converts(*KINDS, when=_is_int8)
def compare(context: Context, operator: Operator) -> Expr:
    first, second, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_dtype(second, ("int8",), "input")
    need_dtype(output, ("bool",), "output")
    need_one_scale(first)
    need_one_scale(second)
    need_shape(output, broadcast_shape(first.info.shape, second.info.shape))
    for number, tensor in enumerate((first, second), 1):
        below = tensor.scale < 1
        need(
            below, f"scale of input {number} {tensor.scale:.6g} is not between 0 and 1, as the reference compares them"
        )
    attrs = CompareAttrs(
        KINDS.index(operator.name),
        LEFT_SHIFT,
        first.zero_point,
        *quantize_multiplier(first.scale),
        second.zero_point,
        *quantize_multiplier(second.scale),
    )
    return get(Compare)(context.expr(first), context.expr(second), attrs=attrs)


@converts("DIV", when=_is_int8)
def div(context: Context, operator: Operator) -> Expr:
    first, second, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    for tensor in (second, output):
        need_dtype(tensor, ("int8",), "input" if tensor is second else "output")
    for tensor in (first, second, output):
        need_one_scale(tensor)
    need_shape(output, broadcast_shape(first.info.shape, second.info.shape))
    multiplier, shift = quantize_multiplier(first.scale / (second.scale * output.scale))
    need(shift <= MOST_SHIFT, f"the output's scale is finer than the quotient's by 2**{shift}, at most 2**{MOST_SHIFT}")
    points = (first.zero_point, second.zero_point, output.zero_point)
    attrs = DivAttrs(*points, multiplier, shift, *activation_range(operator, output))
    return get(Div)(context.expr(first), context.expr(second), attrs=attrs)


@converts("SELECT_V2", when=always)
def select_v2(context: Context, operator: Operator) -> Expr:
    """The stored values, whatever the scales: as the reference does."""
    condition, first, second = (operator.required_input(number) for number in range(3))
    output = operator.outputs[0]
    need_dtype(condition, ("bool",), "condition")
    for tensor in (first, second):
        need_same_dtype(tensor, output)
    shape = broadcast_shape(condition.info.shape, broadcast_shape(first.info.shape, second.info.shape))
    need_shape(output, shape)
    return relax.op.where(*(context.expr(tensor) for tensor in (condition, first, second)))


def _is_no_bool(operator: Operator) -> bool:
    return operator.required_input(0).info.dtype != "bool"


@converts("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT", when=_is_no_bool)
def logic_of_numbers(_context: Context, operator: Operator) -> Expr:
    """The reference takes any element for a bool and reads its first bytes."""
    for tensor in (operator.required_input(0), operator.outputs[0]):
        need_dtype(tensor, ("bool",), "operand")
