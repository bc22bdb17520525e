"""Many random layers in one module, each on an input of its own: what kernels are held against their meaning with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.model import TensorInfo
from uaccel.ops.binary import Add, AddAttrs, Mul, MulAttrs, Sub
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d, TransposeConv2d, TransposeConv2dAttrs
from uaccel.ops.exact import FLOAT32, limits
from uaccel.ops.lookup import Lookup, LookupAttrs
from uaccel.ops.matmul import BatchMatmul, BatchMatmulAttrs
from uaccel.ops.operator import constant, get
from uaccel.ops.reduce import ReduceMean, ReduceSum, ReduceSumAttrs
from uaccel.testing.layers import Layers
from uaccel.tvm_api import ModuleBuilder, relax

Array = NDArray[Any]
Input = TensorInfo | tuple[int, ...]
"""Of 8 bits where nothing else is said."""
Maker = Callable[["Zoo"], tuple[tuple[Input, ...], Callable[..., Any]]]


class Zoo(Layers):
    """Shapes are mostly of the kinds that kernels are written for, and now and then of no kind."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.dtype = "int8"
        self.narrow = False
        self.alike = False

    def int8(self, *shape: int) -> Array:
        """Symmetric mostly, as quantisers make weights."""
        return np.maximum(super().int8(*shape), np.int8(-127 if self.integer(0, 3) else -128))

    def _scales(self, count: int, terms: int) -> tuple[Array, Array]:
        """None that makes scaled sums overflow: what the reference gives there is undefined."""
        multiplier, shift = super()._scales(count, terms)
        if self.alike:
            multiplier, shift = np.full_like(multiplier, multiplier[0]), np.full_like(shift, shift[0])
        if self.rounding == FLOAT32 and self.dtype == "int16" and not self.narrow:
            multiplier = multiplier & ~0x7F  # a bias of 64 bits has no rest
        wide = self.dtype == "int16" and not self.narrow  # sums of up to 36 bits
        return multiplier, np.minimum(shift, -5 if wide else 3).astype(np.int32)

    def _zero_point(self) -> int:
        return 0 if self.dtype == "int16" else super()._zero_point()

    def _range(self) -> tuple[int, int]:
        low, high = super()._range()
        return (256 * low, 256 * high + 255) if self.dtype == "int16" else (low, high)

    def _bias(self, channels: int, terms: int) -> Array:
        """Those of int16 layers have 64 bits mostly, of which now and then more than 32 count; scaled sums fit 32."""
        bias = super()._bias(channels, terms)
        if self.dtype == "int16" and not self.narrow:
            wide = bias.astype(np.int64)
            return wide.clip(-(1 << 26), 1 << 26) << 10 if self.integer(0, 9) == 0 else wide
        return bias

    def sum16(self, x: Any, y: Any, operator: type[Add] | type[Sub] = Add) -> Any:
        """Of int16: one input is on the coarser scale mostly."""
        (multiplier,), shift = self.random.integers(2**30, 2**31, 1), -self.integer(0, 9)
        scales = [(1 << 30, 0), (int(multiplier), shift)]
        first, second = scales if self.integer(0, 1) else scales[::-1]
        output = (int(self.random.integers(2**30, 2**31)), -self.integer(12, 16))
        return get(operator)(x, y, attrs=AddAttrs(15, 0, *first, 0, *second, 0, *output, *self._range()))

    def mul(self, x: Any, y: Any) -> Any:
        multiplier = int(self.random.choice([2**30, 2**31 - 1, *self.random.integers(2**30, 2**31, 3)]))
        shift = -self.integer(12, 16) if self.dtype == "int16" else -self.integer(0, 9)
        points = (self._zero_point(), self._zero_point(), self._zero_point())
        return get(Mul)(x, y, attrs=MulAttrs(*points, multiplier, shift, *self._range()))

    def channels(self) -> int:
        return self.integer(1, 9) * 4 if self.integer(0, 3) else self.integer(1, 21)

    def one_of(self, *choices: Any) -> Any:
        return choices[self.integer(0, len(choices) - 1)]

    def window3x3(self, x: Any, stride: int) -> Any:
        """A depthwise convolution as networks have them: rectified mostly, SAME padding mostly."""
        channels = int(x.ty.shape.values[3])
        zero_point, (least, most) = self._zero_point(), limits(self.dtype)
        low = zero_point if self.integer(0, 2) else least
        padding = (1, 1, 1, 1) if self.integer(0, 2) else tuple(self.integer(0, 2) for _ in range(4))
        attrs = Conv2dAttrs((stride, stride), padding, (1, 1), channels, self._zero_point(), zero_point, low, most)
        if self.dtype == "int8" and self.integer(0, 1):
            attrs = replace(attrs, output_zero_point=-128, clamp_min=-128)
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


