"""ADD_N and CUMSUM: sums of several tensors, and of all elements so far."""

from __future__ import annotations

from functools import reduce

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.checks import need_equal_quantisation
from uaccel.frontend.tflite.convert import Context, Expr, converts, need_dtype
from uaccel.frontend.tflite.elementwise import SUM_LEFT_SHIFT, fraction, need_one_scale
from uaccel.frontend.tflite.folding import need_numbers, need_same_dtype
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.ops import exact
from uaccel.ops.base import constant, get
from uaccel.ops.cumsum import Cumsum, CumsumAttrs
from uaccel.ops.requantize import Requantize, RequantizeAttrs
from uaccel.tvm_api import relax

HALVED = SUM_LEFT_SHIFT["int8"] - 1
"""Bits by which the reference raises what it adds up: an input's scale is half of twice itself."""


def _is_int8(operator: Operator) -> bool:
    return operator.required_input(0).info.dtype == "int8"


def _to_output(data: Tensor, output: Tensor) -> tuple[int, int]:
    """The multiplier and shift of a raised sum."""
    real = 2.0 * data.scale / ((1 << SUM_LEFT_SHIFT["int8"]) * output.scale)
    return fraction(real, "relative scale of the sum")


@converts("ADD_N", when=_is_int8)
def add_n(context: Context, operator: Operator) -> Expr:
    """The sum begins with minus the inputs' zero point, as the reference's does."""
    output = operator.outputs[0]
    tensors = [operator.required_input(number) for number in range(len(operator.inputs))]
    for tensor in (*tensors, output):
        need_dtype(tensor, ("int8",), "input")
        need_one_scale(tensor)
        need(tensor.info.shape == output.info.shape, f"{tensor.info} and {output.info} have different shapes")
    for tensor in tensors[1:]:
        need_equal_quantisation(tensors[0], tensor)
    wide = [relax.op.astype(context.expr(tensor), "int32") for tensor in tensors]
    start = constant(np.array(-tensors[0].zero_point * (len(tensors) + 1), np.int32))
    total = relax.op.add(reduce(relax.op.add, wide), start)
    raised = relax.op.left_shift(total, constant(np.array(HALVED, np.int32)))
    attrs = RequantizeAttrs(
        0, output.zero_point, *_to_output(tensors[0], output), *exact.limits("int8"), output.info.dtype
    )
    return get(Requantize)(raised, attrs=attrs)


@converts("CUMSUM", when=always)
def cumsum(context: Context, operator: Operator) -> Expr:
    data, output, options = operator.required_input(0), operator.outputs[0], operator.options
    need_same_dtype(data, output)
    need_dtype(data, ("int8", "int32", "int64", "float32"), "input")
    (number,) = need_numbers(context, operator.required_input(1), "axis", 1)
    axis = need_axis(number, len(data.info.shape))
    if data.info.dtype != "int8":
        expr, reverse = context.expr(data), bool(options.Reverse())
        turned = relax.op.flip(expr, axis) if reverse else expr
        sums = relax.op.cumsum(turned, axis, exclusive=bool(options.Exclusive()))
        return relax.op.flip(sums, axis) if reverse else sums
    need_one_scale(data)
    need_one_scale(output)
    attrs = CumsumAttrs(
        axis,
        int(options.Exclusive()),
        int(options.Reverse()),
        HALVED,
        data.zero_point,
        output.zero_point,
        *_to_output(data, output),
        *exact.limits("int8"),
    )
    return get(Cumsum)(context.expr(data), attrs=attrs)
