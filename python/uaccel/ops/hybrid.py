"""Defines layers of floats whose weights are bytes: their inputs become bytes in each run, and bytes are multiplied.

LiteRT calls this dynamic-range, or hybrid, quantisation. The meaning is that of its reference kernels, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.conv_float import ACTIVATIONS, BLOCK, FLOAT, FloatSumAttrs, finish_fields, finished, in_blocks
from uaccel.ops.kernel import Input, Kernel, Output, ParameterValue, portable, same
from uaccel.ops.operator import Attributes, ByLoops, Infos, IntegerOperator, Site, get, require
from uaccel.ops.windows import Grouped, convolved, geometry_fields, infer_convolved, infer_product, multiplied, padded
from uaccel.tvm_api import te, tirx
from uaccel.tvm_api.loops import count_to, local_array, te_let
from uaccel.tvm_api.tir import dtype_of

# Rows of floats as bytes, each by the range of its own elements.

LOW, HIGH = -128, 127
BYTE: Final = "int8"
WIDE: Final = "float64"
FARTHEST: Final = 512.0  # No byte is so far from its zero point; numbers beyond it and NaN count as this one.


class QuantizeRowsAttrs(Attributes):
    """``symmetric`` 1: the zero point is 0, and bytes are at least -127."""

    symmetric: int


class QuantizeRows(ByLoops[QuantizeRowsAttrs]):
    """Turns rows, along the first axis, into bytes; further results are the scale and the zero point of each row.

    A number is ``(byte - zero point) * scale``, and zero has a byte of its own.
    """

    name = "quantize_rows"

    def infer(self, attrs: QuantizeRowsAttrs, data: TensorInfo) -> tuple[TensorInfo, ...]:
        fits = data.dtype == FLOAT and len(data.shape) > 1
        require(fits, f"{self.name}: input {data}, wanted {FLOAT} of rank 2 or more")
        rows = data.shape[:1]
        return TensorInfo(data.shape, BYTE), TensorInfo(rows, FLOAT), TensorInfo(rows, "int32")

    def write(self, infos: Infos, attrs: QuantizeRowsAttrs, data: Any, *results: Any) -> None:
        values, scales, zero_points = results
        rows, depth = rows_of(infos[0])
        with count_to(rows) as row:
            scales[row], zero_points[row] = quantize_row(data, row * depth, values, row * depth, depth, attrs.symmetric)

    def kernels(self, site: Site[QuantizeRowsAttrs]) -> Sequence[Kernel]:
        rows, depth = rows_of(site.operands[0].info)
        parameters = {"rows": rows, "depth": depth, **same(site.attrs, "symmetric")}
        arguments = (Input(0), Output(0), Output(1), Output(2))
        return [portable("uaccel_quantize_rows_f32", "uaccel_quantize_rows", parameters, arguments, inplace=(0,))]


def quantize_row(data: Any, start: Any, values: Any, first: Any, depth: int, symmetric: int) -> tuple[Any, Any]:
    """Writes the bytes of a row from ``first`` on, and gives the row's scale and zero point."""
    low, high = local_array(1, FLOAT), local_array(1, FLOAT)
    low[0] = high[0] = exact.real(0)
    with count_to(depth) as k:
        value = te_let(data[start + k])
        low[0] = exact.chosen(value < low[0], value, low[0])
        high[0] = exact.chosen(value > high[0], value, high[0])
    scale, point, inverse = _grid(te_let(low[0]), te_let(high[0]), symmetric)
    scale, zero_point, factor = te_let(scale), te_let(point), te_let(inverse)
    with count_to(depth) as k:
        steps = _nearest(te_let(_bounded(data[start + k] * factor, -FARTHEST, FARTHEST)))
        values[first + k] = exact.clamp(steps + zero_point, LOW + symmetric, HIGH).astype(BYTE)
    return scale, zero_point


def rows_of(info: TensorInfo) -> tuple[int, int]:
    return info.shape[0], math.prod(info.shape[1:])


def _bounded(value: Any, low: float, high: float) -> Any:
    """The number between the bounds; the upper one for NaN."""
    least, most = (tirx.const(end, dtype_of(value)) for end in (low, high))
    below = exact.chosen(value < most, value, most)
    return exact.chosen(below > least, below, least)