def maximum(zoo: Zoo) -> Any:
    return (zoo.image(),), lambda x: zoo.pool(x, False)


def broadcast(zoo: Zoo) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """An image, and what is the same for some of its axes."""
    shape = zoo.image()
    return shape, tuple(extent if zoo.integer(0, 2) else 1 for extent in shape)


def subtraction(zoo: Zoo) -> Any:
    shapes = broadcast(zoo)
    return shapes[:: 1 if zoo.integer(0, 1) else -1], lambda x, y: zoo.add(x, y, zoo.one_of(Add, Sub))


def addition16(zoo: Zoo) -> Any:
    return broadcast(zoo), lambda x, y: zoo.sum16(x, y, zoo.one_of(Add, Sub))


def multiplication(zoo: Zoo) -> Any:
    shapes = broadcast(zoo)
    return shapes[:: 1 if zoo.integer(0, 1) else -1], zoo.mul


def info_of(given: Input) -> TensorInfo:
    return given if isinstance(given, TensorInfo) else TensorInfo(given, "int8")


def told(maker: Maker, **state: Any) -> Maker:
    """The same layer, drawn while the zoo has these attributes."""

    def made(zoo: Zoo) -> Any:
        shapes, layer = maker(zoo)

        def drawn(*variables: Any) -> Any:
            before = {name: getattr(zoo, name) for name in state}
            vars(zoo).update(state)
            call = layer(*variables)
            vars(zoo).update(before)
            return call

        return shapes, drawn

    return made


def int16(maker: Maker) -> Maker:
    """The same layer with activations of 16 bits."""

    def made(zoo: Zoo) -> Any:
        shapes, layer = told(maker, dtype="int16")(zoo)
        return tuple(TensorInfo(info_of(shape).shape, "int16") for shape in shapes), layer

    return made


def narrow16(maker: Maker) -> Maker:
    """The same layer with activations of 16 bits and sums of 32."""
    return told(int16(maker), narrow=True)


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


def transposed(zoo: Zoo) -> Any:
    """Doubled mostly; outputs are as large as their windows reach, or less, or more."""
    shape = zoo.image()
    strides = (zoo.integer(1, 3), zoo.integer(1, 3)) if zoo.integer(0, 3) == 0 else (2, 2)
    kernel, padding = (zoo.integer(1, 5), zoo.integer(1, 5)), (zoo.integer(0, 1), zoo.integer(0, 1))
    size = tuple(
        max(1, extent * stride + zoo.integer(-1, 1)) for extent, stride in zip(shape[1:3], strides, strict=True)
    )
    return _transposed(zoo, shape, kernel, strides, padding, size)


def further_down(zoo: Zoo) -> Any:
    """The windows of the first rows are cut off: nothing reads row 0 of the input."""
    return _transposed(zoo, (1, 6, 5, zoo.channels()), (3, 3), (2, 2), (4, 0), (8, 10))


def _transposed(zoo: Zoo, shape: Any, kernel: Any, strides: Any, padding: Any, size: Any) -> Any:
    channels = zoo.channels()

    def layer(x: Any) -> Any:
        points = (zoo._zero_point(), zoo._zero_point())
        attrs = TransposeConv2dAttrs(size, strides, padding, *points, *zoo._range(), zoo.rounding)
        weights = zoo._weights(channels, (channels, *kernel, shape[3]), kernel[0] * kernel[1] * shape[3])
        return get(TransposeConv2d)(x, *weights, attrs=attrs)

    return (shape,), layer


