"""BATCH_MATMUL on int8 and int16 activations."""

from __future__ import annotations

from uaccel.errors import need
from uaccel.frontend.tflite.convert import Context, Expr, converts, need_dtype, need_possible_shift
from uaccel.frontend.tflite.reader import Operator
from uaccel.ops.base import get
from uaccel.ops.batch_matmul import BatchMatmul, BatchMatmulAttrs
from uaccel.ops.fixedpoint import quantize_multiplier


@converts("BATCH_MATMUL")
def batch_matmul(context: Context, operator: Operator) -> Expr:
    lhs, rhs, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_dtype(rhs, (lhs.info.dtype,), "right side")
    need_dtype(output, (lhs.info.dtype,), "output")
    points = (lhs.zero_point, rhs.zero_point, output.zero_point)
    need(lhs.info.dtype == "int8" or not any(points), f"16-bit zero points {points} must be 0")
    multiplier, shift = quantize_multiplier(lhs.scale * rhs.scale / output.scale)
    need_possible_shift(lhs, shift)
    adjoint = (bool(operator.options.AdjX()), bool(operator.options.AdjY()))
    attrs = BatchMatmulAttrs(*adjoint, *points, multiplier, shift)
    return get(BatchMatmul)(context.expr(lhs), context.expr(rhs), attrs=attrs)
