"""AVERAGE_POOL_2D and MAX_POOL_2D on int8 and int16 activations."""

from __future__ import annotations

from uaccel.errors import need
from uaccel.frontend.tflite.checks import need_equal_quantisation, need_sum_in_32_bits
from uaccel.frontend.tflite.convert import Context, Expr, activation_range, converts, need_dtype, window_padding
from uaccel.frontend.tflite.reader import Operator
from uaccel.ops.base import get
from uaccel.ops.pool import AveragePool2d, MaxPool2d, PoolAttrs

SCALE_TOLERANCE = 1e-6  # the reference's: below it a difference of scales is ignored, not rescaled


def pool_attrs(operator: Operator) -> PoolAttrs:
    data, output, options = operator.required_input(0), operator.outputs[0], operator.options
    need_dtype(output, (data.info.dtype,), "output")
    need(len(data.info.shape) == 4, f"input has rank {len(data.info.shape)}, wanted 4 (NHWC)")
    window = (options.FilterHeight(), options.FilterWidth())
    strides = (options.StrideH(), options.StrideW())
    need(min(window + strides) > 0, f"window {window} and strides {strides} must be positive")
    need_equal_quantisation(data, output, SCALE_TOLERANCE)
    low, high = activation_range(operator, output)
    return PoolAttrs(window, strides, window_padding(operator, data, window, strides, (1, 1)), low, high)


@converts("AVERAGE_POOL_2D")
def average_pool_2d(context: Context, operator: Operator) -> Expr:
    attrs, data = pool_attrs(operator), operator.required_input(0)
    need_sum_in_32_bits(data, attrs.window[0] * attrs.window[1])
    return get(AveragePool2d)(context.expr(data), attrs=attrs)


@converts("MAX_POOL_2D")
def max_pool_2d(context: Context, operator: Operator) -> Expr:
    return get(MaxPool2d)(context.expr(operator.required_input(0)), attrs=pool_attrs(operator))