def matrices(zoo: Zoo) -> Any:
    """Of both orders, and now and then one right side for all."""
    rows, depth, columns, batch = zoo.channels(), zoo.integer(1, 40), zoo.channels(), zoo.integer(1, 3)
    flips = (zoo.integer(0, 4) == 0, bool(zoo.integer(0, 1)))
    lhs = (batch, depth, rows) if flips[0] else (batch, rows, depth)
    rhs = (columns, depth) if flips[1] else (depth, columns)
    points = (zoo._zero_point(), zoo._zero_point(), zoo._zero_point())
    attrs = BatchMatmulAttrs(*flips, *points, int(zoo.random.integers(2**30, 2**31)), -zoo.integer(6, 14))

    def layer(x: Any, y: Any) -> Any:
        wide = replace(attrs, lhs_zero_point=0, rhs_zero_point=0, output_zero_point=0, shift=attrs.shift - 8)
        return get(BatchMatmul)(x, y, attrs=wide if zoo.dtype == "int16" else attrs)

    return (lhs, (batch, *rhs) if zoo.integer(0, 2) else rhs), layer


def mean(zoo: Zoo) -> Any:
    """Over one axis or two, often more rows than 16 bits can add up."""
    shape = (zoo.integer(1, 2), zoo.integer(1, 20), zoo.integer(1, 20), zoo.channels())
    axes = zoo.one_of((1, 2), (1, 2), (1,), (2,), (3,))
    multiplier, shift = int(zoo.random.integers(2**30, 2**31)), -zoo.integer(0, 2)

    def layer(x: Any) -> Any:
        points = (zoo._zero_point(), zoo._zero_point())
        attrs = ReduceSumAttrs(axes, True, *points, multiplier, shift)
        return get(zoo.one_of(ReduceMean, ReduceMean, ReduceSum))(x, attrs=attrs)

    return (shape,), layer


def curve(zoo: Zoo) -> Any:
    table = zoo.int8(256)
    return (zoo.image(),), lambda x: get(Lookup)(x, constant(table), attrs=LookupAttrs("curve"))


def one_scale(zoo: Zoo) -> Any:
    """A fully connected layer whose units have one; the shape is not drawn, so that other layers keep theirs."""
    return told(lambda zoo: (((1, 37),), lambda x: zoo.fully_connected(x, 19)), alike=True)(zoo)


def single(maker: Maker) -> Maker:
    """The same layer, which rounds in single precision."""
    return told(maker, rounding=FLOAT32)


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
    maximum,
    subtraction,
    multiplication,
    int16(convolution),
    int16(same),
    int16(depthwise),
    int16(rows),
    int16(fully_connected),
    int16(addition16),
    int16(multiplication),
    int16(average),
    int16(maximum),
    dilated,
    grouped,
    single(grouped),
    large,
    single(large),
    one_channel,
    multiplied,
    matrices,
    mean,
    int16(mean),
    curve,
    transposed,
    single(transposed),
    int16(transposed),
    one_scale,
    single(one_scale),
    int16(grouped),
    int16(one_channel),
    int16(multiplied),
    narrow16(convolution),
    narrow16(rows),
    narrow16(fully_connected),
    narrow16(single(convolution)),
    int16(single(rows)),
    int16(single(fully_connected)),
    further_down,
    int16(matrices),
)
"""One network has a layer of each."""


def zoo_of(seed: int, makers: Sequence[Maker] = MAKERS, kind: type[Zoo] = Zoo) -> tuple[list[TensorInfo], Any]:
    """The inputs, and a module whose results are the layers'."""
    zoo = kind(seed)
    made = [maker(zoo) for maker in makers]
    infos = [info_of(own) for owns, _ in made for own in owns]
    builder = ModuleBuilder()
    variables = [relax.Var(f"x{i}", relax.TensorType(info.shape, info.dtype)) for i, info in enumerate(infos)]
    with builder.function(variables) as block:
        results, start = [], 0
        for number, (own, layer) in enumerate(made):
            results.append(block.emit(layer(*variables[start : start + len(own)]), f"layer{number}"))
            start += len(own)
        block.finish(relax.Tuple(results))
    return infos, builder.module


def samples_of(seed: int, infos: list[TensorInfo], count: int = 2) -> list[list[Array]]:
    """Random numbers; in the first sample the extremes alone."""
    generator = np.random.default_rng(seed)
    ends = [np.iinfo(info.dtype) for info in infos]
    first = [
        generator.choice([limit.min, limit.max], info.shape).astype(info.dtype)
        for info, limit in zip(infos, ends, strict=True)
    ]
    others = [
        [
            generator.integers(limit.min, limit.max + 1, info.shape).astype(info.dtype)
            for info, limit in zip(infos, ends, strict=True)
        ]
        for _ in range(max(0, count - 1))
    ]
    return [first, *others]
