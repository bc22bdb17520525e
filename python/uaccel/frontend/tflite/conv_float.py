"""Converts TFLite's convolutions, matrix products and pools of floats, and in float what has no integer operator here.

The calls are those that ``partition.passes.float_fusion`` finds: a product, its bias, its activation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.converters import otherwise
from uaccel.frontend.tflite import converter
from uaccel.frontend.tflite.checks import need_dtype, need_same_type, need_shape
from uaccel.frontend.tflite.conv import need_multiplier, need_some, product_of, transposed_window
from uaccel.frontend.tflite.conv import reshaped_weights as reshaped
from uaccel.frontend.tflite.converter import Context, Expr, converts
from uaccel.frontend.tflite.floats import FLOATS, is_stepped, need_reals, real, stored
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.model import Array, Shape
from uaccel.ops.binary import broadcast_shape
from uaccel.ops.conv_float import TransposeConv2dFloat, TransposeConv2dFloatAttrs
from uaccel.ops.operator import constant, get
from uaccel.tvm_api import is_constant, relax

WHOLE = "have the TFLite converter quantise activations as well (a representative_dataset)"

# Convolutions: of images (NHWC) and of volumes (NDHWC).


def _need_rank(tensor: Tensor, rank: int, what: str) -> None:
    need(len(tensor.info.shape) == rank, f"{what} have rank {len(tensor.info.shape)}, wanted {rank}")


def _weights(context: Context, tensor: Tensor, order: Sequence[int]) -> Expr:
    """The weights with their axes in another order, known at import if they are a constant."""
    if is_stepped(tensor):
        return relax.op.permute_dims(_dequantized(context, tensor), list(order))
    return converter.apply(
        context,
        [tensor],
        lambda expr: relax.op.permute_dims(expr, list(order)),
        lambda values: np.ascontiguousarray(values.transpose(order)),
    )


def _dequantized(context: Context, tensor: Tensor) -> Expr:
    """The weights' numbers, which may have a scale for each slice along an axis."""
    expr, grid = context.expr(tensor), tensor.required_quantisation
    if not is_constant(expr):
        return real(context, tensor)
    shape = [1] * len(tensor.info.shape)
    if grid.per_channel:
        axis = need_axis(grid.axis, len(shape))
        extent = tensor.info.shape[axis]
        need(len(grid.scales) == extent, f"{len(grid.scales)} scales for the {extent} slices along axis {axis}")
        shape[axis] = -1
    steps = np.asarray(expr.value.numpy()).astype(np.float32)
    scales, points = (np.asarray(values, np.float32) for values in (grid.scales, grid.zero_points))
    return constant((steps - points.reshape(shape)) * scales.reshape(shape))


def _finished(context: Context, operator: Operator, sums: Expr, output: Tensor) -> Expr:
    """Adds the bias, applies the activation and stores the result."""
    bias = operator.optional_input(BIASES.get(operator.name, 2))
    if bias is not None:
        channels = output.info.shape[-1:]
        need((bias.info.elements,) == channels, f"bias {bias.info} does not fit the channels of {output.info}")
        sums = relax.op.add(sums, converter.reshaped(_bias(context, operator, bias), bias.info.shape, channels))
    return stored(converter.activated(operator, sums), output)


def _bias(context: Context, operator: Operator, bias: Tensor) -> Expr:
    """The bias's numbers; integers are steps of the products of input and weights."""
    if bias.info.dtype not in ("int32", "int64"):
        return real(context, bias)
    steps, factors = context.expr(bias), _scale_of_products(operator)
    return relax.op.multiply(relax.op.astype(steps, "float32"), constant(factors))


def _scale_of_products(operator: Operator) -> Array:
    first, second = (operator.required_input(number) for number in _OPERANDS.get(operator.name, (0, 1)))
    scales = np.asarray(second.required_quantisation.scales, np.float32)
    return np.asarray(np.float32(first.scale) * scales)


_OPERANDS = {"TRANSPOSE_CONV": (2, 1)}
BIASES = {"TRANSPOSE_CONV": 3}
BYTES = ("int8", "uint8")


