"""LOG_SOFTMAX on int8 activations."""

from __future__ import annotations

from uaccel.errors import need
from uaccel.frontend.tflite.checks import need_quantisation
from uaccel.frontend.tflite.convert import Context, Expr, converts, need_dtype
from uaccel.frontend.tflite.reader import Operator
from uaccel.frontend.tflite.softmax import scaled_difference
from uaccel.ops.base import constant, get
from uaccel.ops.log_softmax import LogSoftmax, LogSoftmaxAttrs
from uaccel.ops.softmax_tables import exponentials

LONGEST_ROW = 4095  # 12 integer bits of the sum of exponentials


@converts("LOG_SOFTMAX")
def log_softmax(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    need_dtype(data, ("int8",), "input")
    need_dtype(output, ("int8",), "output")
    need_quantisation(output, 1 / 16, 127)
    need(len(data.info.shape) > 0, "the input is a scalar")
    depth = data.info.shape[-1]
    need(depth <= LONGEST_ROW, f"rows of {depth} elements: at most {LONGEST_ROW} exponentials can be summed")
    multiplier, shift = scaled_difference(data.scale, "input scale")
    table = constant(exponentials(multiplier, shift))
    return get(LogSoftmax)(context.expr(data), table, attrs=LogSoftmaxAttrs(multiplier, shift))
