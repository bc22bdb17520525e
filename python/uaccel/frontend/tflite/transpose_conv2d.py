"""TRANSPOSE_CONV on int8 and int16 activations."""

from __future__ import annotations

import numpy as np

from uaccel.errors import need
from uaccel.frontend.tflite.convert import (
    INTEGER_ACTIVATIONS,
    Context,
    Expr,
    activation_range,
    channel_multipliers,
    converts,
    need_constant,
    need_dtype,
)
from uaccel.frontend.tflite.reader import PADDINGS, Operator, Tensor
from uaccel.model import Array
from uaccel.ops.base import constant, get, same_padding
from uaccel.ops.transpose_conv2d import TransposeConv2d, TransposeConv2dAttrs


def _is_quantised(operator: Operator) -> bool:
    """The operator's first input is a shape; the activation comes third."""
    data = operator.optional_input(2)
    return data is not None and data.info.dtype in INTEGER_ACTIVATIONS


def _check(data: Tensor, weights: Tensor, output: Tensor) -> None:
    need_dtype(output, (data.info.dtype,), "output")
    need_dtype(weights, ("int8",), "weights")
    need(len(data.info.shape) == 4, f"input has rank {len(data.info.shape)}, wanted 4 (NHWC)")
    need(len(weights.info.shape) == 4, f"weights have rank {len(weights.info.shape)}, wanted 4")
    need(not any(weights.required_quantisation.zero_points), "asymmetric int8 weights: their zero point must be 0")


def _attrs(operator: Operator, data: Tensor, output: Tensor, kernel: tuple[int, int]) -> TransposeConv2dAttrs:
    options = operator.options
    strides = (options.StrideH(), options.StrideW())
    need(min(strides) > 0, f"strides {strides} must be positive")
    size = output.info.shape[1:3]
    padding = (0, 0)
    if PADDINGS[options.Padding()] == "SAME":
        top, left = (same_padding(size[axis], kernel[axis], strides[axis], 1)[0] for axis in (0, 1))
        padding = (top, left)
    low, high = activation_range(operator, output)
    return TransposeConv2dAttrs(size, strides, padding, data.zero_point, output.zero_point, low, high)


def _bias(bias: Tensor | None, channels: int, wide: bool) -> Array:
    """16-bit activations add biases of 16 or 64 bits to sums of 64."""
    dtype = np.int64 if wide else np.int32
    if bias is None:
        return np.zeros(channels, dtype)
    need_dtype(bias, ("int16", "int64") if wide else ("int32",), "bias")
    values = need_constant(bias, "bias").reshape(-1)
    need(len(values) == channels, f"{len(values)} bias values for {channels} output channels")
    return values.astype(dtype)


@converts("TRANSPOSE_CONV", when=_is_quantised)
def transpose_conv(context: Context, operator: Operator) -> Expr:
    weights, data = operator.required_input(1), operator.required_input(2)
    output = operator.outputs[0]
    _check(data, weights, output)
    values = need_constant(weights, "weights")
    channels, height, width, _ = values.shape
    multiplier, shift = channel_multipliers(data, weights, output, channels)
    bias = _bias(operator.optional_input(3), channels, data.info.dtype == "int16")
    attrs = _attrs(operator, data, output, (height, width))
    constants = (constant(array) for array in (values, bias, multiplier, shift))
    return get(TransposeConv2d)(context.expr(data), *constants, attrs=attrs)
