"""Converts TFLite's convolutions, fully connected layers, matrix products and pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uaccel.errors import need
from uaccel.frontend.tflite import converter
from uaccel.frontend.tflite.checks import need_dtype, need_equal_quantisation, need_possible_shift, need_sum_in_32_bits
from uaccel.frontend.tflite.converter import INTEGERS, Context, Expr, converts
from uaccel.frontend.tflite.reader import PADDINGS, Operator, Tensor
from uaccel.model import Array, Shape
from uaccel.ops import matmul
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d, TransposeConv2d, TransposeConv2dAttrs
from uaccel.ops.fixedpoint import quantize_multiplier
from uaccel.ops.operator import IntegerOperator, constant, get
from uaccel.ops.pool import AveragePool2d, MaxPool2d, PoolAttrs
from uaccel.ops.windows import SlidingWindow
from uaccel.tvm_api import is_constant, relax

# Layers with weights on int8 and int16 activations: convolutions of all kinds, and FULLY_CONNECTED.

Kind = type[IntegerOperator[Any]]
Pair = tuple[int, int]


# Operators that compute the same with weights that are no constant.
GIVEN: Mapping[Kind, Kind] = {
    Conv2d: matmul.GivenConv2d,
    DepthwiseConv2d: matmul.GivenDepthwiseConv2d,
    TransposeConv2d: matmul.GivenTransposeConv2d,
}


def _need_type(weights: Tensor) -> None:
    """Refuses weights that are not int8; those that were uint8 may be int16 (see ``signed`` in ``importer``)."""
    need_dtype(weights, ("int16",) if weights.bits == converter.WIDE_WEIGHTS else ("int8",), "weights")


def _check(data: Tensor, weights: Tensor, output: Tensor) -> None:
    """Checks types and ranks of a convolution; a zero point of its weights is ignored, as in the reference."""
    need_dtype(output, (data.info.dtype,), "output")
    _need_type(weights)
    need(len(data.info.shape) == 4, f"input has rank {len(data.info.shape)}, wanted 4 (NHWC)")
    need(len(weights.info.shape) == 4, f"weights have rank {len(weights.info.shape)}, wanted 4")
    need_some(data, weights)


def need_some(data: Tensor, weights: Tensor) -> None:
    """Refuses tensors without any channel: no other extent could fit theirs."""
    some = 0 not in (*data.info.shape[-1:], *weights.info.shape)
    need(some, f"input {data.info} does not fit weights {weights.info}")


def _call(
    kind: Kind, source: Expr, tensors: tuple[Tensor, Tensor, Tensor], weights: Expr, bias: Array, attrs: Any
) -> Expr:
    """Calls the operator, or its twin in ``GIVEN`` for run-time or 9-bit weights.

    ``tensors`` are input, weights and output as the file has them.
    """
    scales = converter.channel_multipliers(*tensors, len(bias), single=tensors[0].index < 0)
    fitting = kind if is_constant(weights) and tensors[1].bits <= 8 else GIVEN.get(kind, kind)
    return get(fitting)(source, weights, *map(constant, (bias, *scales)), attrs=attrs)


def _window_attrs(operator: Operator, data: Tensor, kernel: Pair, groups: int) -> Conv2dAttrs:
    weights, output = operator.required_input(1), operator.outputs[0]
    window = converter.sliding_window(operator, data.info.shape[1:3], kernel)
    points, bounds = (data.zero_point, output.zero_point), converter.activation_range(operator, output)
    lies = (window.strides, window.padding, window.dilation)
    return Conv2dAttrs(*lies, groups, *points, *bounds, weight_bits=weights.bits)


@converts("CONV_2D")
def conv_2d(context: Context, operator: Operator) -> Expr:
    data, weights, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    _check(data, weights, output)
    channels, height, width, depth = weights.info.shape
    need(data.info.shape[3] % depth == 0, f"input {data.info} does not fit weights {weights.info}")
    bias = converter.bias_values(operator.optional_input(2), channels, data)
    attrs = _window_attrs(operator, data, (height, width), data.info.shape[3] // depth)
    return _call(Conv2d, context.expr(data), (data, weights, output), context.expr(weights), bias, attrs)


@converts("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(context: Context, operator: Operator) -> Expr:
    data, weights, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    _check(data, weights, output)
    _, height, width, channels = weights.info.shape
    depth = need_multiplier(operator, data, weights)
    bias = converter.bias_values(operator.optional_input(2), channels, data, ("int64",))
    attrs = _window_attrs(operator, data, (height, width), depth)
    taps = reshaped_weights(context, weights, (height, width, channels))
    return _call(DepthwiseConv2d, context.expr(data), (data, weights, output), taps, bias, attrs)


def reshaped_weights(context: Context, weights: Tensor, shape: Shape) -> Expr:
    return converter.apply(
        context, [weights], lambda e: relax.op.reshape(e, shape), lambda values: values.reshape(shape)
    )


def need_multiplier(operator: Operator, data: Tensor, weights: Tensor) -> int:
    """The channels of a depthwise layer's input. Refuses a depth multiplier that contradicts the shapes: the reference
    would read weights of other channels."""
    stated, channels, depth = operator.option("DepthMultiplier"), weights.info.shape[3], data.info.shape[3]
    need(channels % depth == 0, f"weights {weights.info} are no multiple of the input's {depth} channels")
    multiplier = channels // depth
    need(stated == multiplier, f"depth_multiplier is {stated}, and the weights have {multiplier} channels for each one")
    return depth


def _is_integer(operator: Operator) -> bool:
    """Whether the activation is: it comes third, after a shape and the weights."""
    return operator.required_input(2).info.dtype in INTEGERS


@converts("TRANSPOSE_CONV", when=_is_integer)
def transpose_conv(context: Context, operator: Operator) -> Expr:
    weights, data, output = operator.required_input(1), operator.required_input(2), operator.outputs[0]
    _check(data, weights, output)
    channels, height, width, _ = weights.info.shape
    bias = converter.bias_values(operator.optional_input(3), channels, data, ("int16", "int64"))
    bias = bias.astype("int64" if data.info.dtype == "int16" else "int32")
    points, bounds = (data.zero_point, output.zero_point), converter.activation_range(operator, output)
    attrs = TransposeConv2dAttrs(*transposed_window(operator, output, (height, width)), *points, *bounds)
    return _call(TransposeConv2d, context.expr(data), (data, weights, output), context.expr(weights), bias, attrs)


def transposed_window(operator: Operator, output: Tensor, kernel: Shape) -> tuple[Shape, Shape, Shape]:
    """Output size, strides and padding (top, left) of a transposed convolution."""
    options = operator.options
    strides = (options.StrideH(), options.StrideW())
    need(min(strides) > 0, f"strides {strides} must be positive")
    need(len(output.info.shape) == 4, f"output has rank {len(output.info.shape)}, wanted 4 (NHWC)")
    size = output.info.shape[1:3]
    padding: Shape = (0, 0)
    if PADDINGS[options.Padding()] == "SAME":
        padding = SlidingWindow(kernel, strides).same(size)[:2]
    return size, strides, padding


@converts("FULLY_CONNECTED")
def fully_connected(context: Context, operator: Operator) -> Expr:
    """Converts an input of any rank: its rows are as long as the weights'."""
    data, weights, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_dtype(output, (data.info.dtype,), "output")
    _need_type(weights)
    rows, units, depth = product_of(data, weights, output)
    points = set(weights.required_quantisation.zero_points)
    need(len(points) == 1, f"the weights have {len(points)} zero points; one for all, or none, can be compiled")
    bias = converter.bias_values(operator.optional_input(2), units, data)
    common = (data.zero_point, output.zero_point, *converter.activation_range(operator, output))
    flat, matrix = converter.reshaped(context.expr(data), data.info.shape, (rows, depth)), context.expr(weights)
    if is_constant(matrix) and points == {0} and weights.bits <= 8:
        plain = matmul.FullyConnectedAttrs(*common, weight_bits=weights.bits)
        product = _call(matmul.FullyConnected, flat, (data, weights, output), matrix, bias, plain)
    else:
        attrs = matmul.GivenFullyConnectedAttrs(*common, weight_zero_point=weights.zero_point)
        product = _call(matmul.GivenFullyConnected, flat, (data, weights, output), matrix, bias, attrs)
    return converter.reshaped(product, (rows, units), output.info.shape)


