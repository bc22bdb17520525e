"""The layers that the models are made of: float meaning, quantisation rule and operator of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from models import floatops
from models.floatops import Pair
from models.network import Network, Value
from models.quantise import Quantisation, activation_range, bias_integers, bias_scales, weights_per_channel
from support.models.tflite_writer import OptionValue, Tensor

Array = npt.NDArray[Any]


def conv2d(
    net: Network,
    x: Value,
    weights: Array,
    bias: Array,
    *,
    stride: Pair = (1, 1),
    dilation: Pair = (1, 1),
    padding: str = "SAME",
    activation: str = "NONE",
) -> Value:
    """Weights are [out, rows, columns, in]; fewer in-channels than the input has mean groups."""
    samples = floatops.conv2d(x.samples, weights, bias, stride, dilation, padding)
    inputs = [x.tensor, *_parameters(net, x, weights, bias, axis=0)]
    options = _window_options(stride, dilation, padding, activation)
    return net.layer("CONV_2D", inputs, floatops.activate(samples, activation), options=options)


def depthwise_conv2d(
    net: Network,
    x: Value,
    weights: Array,
    bias: Array,
    *,
    stride: Pair = (1, 1),
    dilation: Pair = (1, 1),
    padding: str = "SAME",
    activation: str = "NONE",
) -> Value:
    """Weights are [1, rows, columns, in * multiplier]."""
    samples = floatops.depthwise_conv2d(x.samples, weights, bias, stride, dilation, padding)
    inputs = [x.tensor, *_parameters(net, x, weights, bias, axis=3)]
    options = _window_options(stride, dilation, padding, activation)
    options["depth_multiplier"] = weights.shape[3] // x.shape[3]
    return net.layer("DEPTHWISE_CONV_2D", inputs, floatops.activate(samples, activation), options=options)


def transpose_conv2d(
    net: Network, x: Value, weights: Array, bias: Array, stride: Pair | None = None, padding: str = "VALID"
) -> Value:
    """Weights are [out, rows, columns, in]. Without strides no two windows overlap."""
    stride = stride or (weights.shape[1], weights.shape[2])
    samples = floatops.transpose_conv2d(x.samples, weights, bias, stride, padding)
    inputs = [net.integers("size", (1, *samples.shape[1:])), *_parameters(net, x, weights, bias, axis=0)]
    options: dict[str, OptionValue] = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]}
    return net.layer("TRANSPOSE_CONV", [*inputs[:2], x.tensor, inputs[2]], samples, options=options)


def dense(
    net: Network,
    x: Value,
    weights: Array,
    bias: Array,
    *,
    activation: str = "NONE",
    per_channel: bool = False,
) -> Value:
    """Weights are [out, in]; converters quantised them as a whole for long, and now per channel too."""
    samples = floatops.activate(x.samples @ weights.T + bias, activation)
    inputs = [x.tensor, *_parameters(net, x, weights, bias, axis=0 if per_channel else None)]
    return net.layer("FULLY_CONNECTED", inputs, samples, options={"fused_activation": activation})


def add(net: Network, a: Value, b: Value, *, activation: str = "NONE") -> Value:
    return _binary(net, "ADD", a, b, a.samples + b.samples, activation)


def sub(net: Network, a: Value, b: Value, *, activation: str = "NONE") -> Value:
    return _binary(net, "SUB", a, b, a.samples - b.samples, activation)


def mul(net: Network, a: Value, b: Value, *, activation: str = "NONE") -> Value:
    return _binary(net, "MUL", a, b, a.samples * b.samples, activation)


def squared_difference(net: Network, a: Value, b: Value) -> Value:
    return net.layer("SQUARED_DIFFERENCE", [a.tensor, b.tensor], (a.samples - b.samples) ** 2)


def rsqrt(net: Network, x: Value) -> Value:
    """Of what is above zero; elsewhere the reference fails."""
    return net.layer("RSQRT", [x.tensor], x.samples**-0.5)


def batch_matmul(net: Network, a: Value, b: Value, *, transposed: bool) -> Value:
    """``transposed``: the second with its last two dimensions swapped."""
    samples = a.samples @ (b.samples.swapaxes(-1, -2) if transposed else b.samples)
    return net.layer("BATCH_MATMUL", [a.tensor, b.tensor], samples, options={"adj_x": False, "adj_y": transposed})


def constant(net: Network, values: npt.ArrayLike) -> Value:
    """A scalar or a vector that an elementwise layer takes as its second operand."""
    samples = np.asarray(values, np.float32)
    known = activation_range(samples, net.dtype)
    lowest, highest = (-128, 127) if net.dtype == "int8" else (-32768, 32767)
    integers = np.clip(np.rint(samples / known.scale) + known.zero_point, lowest, highest).astype(net.dtype)
    tensor = net.builder.constant(net.name("constant"), integers, scale=known.scale, zero_point=known.zero_point)
    return Value(tensor, samples, known)


def minimum(net: Network, a: Value, b: Value) -> Value:
    a, b = alike(net, [a, b])
    return net.layer("MINIMUM", [a.tensor, b.tensor], np.minimum(a.samples, b.samples), a.known)


def maximum(net: Network, a: Value, b: Value) -> Value:
    a, b = alike(net, [a, b])
    return net.layer("MAXIMUM", [a.tensor, b.tensor], np.maximum(a.samples, b.samples), a.known)


def concatenate(net: Network, values: Sequence[Value], axis: int) -> Value:
    values = alike(net, values)
    samples = np.concatenate([value.samples for value in values], axis)
    inputs = [value.tensor for value in values]
    return net.layer("CONCATENATION", inputs, samples, values[0].known, {"axis": axis})


def split(net: Network, x: Value, parts: int, axis: int) -> list[Value]:
    inputs = [net.integers("split_axis", axis), x.tensor]
    return net.layers("SPLIT", inputs, np.split(x.samples, parts, axis), x.known, {"num_splits": parts})


def alike(net: Network, values: Sequence[Value]) -> list[Value]:
    """The values with one quantisation that covers them all, requantised where theirs differs."""
    common = activation_range(np.concatenate([value.samples.ravel() for value in values]), net.dtype)
    return [value if value.known == common else requantise(net, value, common) for value in values]


def requantise(net: Network, x: Value, quantisation: Quantisation) -> Value:
    return net.layer("QUANTIZE", [x.tensor], x.samples, quantisation)


def quantise(net: Network, x: Value) -> Value:
    """From float to the network's integers."""
    return net.layer("QUANTIZE", [x.tensor], x.samples)


