"""Layers with weights on int8 and int16 activations: convolutions of all kinds, and FULLY_CONNECTED."""

from __future__ import annotations

from typing import Any

from uaccel.errors import need
from uaccel.frontend.tflite.convert import (
    INTEGER_ACTIVATIONS,
    Context,
    Expr,
    activation_range,
    bias_values,
    channel_multipliers,
    converts,
    need_constant,
    need_dtype,
    window_padding,
)
from uaccel.frontend.tflite.reader import PADDINGS, Operator, Tensor
from uaccel.frontend.tflite.shapes import reshaped
from uaccel.model import Array
from uaccel.ops.base import IntegerOperator, constant, get, same_padding
from uaccel.ops.conv2d import Conv2d, Conv2dAttrs
from uaccel.ops.depthwise_conv2d import DepthwiseConv2d
from uaccel.ops.fully_connected import FullyConnected, FullyConnectedAttrs
from uaccel.ops.transpose_conv2d import TransposeConv2d, TransposeConv2dAttrs

Kind = type[IntegerOperator[Any]]
Pair = tuple[int, int]


def _checked(data: Tensor, weights: Tensor, output: Tensor) -> Array:
    """The weights of a convolution."""
    need_dtype(output, (data.info.dtype,), "output")
    need_dtype(weights, ("int8",), "weights")
    need(len(data.info.shape) == 4, f"input has rank {len(data.info.shape)}, wanted 4 (NHWC)")
    need(len(weights.info.shape) == 4, f"weights have rank {len(weights.info.shape)}, wanted 4")
    return need_constant(weights, "weights")


def _need_symmetric(weights: Tensor) -> None:
    plain = not any(weights.required_quantisation.zero_points)
    need(plain, "asymmetric int8 weights: their zero point must be 0")


def _call(
    kind: Kind, source: Expr, tensors: tuple[Tensor, Tensor, Tensor], values: Array, bias: Array, attrs: Any
) -> Expr:
    """``tensors``: input, weights and output; ``values`` and ``bias`` as the operator takes them."""
    scales = channel_multipliers(*tensors, len(bias))
    return get(kind)(source, *map(constant, (values, bias, *scales)), attrs=attrs)


def _window_attrs(operator: Operator, data: Tensor, kernel: Pair, groups: int) -> Conv2dAttrs:
    options, weights, output = operator.options, operator.required_input(1), operator.outputs[0]
    strides = (options.StrideH(), options.StrideW())
    dilation = (options.DilationHFactor(), options.DilationWFactor())
    need(min(strides) > 0 and min(dilation) > 0, f"strides {strides} and dilation {dilation} must be positive")
    padding = window_padding(operator, data, kernel, strides, dilation)
    points, bounds = (data.zero_point, output.zero_point), activation_range(operator, output)
    return Conv2dAttrs(strides, padding, dilation, groups, *points, *bounds, weight_bits=weights.bits)


@converts("CONV_2D")
def conv_2d(context: Context, operator: Operator) -> Expr:
    data, weights, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    values = _checked(data, weights, output)
    channels, height, width, depth = values.shape
    need(data.info.shape[3] % depth == 0, f"input {data.info} does not fit weights {weights.info}")
    bias = bias_values(operator.optional_input(2), channels, data)
    attrs = _window_attrs(operator, data, (height, width), data.info.shape[3] // depth)
    return _call(Conv2d, context.expr(data), (data, weights, output), values, bias, attrs)


@converts("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(context: Context, operator: Operator) -> Expr:
    data, weights, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    values = _checked(data, weights, output)
    _, height, width, channels = values.shape
    depth = data.info.shape[3]
    need(channels % depth == 0, f"weights {weights.info} are no multiple of the input's {depth} channels")
    bias = bias_values(operator.optional_input(2), channels, data, ("int64",))
    attrs = _window_attrs(operator, data, (height, width), depth)
    return _call(DepthwiseConv2d, context.expr(data), (data, weights, output), values[0], bias, attrs)


def _third_is_quantised(operator: Operator) -> bool:
    """The operator's first input is a shape; the activation comes third."""
    data = operator.optional_input(2)
    return data is not None and data.info.dtype in INTEGER_ACTIVATIONS


@converts("TRANSPOSE_CONV", when=_third_is_quantised)
def transpose_conv(context: Context, operator: Operator) -> Expr:
    weights, data, output = operator.required_input(1), operator.required_input(2), operator.outputs[0]
    values = _checked(data, weights, output)
    _need_symmetric(weights)
    channels, height, width, _ = values.shape
    bias = bias_values(operator.optional_input(3), channels, data, ("int16", "int64"))
    bias = bias.astype("int64" if data.info.dtype == "int16" else "int32")
    attrs = _transposed_attrs(operator, data, output, (height, width))
    return _call(TransposeConv2d, context.expr(data), (data, weights, output), values, bias, attrs)


def _transposed_attrs(operator: Operator, data: Tensor, output: Tensor, kernel: Pair) -> TransposeConv2dAttrs:
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


@converts("FULLY_CONNECTED")
def fully_connected(context: Context, operator: Operator) -> Expr:
    """Any input rank."""
    data, weights, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_dtype(output, (data.info.dtype,), "output")
    need_dtype(weights, ("int8",), "weights")
    need(len(weights.info.shape) == 2, f"weights have rank {len(weights.info.shape)}, wanted 2")
    _need_symmetric(weights)
    units, depth = weights.info.shape
    need(data.info.elements % depth == 0, f"input {data.info} does not fit weights {weights.info}")
    values = need_constant(weights, "weights")
    bias = bias_values(operator.optional_input(2), units, data)
    bounds = activation_range(operator, output)
    attrs = FullyConnectedAttrs(data.zero_point, output.zero_point, *bounds, weight_bits=weights.bits)
    rows = data.info.elements // depth
    flat = reshaped(context.expr(data), data.info.shape, (rows, depth))
    product = _call(FullyConnected, flat, (data, weights, output), values, bias, attrs)
    return reshaped(product, (rows, units), output.info.shape)
