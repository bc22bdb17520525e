"""CONV_2D and DEPTHWISE_CONV_2D on int8 and int16 activations."""

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
    window_padding,
)
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.ops.base import constant, get
from uaccel.ops.conv2d import Conv2d, Conv2dAttrs
from uaccel.ops.depthwise_conv2d import DepthwiseConv2d


def _window_attrs(
    operator: Operator, data: Tensor, output: Tensor, kernel: tuple[int, int], groups: int
) -> Conv2dAttrs:
    options = operator.options
    strides = (options.StrideH(), options.StrideW())
    dilation = (options.DilationHFactor(), options.DilationWFactor())
    need(min(strides) > 0 and min(dilation) > 0, f"strides {strides} and dilation {dilation} must be positive")
    low, high = activation_range(operator, output)
    return Conv2dAttrs(
        strides=strides,
        padding=window_padding(operator, data, kernel, strides, dilation),
        dilation=dilation,
        groups=groups,
        input_zero_point=data.zero_point,
        output_zero_point=output.zero_point,
        clamp_min=low,
        clamp_max=high,
    )


def _check_types(data: Tensor, weights: Tensor, output: Tensor) -> None:
    need_dtype(output, (data.info.dtype,), "output")
    need_dtype(weights, ("int8",), "weights")
    need(len(data.info.shape) == 4, f"input has rank {len(data.info.shape)}, wanted 4 (NHWC)")
    need(len(weights.info.shape) == 4, f"weights have rank {len(weights.info.shape)}, wanted 4")


@converts("CONV_2D")
def conv_2d(context: Context, operator: Operator) -> Expr:
    data, weights = operator.required_input(0), operator.required_input(1)
    output = operator.outputs[0]
    _check_types(data, weights, output)
    values = need_constant(weights, "weights")
    channels, height, width, depth = values.shape
    need(data.info.shape[3] % depth == 0, f"input {data.info} does not fit weights {weights.info}")
    multiplier, shift = channel_multipliers(data, weights, output, channels)
    bias = bias_values(operator.optional_input(2), channels, data.info.dtype == "int16")
    attrs = _window_attrs(operator, data, output, (height, width), data.info.shape[3] // depth)
    constants = (constant(array) for array in (values, bias, multiplier, shift))
    return get(Conv2d)(context.expr(data), *constants, attrs=attrs)


@converts("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(context: Context, operator: Operator) -> Expr:
    data, weights = operator.required_input(0), operator.required_input(1)
    output = operator.outputs[0]
    _check_types(data, weights, output)
    values = need_constant(weights, "weights")
    _, height, width, channels = values.shape
    depth = data.info.shape[3]
    need(channels % depth == 0, f"weights {weights.info} are no multiple of the input's {depth} channels")
    multiplier, shift = channel_multipliers(data, weights, output, channels)
    wide = data.info.dtype == "int16"
    if wide and (given := operator.optional_input(2)) is not None:
        need_dtype(given, ("int64",), "bias")
    bias = bias_values(operator.optional_input(2), channels, wide)
    attrs = _window_attrs(operator, data, output, (height, width), depth)
    constants = (constant(array) for array in (values[0], bias, multiplier, shift))
    return get(DepthwiseConv2d)(context.expr(data), *constants, attrs=attrs)