@converts("CONV_2D", when=otherwise)
def conv_2d(context: Context, operator: Operator) -> Expr:
    data, weights, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    _need_operands(data, weights, output, 4)
    channels, depth = weights.info.shape[0], weights.info.shape[3]
    groups = _groups(data, weights, depth)
    need(channels % groups == 0, f"{groups} groups do not divide the {channels} channels of weights {weights.info}")
    call, taps = _window(operator, data, weights.info.shape[1:3], "HWIO"), _weights(context, weights, (1, 2, 3, 0))
    sums = relax.op.nn.conv2d(real(context, data), taps, groups=groups, **call)
    return _finished(context, operator, sums, output)


def _groups(data: Tensor, weights: Tensor, depth: int) -> int:
    fits = data.info.shape[-1] % depth == 0
    need(fits, f"input {data.info} does not fit weights {weights.info}")
    return data.info.shape[-1] // depth


def _need_operands(data: Tensor, weights: Tensor, output: Tensor, rank: int) -> None:
    _need_reals_or_bytes(data, weights)
    _need_rank(data, rank, "inputs")
    _need_rank(weights, rank, "weights")
    need_same_type(data, output)
    _need_alike(data, weights)


def _need_reals_or_bytes(*tensors: Tensor) -> None:
    """Lets bytes without a scale be: no runtime has them, and their sums wrap around."""
    if not all(tensor.info.dtype in BYTES and tensor.quantisation is None for tensor in tensors):
        need_reals(*tensors)


def _need_alike(data: Tensor, weights: Tensor) -> None:
    """Refuses integer weights beside floats, for which LiteRT quantises the input anew in each run, and no weights."""
    need_some(data, weights)
    _need_whole(data, weights)
    alike = is_stepped(weights) if is_stepped(data) else data.info.dtype == weights.info.dtype
    kind = weights.info.dtype
    need(alike, f'weights "{weights.name}" are {kind} beside an input of {data.info.dtype}; quantise both, or none')


def _need_whole(data: Tensor, weights: Tensor) -> None:
    """Refuses a file of which the weights alone are quantised."""
    beside = f'weights "{weights.name}" are {weights.info.dtype} beside an input of {data.info.dtype}'
    hybrid = data.info.dtype == "float32" and is_stepped(weights)
    need(not hybrid, f"{beside}; {WHOLE}")


def _window(operator: Operator, data: Tensor, kernel: Shape, layout: str, axes: str = "HW") -> dict[str, object]:
    """The arguments of a convolution along some axes."""
    window = converter.sliding_window(operator, data.info.shape[1:-1], kernel, axes)
    lies = {name: list(getattr(window, name)) for name in ("strides", "dilation", "padding")}
    return {**lies, "data_layout": f"N{axes}C", "kernel_layout": layout}


@converts("DEPTHWISE_CONV_2D", when=otherwise)
def depthwise_conv_2d(context: Context, operator: Operator) -> Expr:
    data, weights, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    _need_operands(data, weights, output, 4)
    one, height, width, channels = weights.info.shape
    depth = need_multiplier(operator, data, weights)
    need(one == 1, f"weights {weights.info} are no multiple of the input's {depth} channels")
    shape = (height, width, 1, channels) if depth == 1 else (height, width, channels, 1)
    stepped = is_stepped(weights)
    taps = relax.op.reshape(_dequantized(context, weights), shape) if stepped else reshaped(context, weights, shape)
    call = _window(operator, data, (height, width), "HWIO" if depth == 1 else "HWOI")
    sums = relax.op.nn.conv2d(real(context, data), taps, groups=depth, **call)
    return _finished(context, operator, sums, output)


@converts("TRANSPOSE_CONV", when=otherwise)
def transpose_conv(context: Context, operator: Operator) -> Expr:
    weights, data, output = operator.required_input(1), operator.required_input(2), operator.outputs[0]
    _need_operands(data, weights, output, 4)
    attrs = TransposeConv2dFloatAttrs(*transposed_window(operator, output, weights.info.shape[1:3]))
    taps = _dequantized(context, weights) if is_stepped(weights) else context.expr(weights)
    sums = get(TransposeConv2dFloat)(real(context, data), taps, attrs=attrs)
    return _finished(context, operator, sums, output)