def _nearest(value: Any) -> Any:
    """The nearest int32, halves away from zero."""
    whole, one, zero = te_let(exact.i32(value)), exact.const(1, "int32"), exact.const(0, "int32")
    rest = te_let(value - whole.astype(FLOAT))
    up, down = rest >= exact.real(0.5), rest <= exact.real(-0.5)
    return whole + exact.chosen(up, one, zero) - exact.chosen(down, one, zero)


def _grid(low: Any, high: Any, symmetric: int) -> tuple[Any, Any, Any]:
    """The scale and the zero point of numbers from ``low`` to ``high``, and what numbers are multiplied by."""
    empty, one, zero = low >= high, exact.real(1), exact.real(0)
    if symmetric:
        reach, most = te_let(exact.chosen(-low > high, -low, high)), exact.real(HIGH)
        return exact.chosen(empty, one, reach / most), exact.const(0, "int32"), exact.chosen(empty, zero, most / reach)
    step = te_let((high - low).astype(WIDE) / _wide(HIGH - LOW))
    below, above = te_let(low.astype(WIDE) / step), te_let(high.astype(WIDE) / step)
    lowers = _wide(-LOW) - below < _wide(HIGH) + above
    place = te_let(_bounded(exact.chosen(lowers, _wide(LOW) - below, _wide(HIGH) - above), LOW, HIGH))
    half = exact.chosen(place < _wide(0), _wide(-0.5), _wide(0.5))
    scale = te_let(exact.chosen(empty, one, step.astype(FLOAT)))
    zero_point = exact.chosen(empty, exact.const(0, "int32"), exact.i32(place + half))
    return scale, zero_point, exact.chosen(tirx.any(empty, scale <= zero), zero, one / scale)


def _wide(value: float) -> Any:
    return tirx.const(value, WIDE)


# Sums of products of bytes, NHWC, weights OHWI, with groups, dilation and padding.

MOST_TAPS: Final = (2**31 - 1) // ((HIGH - LOW) * -LOW)  # A sum of more may not fit 32 bits.


class HybridAttrs(FloatSumAttrs):
    """``channel_first`` 1: a sum is multiplied by its channel's factor, then by the row's scale, else by both at once.

    The last bit of a float depends on it.
    """

    channel_first: int


class HybridConv2dAttrs(Grouped, HybridAttrs):
    """Has windows and an activation."""


class HybridConv2d(IntegerOperator[HybridConv2dAttrs]):
    """Convolves bytes of ``quantize_rows`` with weights that are bytes times a factor for each output channel."""

    name = "hybrid_conv2d"
    arguments = ("input", "weights", "factors", "bias", "scales", "zero_points")

    def infer(self, attrs: HybridConv2dAttrs, *inputs: TensorInfo) -> TensorInfo:
        data, weights = inputs[:2]
        return checked(inputs, attrs, infer_convolved(data, weights, attrs, self.name), self.name)

    def meaning(self, attrs: HybridConv2dAttrs, *inputs: Any) -> Any:
        data, weights, _, _, _, zero_points = inputs
        steps = te.compute(data.shape, lambda n, *i: exact.i32(data(n, *i)) - zero_points(n), name="steps")
        extents = exact.info(weights).shape
        sums = convolved(padded(steps, attrs.padding), lambda *i: exact.i32(weights(*i)), extents, attrs)
        shape = self.infer(attrs, *map(exact.info, inputs)).shape
        return _real(te.compute(shape, sums, name="sums"), inputs, attrs, self.name)

    def kernels(self, site: Site[HybridConv2dAttrs]) -> Sequence[Kernel]:
        if not is_kernels(site):
            return ()
        channels, height, width, depth = site.operands[1].info.shape
        parameters: dict[str, ParameterValue] = {
            **geometry_fields(site, (height, width)),
            **same(site.attrs, "groups", "channel_first"),
            **finish_fields(site.attrs),
        }
        rows = site.operands[1].value
        if depth == 1 and site.attrs.groups > 1:
            by_tap = np.ascontiguousarray(rows.reshape(channels, -1).T)
            struct, depthwise = "uaccel_hybrid_conv2d", "uaccel_hybrid_depthwise_conv2d"
            return self.one_call(site, parameters, struct=struct, function=depthwise, held={"weights": by_tap})
        taken = height * width * depth
        blocks = np.concatenate([in_blocks(group) for group in rows.reshape(site.attrs.groups, -1, taken)])
        effort, window = len(blocks) * BLOCK / channels, 2 * taken
        return self.one_call(site, parameters, held={"weights": blocks}, scratch=window, effort=effort)


