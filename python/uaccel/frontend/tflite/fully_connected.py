"""FULLY_CONNECTED on int8 and int16 activations, any input rank."""

from __future__ import annotations

from uaccel.errors import need
from uaccel.frontend.tflite.convert import (
    Context,
    Expr,
    activation_range,
    bias_values,
    channel_multipliers,
    converts,
    need_constant,
    need_dtype,
)
from uaccel.frontend.tflite.reader import Operator
from uaccel.frontend.tflite.shapes import reshaped
from uaccel.ops.base import constant, get
from uaccel.ops.fully_connected import FullyConnected, FullyConnectedAttrs


@converts("FULLY_CONNECTED")
def fully_connected(context: Context, operator: Operator) -> Expr:
    data, weights, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_dtype(output, (data.info.dtype,), "output")
    need_dtype(weights, ("int8",), "weights")
    need(len(weights.info.shape) == 2, f"weights have rank {len(weights.info.shape)}, wanted 2")
    need(
        not any(weights.required_quantisation.zero_points),
        "asymmetric int8 weights: their zero point must be 0",
    )
    units, depth = weights.info.shape
    need(data.info.elements % depth == 0, f"input {data.info} does not fit weights {weights.info}")
    values = need_constant(weights, "weights")
    multiplier, shift = channel_multipliers(data, weights, output, units)
    bias = bias_values(operator.optional_input(2), units, data.info.dtype == "int16")
    low, high = activation_range(operator, output)
    attrs = FullyConnectedAttrs(data.zero_point, output.zero_point, low, high)
    rows = data.info.elements // depth
    flat = reshaped(context.expr(data), data.info.shape, (rows, depth))
    constants = (constant(array) for array in (values, bias, multiplier, shift))
    product = get(FullyConnected)(flat, *constants, attrs=attrs)
    return reshaped(product, (rows, units), output.info.shape)
