"""Layers of the shapes and sizes that networks have, drawn at random: what the costs of kernels are fitted to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from support.models import kernel_zoo as zoo
from uaccel.model import Array
from uaccel.ops.binary import Add, AddAttrs, Sub
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import constant, get
from uaccel.ops.pool import AveragePool2d, MaxPool2d, PoolAttrs
from uaccel.ops.softmax import Softmax, SoftmaxAttrs, exponentials

A = TypeVar("A", Conv2dAttrs, FullyConnectedAttrs)
MOST_MACS, MOST_BYTES = 600_000, 16_384


class Usual(zoo.Zoo):
    """Weights, biases and scales are those of trained layers: none is extreme."""

    def size(self, low: int, high: int, unit: int = 1) -> int:
        """From ``low`` to ``high``, as often small as large; a multiple of ``unit`` mostly."""
        drawn = round(2 ** self.random.uniform(np.log2(low), np.log2(high)))
        return max(unit, drawn // unit * unit) if self.integer(0, 4) else drawn

    def channels(self) -> int:
        return self.size(4, 160, self.one_of(4, 8, 16))

    def image(self, least: int = 1) -> tuple[int, ...]:
        channels = self.channels()
        return (1, *self.image_of((least, least), 1, channels, channels), channels)

    def int8(self, *shape: int) -> Array:
        return self.random.normal(0, 40, shape).round().clip(-127, 127).astype(np.int8)

    def _bias(self, channels: int, terms: int) -> Array:
        bias = self.random.normal(0, 1500 * terms**0.5, channels).astype(np.int32)
        return bias.astype(np.int64) if self.dtype == "int16" and not self.narrow else bias

    def rectified(self, attrs: A) -> A:
        """Every other layer's results begin at zero, as a function of activation leaves them."""
        if self.dtype != "int8" or self.integer(0, 1):
            return attrs
        return replace(attrs, output_zero_point=-128, clamp_min=-128, clamp_max=127)

    def fully_connected(self, x: Any, units: int = 0) -> Any:
        depth = int(x.ty.shape.values[1])
        attrs = FullyConnectedAttrs(self._zero_point(), self._zero_point(), *self._range(), self.rounding)
        weights = self._weights(units, (units, depth), depth)
        return get(FullyConnected)(x, *weights, attrs=self.rectified(attrs))

    def _range(self) -> tuple[int, int]:
        low, high = (-32768, 32767) if self.dtype == "int16" else (-128, 127)
        return (low, high) if self.integer(0, 3) else (low // 2, high // 2)

    def _any_scales(self, count: int, terms: int) -> tuple[Array, Array]:
        scale = 2.0**-6 / terms**0.5 * np.exp2(self.random.uniform(-1.5, 1.5, count))
        fraction, shift = np.frexp(scale)
        return (fraction * 2**31).astype(np.int64).clip(max=2**31 - 1).astype(np.int32), shift.astype(np.int32)

    def image_of(self, window: tuple[int, int], stride: int, products: int, widest: int) -> tuple[int, int]:
        """Height and width of an input on which these windows, of so many products, are within both limits."""
        most = min(MOST_MACS / products, MOST_BYTES / widest) ** 0.5 * stride
        limits = (max(1, min(48, int(most * ratio))) for ratio in (1.4, 0.7))
        height, width = (self.size(max(1, limit // 4), limit) for limit in limits)
        return max(height, window[0]), max(width, window[1])

    def attrs_of(self, image: tuple[int, int], window: tuple[int, int], stride: int) -> Conv2dAttrs:
        """Mostly with SAME padding."""
        padding = [0, 0, 0, 0]
        if self.integer(0, 4):
            for axis, extent in enumerate(image):
                whole = max(0, (-(-extent // stride) - 1) * stride + window[axis] - extent)
                padding[axis], padding[axis + 2] = whole // 2, whole - whole // 2
        points = (self._zero_point(), self._zero_point())
        attrs = Conv2dAttrs((stride, stride), tuple(padding), (1, 1), 1, *points, *self._range(), self.rounding)
        return self.rectified(attrs)

    def add(self, x: Any, y: Any, operator: type[Add] | type[Sub] = Add) -> Any:
        """One input is on the coarser scale, as TFLite has it; the result covers its range."""
        (multiplier, output), shift = self.random.integers(2**30, 2**31, 2), -self.integer(1, 3)
        first = (self._zero_point(), int(multiplier), shift)
        second, result = (self._zero_point(), 1 << 30, 0), (-128, int(output), -self.integer(17, 18))
        return get(operator)(x, y, attrs=AddAttrs(20, *first, *second, *result, -128, 127))

    def pooling(self, x: Any, window: tuple[int, int], strides: tuple[int, int], average: bool) -> Any:
        attrs = PoolAttrs(window, strides, (0, 0, 0, 0), *self._range())
        return get(AveragePool2d if average else MaxPool2d)(x, attrs=attrs)


def dense(*sides: tuple[int, int]) -> zoo.Maker:
    """A convolution with one of these windows."""

    def made(layers: Any) -> Any:
        window, stride = layers.one_of(*sides), 1 if layers.integer(0, 2) else 2
        depth, channels = layers.channels() if layers.integer(0, 4) else layers.one_of(1, 3), layers.channels()
        terms = window[0] * window[1] * depth
        image = layers.image_of(window, stride, terms * channels, max(depth, channels))

        def layer(x: Any) -> Any:
            attrs = layers.attrs_of(image, window, stride)
            return get(Conv2d)(x, *layers._weights(channels, (channels, *window, depth), terms), attrs=attrs)

        return ((1, *image, depth),), layer

    return made


def depthwise(*sides: tuple[int, int]) -> zoo.Maker:
    def made(layers: Any) -> Any:
        window, stride, channels = layers.one_of(*sides), 1 if layers.integer(0, 2) else 2, layers.channels()
        image = layers.image_of(window, stride, window[0] * window[1] * channels, channels)

        def layer(x: Any) -> Any:
            attrs = replace(layers.attrs_of(image, window, stride), groups=channels)
            weights = layers._weights(channels, (*window, channels), window[0] * window[1])
            return get(DepthwiseConv2d)(x, *weights, attrs=attrs)

        return ((1, *image, channels),), layer

    return made


def frame(layers: Any) -> Any:
    """A depthwise convolution of whole vectors of channels over the few pixels of a streaming network's frame."""
    channels, pixels, axis = (
        16 * layers.integer(1, 8),
        layers.one_of(1, 1, 2, layers.integer(3, 12)),
        layers.integer(0, 1),
    )
    taps = layers.integer(3, 30)
    window, image = (taps, 1), (taps + pixels - 1, 1)

    def layer(x: Any) -> Any:
        attrs = replace(layers.attrs_of((1, 1), (1, 1), 1), groups=channels)
        sides = window if axis else window[::-1]
        weights = layers._weights(channels, (*sides, channels), taps)
        return get(DepthwiseConv2d)(x, *weights, attrs=attrs)

    return ((1, *(image if axis else image[::-1]), channels),), layer


def single_row(layers: Any) -> Any:
    """A fully connected layer, or a convolution whose only window is its input: of one row and of few units mostly."""
    depth = layers.size(8, 1000, layers.one_of(4, 16))
    units = layers.integer(1, 14) if layers.integer(0, 2) else layers.channels()
    if layers.integer(0, 2):
        return ((1, depth),), lambda x: layers.fully_connected(x, units)
    weights, attrs = layers._weights(units, (units, 1, 1, depth), depth), layers.attrs_of((1, 1), (1, 1), 1)
    return ((1, 1, 1, depth),), lambda x: get(Conv2d)(x, *weights, attrs=attrs)


def fully_connected(layers: Any) -> Any:
    depth, units = layers.size(8, 700, 8), layers.size(2, 300, 4)
    shape, alike = (layers.one_of(1, 1, 1, 2, 5), depth), bool(layers.integer(0, 1))

    def layer(x: Any) -> Any:
        layers.alike = alike
        call = layers.fully_connected(x, units)
        layers.alike = False
        return call

    return (shape,), layer


def addition(layers: Any) -> Any:
    shape = layers.image()
    return (shape, shape), layers.add


def pool(average: bool) -> zoo.Maker:
    """Of everything every other time, else of small windows."""

    def made(layers: Any) -> Any:
        shape = layers.image(4)
        side = layers.integer(2, 3)
        window = shape[1:3] if average and layers.integer(0, 1) else (side, side)
        strides = window if layers.integer(0, 2) else (1, 1)
        return (shape,), lambda x: layers.pooling(x, window, strides, average)

    return made


def softmax(layers: Any) -> Any:
    multiplier, shift = int(layers.random.integers(2**30, 2**31)), layers.integer(18, 24)
    table = constant(exponentials(multiplier, shift))
    shape = (layers.one_of(1, 1, layers.size(2, 50)), layers.size(2, 100))
    return (shape,), lambda x: get(Softmax)(x, table, attrs=SoftmaxAttrs(multiplier, shift, "int8"))


POINTWISE, THREES = dense((1, 1)), dense((3, 3))
WIDE = dense((5, 5), (10, 4), (1, 3), (3, 1), (2, 2), (7, 7))
DEPTHWISE, LARGE = depthwise((3, 3)), depthwise((5, 5), (7, 7), (4, 4))
LINES = depthwise((1, 5), (9, 1), (29, 1), (1, 3))
FRAMES: tuple[zoo.Maker, ...] = (frame, single_row)
USUAL: tuple[zoo.Maker, ...] = (
    POINTWISE,
    POINTWISE,
    POINTWISE,
    THREES,
    THREES,
    THREES,
    WIDE,
    DEPTHWISE,
    DEPTHWISE,
    LARGE,
    LINES,
    fully_connected,
    fully_connected,
    fully_connected,
    addition,
    pool(True),
    pool(False),
    softmax,
    softmax,
    zoo.mean,
    zoo.curve,
    zoo.multiplication,
)
OTHERS: tuple[zoo.Maker, ...] = (
    zoo.subtraction,
    zoo.dilated,
    zoo.grouped,
    zoo.one_channel,
    zoo.multiplied,
    zoo.matrices,
    zoo.transposed,
    zoo.int16(POINTWISE),
    zoo.int16(WIDE),
    zoo.int16(DEPTHWISE),
    zoo.int16(LARGE),
    zoo.int16(fully_connected),
    zoo.int16(zoo.addition16),
    zoo.int16(zoo.multiplication),
    zoo.int16(pool(True)),
    zoo.int16(pool(False)),
    zoo.int16(zoo.mean),
    zoo.int16(zoo.matrices),
    zoo.int16(zoo.grouped),
    zoo.narrow16(POINTWISE),
    zoo.narrow16(DEPTHWISE),
    zoo.narrow16(fully_connected),
)
