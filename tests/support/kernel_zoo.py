"""Many random layers in one module, each on an input of its own: what kernels are held against their meaning with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.ops.base import get
from uaccel.ops.conv2d import Conv2d, Conv2dAttrs
from uaccel.ops.depthwise_conv2d import DepthwiseConv2d
from uaccel.ops.rounding import FLOAT32, TFLITE
from uaccel.testing.layers import Layers

Array = NDArray[Any]
Maker = Callable[["Zoo"], tuple[tuple[tuple[int, ...], ...], Callable[..., Any]]]


class Zoo(Layers):
    """Shapes are mostly of the kinds that kernels are written for, and now and then of no kind."""

    def __init__(self, seed: int, larger: bool = False) -> None:
        super().__init__(seed)
        self.larger = larger

    def int8(self, *shape: int) -> Array:
        """Symmetric mostly, as quantisers make weights."""
        return np.maximum(super().int8(*shape), np.int8(-127 if self.integer(0, 3) else -128))

    def _scales(self, count: int, terms: int) -> tuple[Array, Array]:
        """None that makes scaled sums overflow: what the reference gives there is undefined."""
        multiplier, shift = super()._scales(count, terms)
        return multiplier, np.minimum(shift, 3).astype(np.int32)

    def channels(self) -> int:
        return self.integer(1, 9) * 4 if self.integer(0, 3) else self.integer(1, 21)

    def window3x3(self, x: Any, stride: int) -> Any:
        """A depthwise convolution as networks have them: rectified mostly, SAME padding mostly."""
        channels = int(x.ty.shape.values[3])
        zero_point = self.integer(-128, 127)
        low = zero_point if self.integer(0, 2) else -128
        padding = (1, 1, 1, 1) if self.integer(0, 2) else tuple(self.integer(0, 2) for _ in range(4))
        attrs = Conv2dAttrs((stride, stride), padding, (1, 1), channels, self.integer(-128, 127), zero_point, low, 127)
        attrs = replace(attrs, output_zero_point=-128, clamp_min=-128) if self.integer(0, 1) else attrs
        return get(DepthwiseConv2d)(
            x, *self._weights(channels, (3, 3, channels), 9), attrs=replace(attrs, rounding=self.rounding)
        )

    def apart(self, x: Any, groups: int, channels: int) -> Any:
        """A convolution whose windows are no run of bytes: in groups, dilated, or both."""
        attrs = replace(self._conv_attrs(x, groups), dilation=(self.integer(1, 2), self.integer(1 + (groups < 2), 4)))
        kernel, depth = self._kernel(x, attrs), int(x.ty.shape.values[3]) // groups
        weights = self._weights(channels, (channels, *kernel, depth), kernel[0] * kernel[1] * depth)
        return get(Conv2d)(x, *weights, attrs=attrs)

    def windows(self, x: Any, kernel: tuple[int, int], times: int = 1) -> Any:
        """A depthwise convolution with windows of this size, and so many results of a channel."""
        groups = int(x.ty.shape.values[3])
        padding = (*(extent // 2 for extent in kernel), *(extent - 1 - extent // 2 for extent in kernel))
        attrs = replace(self._conv_attrs(x, groups), padding=padding, dilation=(1, self.integer(1, 4) // 4 + 1))
        attrs = attrs if attrs.dilation == (1, 1) else replace(attrs, padding=tuple(2 * each for each in padding))
        weights = self._weights(groups * times, (*kernel, groups * times), kernel[0] * kernel[1])
        return get(DepthwiseConv2d)(x, *weights, attrs=attrs)

    def image(self) -> tuple[int, ...]:
        if self.larger:
            return (1, self.integer(4, 16), self.integer(4, 16), self.channels())
        return (self.integer(1, 2), self.integer(1, 9), self.integer(1, 9), self.channels())


def convolution(zoo: Zoo) -> Any:
    return (zoo.image(),), lambda x: zoo.conv2d(x, channels=zoo.channels())


def same(zoo: Zoo) -> Any:
    kernel = 2 * zoo.integer(0, 1) + 1
    return (zoo.image(),), lambda x: zoo.same(x, zoo.channels(), kernel)


def depthwise(zoo: Zoo) -> Any:
    return (zoo.image(),), zoo.depthwise


def rows(zoo: Zoo) -> Any:
    shape = (zoo.integer(1, 2), zoo.integer(3, 9), zoo.integer(3, 9), 4 * zoo.integer(1, 5))
    stride = zoo.integer(1, 2)
    return (shape,), lambda x: zoo.window3x3(x, stride)


def fully_connected(zoo: Zoo) -> Any:
    shape = (zoo.integer(1, 3), zoo.channels() * zoo.integer(1, 4))
    return (shape,), lambda x: zoo.fully_connected(x, zoo.channels())


def addition(zoo: Zoo) -> Any:
    shape = zoo.image()
    return (shape, shape), zoo.add


def average(zoo: Zoo) -> Any:
    return (zoo.image(),), lambda x: zoo.pool(x, True)


def dilated(zoo: Zoo) -> Any:
    return (zoo.image(),), lambda x: zoo.apart(x, 1, zoo.integer(1, 9))


def grouped(zoo: Zoo) -> Any:
    groups = zoo.integer(2, 4)
    shape = (*zoo.image()[:3], groups * zoo.integer(1, 18))
    return (shape,), lambda x: zoo.apart(x, groups, groups * zoo.integer(1, 9))


LARGE = ((5, 5), (7, 7), (5, 3), (3, 9), (1, 17), (18, 1), (4, 5))


def large(zoo: Zoo) -> Any:
    kernel = LARGE[zoo.integer(0, len(LARGE) - 1)]
    return (zoo.image(),), lambda x: zoo.windows(x, kernel, zoo.integer(1, 4) // 4 + 1)


def one_channel(zoo: Zoo) -> Any:
    return ((*zoo.image()[:3], 1),), lambda x: zoo.windows(
        x, (zoo.integer(1, 6), zoo.integer(1, 6)), zoo.integer(2, 16)
    )


def multiplied(zoo: Zoo) -> Any:
    shape = (*zoo.image()[:3], zoo.integer(2, 20))
    return (shape,), lambda x: zoo.windows(x, (zoo.integer(1, 4), zoo.integer(1, 4)), zoo.integer(2, 8))


def single(maker: Maker) -> Maker:
    """The same layer, which rounds in single precision."""

    def made(zoo: Zoo) -> Any:
        shapes, layer = maker(zoo)

        def rounded(*variables: Any) -> Any:
            zoo.rounding = FLOAT32
            call = layer(*variables)
            zoo.rounding = TFLITE
            return call

        return shapes, rounded

    return made


MAKERS = (
    convolution,
    single(convolution),
    same,
    single(same),
    depthwise,
    rows,
    single(rows),
    fully_connected,
    single(fully_connected),
    addition,
    average,
    dilated,
    grouped,
    single(grouped),
    large,
    single(large),
    one_channel,
    multiplied,
)
"""One network has a layer of each."""


def zoo_of(seed: int, larger: bool = False) -> tuple[list[tuple[int, ...]], Callable[..., Any]]:
    """The inputs' shapes, and what builds the results of variables of these shapes."""
    zoo = Zoo(seed, larger)
    made = [maker(zoo) for maker in MAKERS]
    shapes = [shape for own, _ in made for shape in own]

    def build(*variables: Any) -> list[Any]:
        results, start = [], 0
        for own, layer in made:
            results.append(layer(*variables[start : start + len(own)]))
            start += len(own)
        return results

    return shapes, build


def samples_of(seed: int, shapes: list[tuple[int, ...]], count: int = 2) -> list[list[Array]]:
    """Random bytes; in the first sample the extremes alone."""
    generator = np.random.default_rng(seed)
    first = [generator.choice([-128, 127], shape).astype(np.int8) for shape in shapes]
    others = [
        [generator.integers(-128, 128, shape).astype(np.int8) for shape in shapes] for _ in range(max(0, count - 1))
    ]
    return [first, *others]