def product_of(data: Tensor, weights: Tensor, output: Tensor) -> tuple[int, int, int]:
    """The rows of an input, the units of the output, and the elements of a row, which lies as the weights' rows do.

    Refuses an output that is not rows of so many units; how the rows lie is the file's matter.
    """
    need(len(weights.info.shape) == 2, f"weights have rank {len(weights.info.shape)}, wanted 2")
    need_some(data, weights)
    units, depth = weights.info.shape
    need(data.info.elements % depth == 0, f"input {data.info} does not fit weights {weights.info}")
    rows = data.info.elements // depth
    fits = output.info.elements == rows * units and output.info.shape[-1:] == (units,)
    need(fits, f"output {output.info} is not {rows} rows of {units} units")
    return rows, units, depth


# AVERAGE_POOL_2D and MAX_POOL_2D on int8 and int16 activations.

SCALE_TOLERANCE = 1e-6  # The reference ignores a difference of scales below it.


def pool_attrs(operator: Operator) -> PoolAttrs:
    data, output = operator.required_input(0), operator.outputs[0]
    need_dtype(output, (data.info.dtype,), "output")
    need(len(data.info.shape) == 4, f"input has rank {len(data.info.shape)}, wanted 4 (NHWC)")
    window = converter.sliding_window(operator, data.info.shape[1:3])
    need_equal_quantisation(data, output, SCALE_TOLERANCE)
    return PoolAttrs(window.kernel, window.strides, window.padding, *converter.activation_range(operator, output))


@converts("AVERAGE_POOL_2D")
def average_pool_2d(context: Context, operator: Operator) -> Expr:
    attrs, data = pool_attrs(operator), operator.required_input(0)
    need_sum_in_32_bits(data, attrs.window[0] * attrs.window[1])
    return get(AveragePool2d)(context.expr(data), attrs=attrs)


@converts("MAX_POOL_2D")
def max_pool_2d(context: Context, operator: Operator) -> Expr:
    return get(MaxPool2d)(context.expr(operator.required_input(0)), attrs=pool_attrs(operator))


# BATCH_MATMUL on int8 and int16 activations.


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
    attrs = matmul.BatchMatmulAttrs(*adjoint, *points, multiplier, shift)
    return get(matmul.BatchMatmul)(context.expr(lhs), context.expr(rhs), attrs=attrs)