def dequantise(net: Network, x: Value) -> Value:
    return net.unquantised_layer("DEQUANTIZE", [x.tensor], x.samples)


def pad(net: Network, x: Value, rows: Pair, columns: Pair) -> Value:
    amounts = [(0, 0), rows, columns, (0, 0)]
    return net.layer("PAD", [x.tensor, net.integers("paddings", amounts)], np.pad(x.samples, amounts), x.known)


def max_pool(net: Network, x: Value, size: Pair, stride: Pair, padding: str = "VALID") -> Value:
    samples = floatops.max_pool(x.samples, size, stride, padding)
    return net.layer("MAX_POOL_2D", [x.tensor], samples, x.known, _pool_options(size, stride, padding))


def average_pool(net: Network, x: Value, size: Pair, stride: Pair, padding: str = "VALID") -> Value:
    samples = floatops.average_pool(x.samples, size, stride, padding)
    return net.layer("AVERAGE_POOL_2D", [x.tensor], samples, x.known, _pool_options(size, stride, padding))


def mean(net: Network, x: Value, axes: Sequence[int], *, keep_dims: bool) -> Value:
    samples = x.samples.mean(axis=tuple(axes), keepdims=keep_dims)
    return net.layer("MEAN", [x.tensor, net.integers("axes", axes)], samples, None, {"keep_dims": keep_dims})


def reshape(net: Network, x: Value, shape: Sequence[int]) -> Value:
    samples = x.samples.reshape(-1, *shape[1:])
    return net.layer("RESHAPE", [x.tensor, net.integers("shape", shape)], samples, x.known, {"new_shape": shape})


def transpose(net: Network, x: Value, order: Sequence[int]) -> Value:
    return net.layer("TRANSPOSE", [x.tensor, net.integers("order", order)], x.samples.transpose(order), x.known)


