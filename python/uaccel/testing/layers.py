"""Makes random layers, and regions of a few calls, for tests of accelerators without a model file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from uaccel.accelerator import Region
from uaccel.accelerator.region import region_of
from uaccel.model import Array, Quantisation, TensorInfo
from uaccel.ops.binary import Add, AddAttrs, Sub, WeightedSum, weighted_sum_attrs
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.exact import FLOAT32, TFLITE
from uaccel.ops.lookup import Lookup, LookupAttrs
from uaccel.ops.matmul import BatchMatmul, BatchMatmulAttrs, FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import NAMESPACE, REGISTRY, constant, get
from uaccel.ops.pool import (
    AveragePool2d,
    MaxPool2d,
    PoolAttrs,
    WindowAttrs,
    WindowMax,
    WindowMean,
    window_mean_operands,
)
from uaccel.ops.reduce import ReduceMean, ReduceSumAttrs, ScaledSum, scaled_sum_attrs
from uaccel.tvm_api import ModuleBuilder, main_bindings, relax
from uaccel.tvm_api.executor import Executor

# Random layers with any parameters that the operators allow, extreme ones among them.
#
# Multipliers and shifts mostly spread results over 8 bits; now and then they are at the ends of their ranges.


class Layers:
    """Makes random calls of operators: each method takes a variable and returns a call."""

    def __init__(self, seed: int, rounding: str = TFLITE) -> None:
        """``rounding`` is that of layers with weights, and of means."""
        self.random = np.random.default_rng(seed)
        self.rounding = rounding
        self.rests = False  # Whether multipliers may carry a rest that is added to the sum (float32 rounding).

    def integer(self, low: int, high: int) -> int:
        """Draws an integer from ``low`` to ``high``, both included."""
        return int(self.random.integers(low, high + 1))

    def int8(self, *shape: int) -> Array:
        return self.random.integers(-128, 128, shape).astype(np.int8)

    def conv2d(self, x: Any, *, groups: int = 1, channels: int = 0, zero_point: int | None = None) -> Any:
        """Makes a convolution; ``zero_point`` is that of the input, if it must have a certain value."""
        attrs, depth = self._conv_attrs(x, groups), shape_of(x)[3] // groups
        attrs = attrs if zero_point is None else replace(attrs, input_zero_point=zero_point)
        count = channels or groups * self.integer(1, 5)
        kernel = self._kernel(x, attrs)
        return get(Conv2d)(
            x, *self._weights(count, (count, *kernel, depth), kernel[0] * kernel[1] * depth), attrs=attrs
        )

    def same(self, x: Any, channels: int, kernel: int = 3) -> Any:
        """Makes a convolution whose output has the height and width of its input."""
        border = (kernel // 2,) * 4
        points = (self._zero_point(), self._zero_point())
        attrs = Conv2dAttrs((1, 1), border, (1, 1), 1, *points, *self._range(), self.rounding)
        shape = (channels, kernel, kernel, shape_of(x)[3])
        return get(Conv2d)(x, *self._weights(channels, shape, kernel * kernel * shape[3]), attrs=attrs)

    def depthwise(self, x: Any) -> Any:
        groups = shape_of(x)[3]
        attrs = self._conv_attrs(x, groups)
        kernel = self._kernel(x, attrs)
        count = groups * self.integer(1, 3)
        return get(DepthwiseConv2d)(x, *self._weights(count, (*kernel, count), kernel[0] * kernel[1]), attrs=attrs)

    def fully_connected(self, x: Any, units: int = 0) -> Any:
        depth, units = shape_of(x)[1], units or self.integer(1, 9)
        attrs = FullyConnectedAttrs(self._zero_point(), self._zero_point(), *self._range(), self.rounding)
        return get(FullyConnected)(x, *self._weights(units, (units, depth), depth), attrs=attrs)

    def batch_matmul(self, x: Any, y: Any, *, adj_x: bool, adj_y: bool) -> Any:
        """Makes a product of two tensors, one of which may be an array."""
        sides = [constant(value) if isinstance(value, np.ndarray) else value for value in (x, y)]
        (multiplier,), (shift,) = self._scales(1, shape_of(sides[0])[-2 if adj_x else -1])
        left, right = (int(self.random.choice([-128, 0, 127, self._zero_point()])) for _ in range(2))
        finish = (self._zero_point(), int(multiplier), int(shift), self.rounding)
        return get(BatchMatmul)(*sides, attrs=BatchMatmulAttrs(adj_x, adj_y, left, right, *finish))

    def add(self, x: Any, y: Any, operator: type[Add] | type[Sub] = Add) -> Any:
        """Makes an addition or subtraction; one operand may be an array."""
        multipliers, shifts = self._scales(3, 1)
        zero1, zero2, zero3 = (self._zero_point() for _ in range(3))
        scales = [(int(m), int(s)) for m, s in zip(multipliers, shifts, strict=True)]
        attrs = AddAttrs(20, zero1, *scales[0], zero2, *scales[1], zero3, *scales[2], *self._range())
        operands = [constant(value) if isinstance(value, np.ndarray) else value for value in (x, y)]
        return get(operator)(*operands, attrs=attrs)

    def weighted_sum(self, x: Any, y: Any) -> Any:
        """Makes a sum that is rounded once; one operand may be an array.

        Every other one has powers of two as scales, so that results in the middle of two integers are common."""
        halves = self.integer(0, 1)
        scales = [2.0 ** self.integer(-3, 0) if halves else self._scale() for _ in range(3)]
        first, second, output = (Quantisation((scale,), (self._zero_point(),)) for scale in scales)
        sign = self.integer(0, 1) * 2 - 1
        attrs = weighted_sum_attrs(first, second, output, "int8", sign=sign, clamp=self._range())
        operands = [constant(value) if isinstance(value, np.ndarray) else value for value in (x, y)]
        return get(WeightedSum)(*operands, attrs=attrs)

    def real_mean(self, x: Any, axes: tuple[int, ...] = (1, 2)) -> Any:
        """Makes a mean over rows and columns that is rounded once."""
        data, keep, clamp = TensorInfo(shape_of(x), "int8"), bool(self.integer(0, 1)), self._range()
        attrs = scaled_sum_attrs(data, *self._quantisations(), axes, keep_dims=keep, mean=True, clamp=clamp)
        return get(ScaledSum)(x, attrs=attrs)

    def window_mean(self, x: Any) -> Any:
        """Makes an average pooling that is rounded once; elements of the padding count."""
        windows = self._windows(x)
        shape = TensorInfo(shape_of(x), "int8")
        attrs, multipliers = window_mean_operands(shape, *self._quantisations(), windows, windows.padding)
        return get(WindowMean)(x, constant(multipliers), attrs=attrs)

    def window_max(self, x: Any) -> Any:
        return get(WindowMax)(x, attrs=self._windows(x))

    def lookup(self, x: Any) -> Any:
        return get(Lookup)(x, constant(self.int8(256)), attrs=LookupAttrs("any"))

    def _windows(self, x: Any) -> WindowAttrs:
        _, height, width, _ = shape_of(x)
        window = (self.integer(1, min(5, height)), self.integer(1, min(5, width)))
        padding = tuple(self.integer(0, window[i % 2] - 1) for i in range(4))
        room = [extent + padding[i] + padding[i + 2] for i, extent in enumerate((height, width))]
        dilation = tuple(self.integer(1, 2) if 2 * (window[i] - 1) < room[i] else 1 for i in (0, 1))
        return WindowAttrs(window, (self.integer(1, 3), self.integer(1, 3)), padding, dilation, *self._range())

    def _quantisations(self) -> tuple[Quantisation, Quantisation]:
        """Draws the quantisation of an input and an output, every other time with the same scale."""
        scale = self._scale()
        given = Quantisation((scale,), (self._zero_point(),))
        return given, Quantisation((scale if self.integer(0, 1) else self._scale(),), (self._zero_point(),))

    def _scale(self) -> float:
        return float(self.random.uniform(0.01, 0.05))

    def pool(self, x: Any, average: bool) -> Any:
        _, height, width, _ = shape_of(x)
        window = (self.integer(1, height), self.integer(1, width))
        strides = (self.integer(1, 3), self.integer(1, 3))
        padding = tuple(self.integer(0, window[i % 2] - 1) for i in range(4))
        attrs = PoolAttrs(window, strides, padding, *self._range())
        return get(AveragePool2d if average else MaxPool2d)(x, attrs=attrs)

    def mean(self, x: Any, axes: tuple[int, ...] = (1, 2)) -> Any:
        """Makes a mean over rows and columns."""
        (multiplier,), (shift,) = self._scales(1, 1)
        scale = (self._zero_point(), self._zero_point(), int(multiplier), min(30, int(shift) + 7))
        return get(ReduceMean)(x, attrs=ReduceSumAttrs(axes, bool(self.integer(0, 1)), *scale, self.rounding))

    def pad(self, x: Any, value: int) -> Any:
        """Makes a padding of rows and columns."""
        widths = [self.integer(0, 3) for _ in range(4)]
        return relax.op.nn.pad(x, pad_width=[0, 0, *widths, 0, 0], pad_value=value)

    def flat(self, x: Any) -> Any:
        shape = shape_of(x)
        return relax.op.reshape(x, (shape[0], int(np.prod(shape[1:]))))

    def _conv_attrs(self, x: Any, groups: int) -> Conv2dAttrs:
        strides = (self.integer(1, 3), self.integer(1, 3))
        padding = tuple(self.integer(0, 3) for _ in range(4))
        dilation = (self.integer(1, 2), self.integer(1, 2))
        points = (self._zero_point(), self._zero_point())
        return Conv2dAttrs(strides, padding, dilation, groups, *points, *self._range(), self.rounding)

    def _kernel(self, x: Any, attrs: Conv2dAttrs) -> tuple[int, int]:
        """Draws a kernel that fits into the padded input."""
        room = [shape_of(x)[1 + axis] + attrs.padding[axis] + attrs.padding[axis + 2] for axis in (0, 1)]
        largest = [(extent - 1) // dilation + 1 for extent, dilation in zip(room, attrs.dilation, strict=True)]
        return self.integer(1, min(4, largest[0])), self.integer(1, min(4, largest[1]))

    def _weights(self, channels: int, shape: tuple[int, ...], terms: int) -> list[Any]:
        """Makes weights, bias, multipliers and shifts.

        A rest in the multiplier is only allowed for sums within 2**24, where float32 is exact to the last bit. A bias
        below 2**23 leaves half of that for the products."""
        bias = self._bias(channels, terms)
        self.rests = bool(np.abs(bias).max() < 1 << 23)
        arrays = [self.int8(*shape), bias, *self._scales(channels, terms)]
        self.rests = False
        return [constant(array) for array in arrays]

    def _bias(self, channels: int, terms: int) -> Array:
        """Draws a bias as large as sums of so many products, and now and then at the ends of its range."""
        bias = self.random.integers(-terms * 4000, terms * 4000 + 1, channels).astype(np.int32)
        if self.integer(0, 9) == 0:
            bias[0] = self.random.choice([-(2**31), 2**31 - 1])
        return bias

    def _scales(self, count: int, terms: int) -> tuple[Array, Array]:
        """Draws multipliers and shifts. For float32 rounding a multiplier of 24 bits is at least 2**30; its low 7 bits
        are 0 or, if allowed, a rest."""
        multiplier, shift = self._any_scales(count, terms)
        if self.rounding == FLOAT32:
            multiplier = (np.maximum(multiplier, 1 << 30) & (-1 if self.rests else ~127)).astype(np.int32)
        return multiplier, shift

    def _any_scales(self, count: int, terms: int) -> tuple[Array, Array]:
        """Draws multipliers and shifts that spread results over 8 bits, and one in eight times extreme ones.

        A sum of n random products is sqrt(n) times as large as one; hence half the logarithm of ``terms``."""
        if self.integer(0, 7) == 0:
            multiplier = self.random.choice([0, 1, 2**30, 2**31 - 1], count)
            return multiplier.astype(np.int32), self.random.integers(-31, 31, count).astype(np.int32)
        multiplier = self.random.integers(2**30, 2**31, count)
        shift = -7 - np.floor(np.log2(terms) / 2) + self.random.integers(-1, 2, count)
        return multiplier.astype(np.int32), shift.astype(np.int32)

    def _zero_point(self) -> int:
        return self.integer(-128, 127)

    def _range(self) -> tuple[int, int]:
        if self.integer(0, 1):
            return -128, 127
        low = self.integer(-128, 126)
        return low, self.integer(low, 127)


def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(int(extent) for extent in x.ty.shape.values)


# Regions of a few Relax calls, as an accelerator gets them.


@dataclass(frozen=True)
class Example:
    """Holds a region and the module that says what it means."""

    region: Region
    module: Any

    def expected(self, inputs: Sequence[Array]) -> list[Array]:
        return Executor(self.module).run(inputs)


def example(shapes: Sequence[tuple[int, ...]], build: Callable[..., Any], dtype: str = "int8") -> Example:
    """Makes a region. ``build(block, x0, x1, ...)`` binds calls with ``block.emit(call, name)`` and returns results."""
    builder = ModuleBuilder()
    parameters = [relax.Var(f"x{i}", relax.TensorType(shape, dtype)) for i, shape in enumerate(shapes)]
    with builder.function(parameters) as block:
        results = build(block, *parameters)
        block.finish(relax.Tuple(results))
    variables, bindings = main_bindings(builder.module)
    names = [var.name for var in results]
    outputs = [var for name in names for var, _ in bindings if var.name == name]
    return Example(region_of(bindings, variables, outputs), builder.module)


def operator(name: str) -> Any:
    """The integer operator ``uaccel.<name>``: ``operator("add").attributes(...)`` are attributes of it, and
    ``operator("add")(x, y, attrs=...)`` is a call."""
    return REGISTRY[f"{NAMESPACE}{name}"]