@converts("CONV_3D", when=otherwise)
def conv_3d(context: Context, operator: Operator) -> Expr:
    data, weights, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    truths = data.info.dtype == "bool" and weights.info.dtype == "float32"  # Weighted sums of them, not 0.
    numbers = replace(data, info=replace(data.info, dtype="float32")) if truths else data
    need_same_type(data, output)
    _need_operands(numbers, weights, numbers, 5)
    kernel, depth = weights.info.shape[:3], weights.info.shape[3]
    need(data.info.shape[4] == depth, f"input {data.info} does not fit weights {weights.info}")
    call = _window(operator, data, kernel, "DHWIO", "DHW")
    given = relax.op.astype(context.expr(data), "float32") if truths else real(context, data)
    sums = relax.op.nn.conv3d(given, context.expr(weights), **call)
    result = _finished(context, operator, sums, output)
    return relax.op.astype(result, "bool") if truths else result


# Products of matrices.


@converts("FULLY_CONNECTED", when=otherwise)
def fully_connected(context: Context, operator: Operator) -> Expr:
    """Converts an input of any rank: its rows are as long as the weights', and the output has the file's shape."""
    data, weights, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    _need_reals_or_bytes(data, weights)
    need_same_type(data, output)
    _need_alike(data, weights)
    mixed = (data.info.dtype, weights.info.dtype) == ("uint8", "int8")
    need(not mixed, f'weights "{weights.name}" are int8 beside a uint8 input; wanted uint8')
    rows, units, depth = product_of(data, weights, output)
    expr, shape = real(context, data), data.info.shape
    if not shape or shape[-1] != depth or len(shape) < 2:
        shape = (rows, depth)
        expr = relax.op.reshape(expr, shape)
    sums = relax.op.matmul(expr, _weights(context, weights, (1, 0)))
    shown = (*shape[:-1], units)
    result = _finished(context, operator, sums, output)
    return result if shown == output.info.shape else relax.op.reshape(result, output.info.shape)


@converts("BATCH_MATMUL", when=otherwise)
def batch_matmul(context: Context, operator: Operator) -> Expr:
    """Multiplies the last two axes as matrices, each turned if its option says so; the axes before are broadcast.

    A sum of truths is whether there is one.
    """
    first, second, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    _need_whole(first, second)
    need_same_type(first, second)
    need_same_type(first, output)
    sides, shapes = [], []
    for tensor, turned in ((first, operator.options.AdjX()), (second, operator.options.AdjY())):
        rank = len(tensor.info.shape)
        need(rank >= 2, f'"{tensor.name}" has rank {rank}, wanted at least 2')
        order = [*range(rank - 2), rank - 1, rank - 2]
        expr = real(context, tensor)
        if first.info.dtype == "bool":
            expr = relax.op.astype(expr, "int32")
        shapes.append([tensor.info.shape[axis] for axis in (order if turned else range(rank))])
        sides.append(relax.op.permute_dims(expr, order) if turned else expr)
    (*ahead, rows, depth), (*beside, other, columns) = shapes
    need(depth == other, f"rows of {depth} elements do not fit columns of {other}")
    need_shape(output, [*broadcast_shape(tuple(ahead), tuple(beside)), rows, columns])
    product = relax.op.matmul(*sides)
    return relax.op.astype(product, "bool") if first.info.dtype == "bool" else stored(product, output)


# Pools.


@converts("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D", when=otherwise)
def pool(context: Context, operator: Operator) -> Expr:
    """Pools the elements inside the image: what is padded does not count."""
    data, output = operator.required_input(0), operator.outputs[0]
    need_same_type(data, output)
    need(not is_stepped(data), f'input "{data.name}" is {data.info.dtype} with a scale for each slice, wanted one')
    _need_rank(data, 4, "inputs")
    window = converter.sliding_window(operator, data.info.shape[1:3])
    lies = {"pool_size": window.kernel, "strides": window.strides, "padding": list(window.padding)}
    kind = {**lies, "layout": "NHWC"}
    x = context.expr(data)
    if operator.name == "MAX_POOL_2D":
        # The reference's maxima are finite, which this attribute stands for (``tvm_api/extremes.py``).
        return converter.activated(operator, relax.op.nn.max_pool2d(x, **kind, count_include_pad=True))
    means = operator.name == "AVERAGE_POOL_2D"
    need_dtype(data, (*FLOATS, "int64") if means else FLOATS, "input")  # No runtime has means of int64, truncated here.
    if means:
        return converter.activated(operator, relax.op.nn.avg_pool2d(x, **kind))
    return converter.activated(operator, relax.op.sqrt(relax.op.nn.avg_pool2d(relax.op.multiply(x, x), **kind)))