def checked(inputs: Sequence[TensorInfo], attrs: HybridAttrs, shape: Sequence[int], what: str) -> TensorInfo:
    """The output of this shape; raises TypeError where the other inputs do not fit it."""
    data, weights, factors, bias, scales, zero_points = inputs
    rows, channels = data.shape[:1], weights.shape[:1]
    require(attrs.activation in ACTIVATIONS, f"{what}: activation {attrs.activation}, wanted one of {ACTIVATIONS}")
    require(data.dtype == weights.dtype == BYTE, f"{what}: {data} and {weights}, wanted {BYTE}")
    of_channels, given = TensorInfo(channels, FLOAT), (factors, bias, scales, zero_points)
    wanted = (of_channels, of_channels, TensorInfo(rows, FLOAT), TensorInfo(rows, "int32"))
    require(given == wanted, f"{what}: {', '.join(map(str, given))}, wanted {', '.join(map(str, wanted))}")
    count = weights.elements // channels[0]
    require(count <= MOST_TAPS, f"{what}: sums of {count} products may overflow 32 bits; at most {MOST_TAPS} fit")
    return TensorInfo(tuple(shape), FLOAT)


def is_kernels(site: Site[Any]) -> bool:
    """Whether kernels serve: weights, factors and bias are constants."""
    return all(operand.constant is not None for operand in site.operands[1:4])


def _real(sums: Any, inputs: Sequence[Any], attrs: HybridAttrs, name: str) -> Any:
    """The sums' numbers, with bias and activation."""
    factors, bias, scales = inputs[2:5]

    def number(*index: Any) -> Any:
        total, factor, scale = sums(*index).astype(FLOAT), factors(index[-1]), scales(index[0])
        return total * factor * scale if attrs.channel_first else total * (scale * factor)

    return finished(te.compute(sums.shape, number, name="numbers"), bias, (), attrs, name)


# Rows of bytes times weights.


class HybridFullyConnected(IntegerOperator[HybridAttrs]):
    """Multiplies rows of ``quantize_rows`` by rows of weights that are bytes times a factor for each of them."""

    name = "hybrid_fully_connected"
    arguments = HybridConv2d.arguments

    def infer(self, attrs: HybridAttrs, *inputs: TensorInfo) -> TensorInfo:
        return checked(inputs, attrs, infer_product(inputs[0], inputs[1], self.name), self.name)

    def meaning(self, attrs: HybridAttrs, *inputs: Any) -> Any:
        data, weights, _, _, _, zero_points = inputs
        sides = (lambda n, k: exact.i32(data(n, k)) - zero_points(n), lambda c, k: exact.i32(weights(c, k)))
        element, shape = multiplied(*sides, int(weights.shape[1])), (data.shape[0], weights.shape[0])
        return _real(te.compute(shape, lambda n, c: element(n, c), name="sums"), inputs, attrs, self.name)

    def kernels(self, site: Site[HybridAttrs]) -> Sequence[Kernel]:
        return get(HybridConv2d).kernels(_as_pixels(site))


def _as_pixels(site: Site[HybridAttrs]) -> Site[Any]:
    """The same layer as a pointwise convolution of images of one pixel."""
    data, weights, *more = site.operands
    (rows, depth), units, attrs = data.info.shape, weights.info.shape[0], site.attrs
    plain = HybridConv2dAttrs(
        attrs.activation, attrs.lower, attrs.upper, attrs.channel_first, (1, 1), (0, 0, 0, 0), (1, 1), 1
    )
    image = replace(data, info=replace(data.info, shape=(rows, 1, 1, depth)))
    window = (units, 1, 1, depth)
    kernel = replace(weights, info=replace(weights.info, shape=window), constant=weights.value.reshape(window))
    return Site(plain, (image, kernel, *more), (replace(site.output, shape=(rows, 1, 1, units)),))