def strided_slice(net: Network, x: Value, begin: Sequence[int], end: Sequence[int], stride: Sequence[int]) -> Value:
    """The batch is taken whole."""
    ranges = tuple(slice(*bounds) for bounds in zip(begin[1:], end[1:], stride[1:], strict=True))
    bounds = [net.integers("begin", begin), net.integers("end", end), net.integers("stride", stride)]
    return net.layer("STRIDED_SLICE", [x.tensor, *bounds], x.samples[(slice(None), *ranges)], x.known)


def resize_nearest(net: Network, x: Value, size: Pair, **options: OptionValue) -> Value:
    inputs = [x.tensor, net.integers("size", size)]
    return net.layer("RESIZE_NEAREST_NEIGHBOR", inputs, floatops.resize_nearest(x.samples, size), x.known, options)


def resize_bilinear(net: Network, x: Value, size: Pair, **options: OptionValue) -> Value:
    inputs = [x.tensor, net.integers("size", size)]
    return net.layer("RESIZE_BILINEAR", inputs, floatops.resize_bilinear(x.samples, size), x.known, options)


def leaky_relu(net: Network, x: Value, alpha: float) -> Value:
    return net.layer("LEAKY_RELU", [x.tensor], floatops.leaky_relu(x.samples, alpha), None, {"alpha": alpha})


def hard_swish(net: Network, x: Value) -> Value:
    return net.layer("HARD_SWISH", [x.tensor], floatops.hard_swish(x.samples))


def logistic(net: Network, x: Value) -> Value:
    return net.layer("LOGISTIC", [x.tensor], floatops.logistic(x.samples), _unit_range(net))


def tanh(net: Network, x: Value) -> Value:
    """TFLite fixes the scale so that the integers cover -1 to 1."""
    scale = 2.0**-7 if net.dtype == "int8" else 2.0**-15
    return net.layer("TANH", [x.tensor], np.tanh(x.samples), Quantisation(scale, 0, net.dtype))


def softmax(net: Network, x: Value) -> Value:
    return net.layer("SOFTMAX", [x.tensor], floatops.softmax(x.samples), _unit_range(net), {"beta": 1.0})


def argmax(net: Network, x: Value, axis: int) -> Value:
    inputs = [x.tensor, net.integers("axis", axis)]
    return net.unquantised_layer("ARG_MAX", inputs, x.samples.argmax(axis), "int32", {"output_type": "INT32"})


def _unit_range(net: Network) -> Quantisation:
    """TFLite fixes the scale so that the integers cover 0 to 1."""
    if net.dtype == "int8":
        return Quantisation(2.0**-8, -128, "int8")
    return Quantisation(2.0**-15, 0, "int16")


def _binary(net: Network, operator: str, a: Value, b: Value, samples: Array, activation: str) -> Value:
    samples = floatops.activate(samples, activation)
    return net.layer(operator, [a.tensor, b.tensor], samples, options={"fused_activation": activation})


def _parameters(net: Network, x: Value, weights: Array, bias: Array, axis: int | None) -> list[Tensor]:
    """Weights and bias as constants; along `axis` each slice has its scale, without it all share one."""
    if axis is None:
        flat, scales = weights_per_channel(weights.reshape(1, -1), 0, bias, x.scale)
        integers = flat.reshape(weights.shape)
    else:
        integers, scales = weights_per_channel(weights, axis, bias, x.scale)
    bias_type = "int32" if net.dtype == "int8" else "int64"
    counts = bias_integers(bias, x.scale, scales, bias_type)
    return [
        net.builder.constant(net.name("weights"), integers, scales=scales, axis=axis or 0),
        net.builder.constant(net.name("bias"), counts, scales=bias_scales(x.scale, scales)),
    ]


def _window_options(stride: Pair, dilation: Pair, padding: str, activation: str) -> dict[str, OptionValue]:
    return {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "dilation_h_factor": dilation[0],
        "dilation_w_factor": dilation[1],
        "fused_activation": activation,
    }


def _pool_options(size: Pair, stride: Pair, padding: str) -> dict[str, OptionValue]:
    return {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "filter_height": size[0],
        "filter_width": size[1],
    }
