"""SOFTMAX on int8 and int16 activations, LOG_SOFTMAX on int8."""

from __future__ import annotations

import math

from uaccel.errors import need
from uaccel.frontend.tflite.checks import need_quantisation
from uaccel.frontend.tflite.convert import Context, Expr, converts, need_dtype
from uaccel.frontend.tflite.reader import Operator
from uaccel.ops.base import constant, get
from uaccel.ops.fixedpoint import quantize_multiplier
from uaccel.ops.log_softmax import LogSoftmax, LogSoftmaxAttrs
from uaccel.ops.softmax import Softmax, SoftmaxAttrs
from uaccel.ops.softmax16 import Softmax16, Softmax16Attrs
from uaccel.ops.softmax_tables import DIFF_BITS, exponential_lookup, exponentials, reciprocal_lookup

LONGEST_ROW = 4095  # 12 integer bits of the sum of exponentials
LARGEST_MULTIPLIER = 2.0**31 - 1  # beyond it only the largest element of a row counts
LOOKUP_RANGE = 10.0 / 65535.0  # the 16-bit table's [-10, 0] covers all differences of two 16-bit numbers


def _beta(operator: Operator) -> float:
    return float(operator.options.Beta())


def scaled_difference(product: float, what: str) -> tuple[int, int]:
    """Multiplier and shift that bring differences to 26 fraction bits, where a step of them is ``product``."""
    real = min(product * (1 << DIFF_BITS), LARGEST_MULTIPLIER)
    need(real > 1.0, f"{what} is {product:.3g}, too small for the reference's fixed-point format")
    mantissa, shift = math.frexp(real)
    multiplier, carry = quantize_multiplier(mantissa)
    return multiplier, shift + carry


@converts("SOFTMAX")
def softmax(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    need(len(data.info.shape) > 0, "the input is a scalar")
    if data.info.dtype == "int16":
        return _softmax16(context, operator)
    need_dtype(output, ("int8", "int16"), "output")
    if output.info.dtype == "int8":
        need_quantisation(output, 1 / 256, -128)
    else:
        need_quantisation(output, 1 / 65536, -32768, tolerance=0.001)
    multiplier, shift = scaled_difference(_beta(operator) * data.scale, "beta * input scale")
    table = constant(exponentials(multiplier, shift))
    return get(Softmax)(context.expr(data), table, attrs=SoftmaxAttrs(multiplier, shift, output.info.dtype))


def _softmax16(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    need_dtype(output, ("int16",), "output")
    need_quantisation(output, 1 / 32768, 0, tolerance=0.001)
    depth, product = data.info.shape[-1], data.scale * _beta(operator)
    need(depth < 1 << 16, f"rows of {depth} elements: their exponentials may overflow the reference's 32-bit sum")
    multiplier, shift = quantize_multiplier(product / LOOKUP_RANGE)
    need(shift <= 15, f"beta * input scale is {product:.3g}, too large for the reference's 32-bit differences")
    tables = (constant(exponential_lookup()), constant(reciprocal_lookup()))
    return get(Softmax16)(context.expr(data), *tables, attrs=Softmax16Attrs(multiplier, shift))


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
