"""One layer of each operator that rounds once, of any shape and quantisation, with what it ought to compute."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ops.rounded_once import Case, Quantised
from support.device.hostlib import Array
from uaccel.model import TensorInfo
from uaccel.ops.activation import FunctionProduct, PreluOnce, function_product_operands, prelu_once_operands
from uaccel.ops.binary import Product, WeightedSum, product_attrs, weighted_sum_attrs
from uaccel.ops.normalize import LayerNorm, layer_norm_operands
from uaccel.ops.operator import constant, get
from uaccel.ops.pool import WindowAttrs, WindowMax, WindowMean, window_mean_operands
from uaccel.ops.reduce import ScaledSum, scaled_sum_attrs
from uaccel.ops.resize import ResizeOnce, positions, resize_once_operands
from uaccel.ops.softmax import SoftmaxOnce, softmax_once_operands

NONE = (0, 0, 0, 0)
Shape = tuple[int, ...]
KNOWN: dict[str, Callable[[NDArray[np.float64]], Any]] = {
    "identity": lambda x: x,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "exp": np.exp,
    "reciprocal": lambda x: 1 / np.where(x, x, 1e-12),
    "nothing": np.zeros_like,
}


def binary(
    operator: str,
    scales: tuple[float, float, float] = (0.11, 0.043, 0.12),
    points: tuple[int, int, int] = (3, -5, 7),
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((1, 4, 4, 5), (1, 4, 4, 5)),
    dtype: str = "int8",
    clamp: tuple[int, int] | None = None,
) -> Case:
    pairs = zip(shapes, scales, points, strict=False)
    first, second = (Quantised(shape, scale, point, dtype) for shape, scale, point in pairs)
    output = Quantised(np.broadcast_shapes(*shapes), scales[2], points[2], dtype)
    given = first.quantisation, second.quantisation, output.quantisation
    sign = -1 if operator == "Sub" else 1

    def total(a: Array, b: Array) -> Array:
        return np.asarray(a * (first.fraction / output.fraction) + b * (sign * second.fraction / output.fraction))

    def product(a: Array, b: Array) -> Array:
        return np.asarray(a * b * (first.fraction * second.fraction / output.fraction))

    def build(a: Any, b: Any) -> Any:
        if operator == "Mul":
            return get(Product)(a, b, attrs=product_attrs(*given, dtype, clamp=clamp))
        return get(WeightedSum)(a, b, attrs=weighted_sum_attrs(*given, dtype, sign=sign, clamp=clamp))

    return Case((first, second), output, build, product if operator == "Mul" else total, operator, clamp=clamp)


def gate(
    functions: tuple[str, str] = ("identity", "sigmoid"),
    scales: tuple[float, float, float] = (0.04, 0.06, 0.03),
    points: tuple[int, int, int] = (3, -5, 7),
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((2, 4, 40), (2, 4, 40)),
    clamp: tuple[int, int] = (-128, 127),
) -> Case:
    """A function of one tensor times a function of another."""
    given = [Quantised(*of) for of in zip(shapes, scales, points, strict=False)]
    output = Quantised(np.broadcast_shapes(*shapes), scales[2], points[2])

    def step(which: int, values: Array) -> NDArray[np.float64]:
        return np.asarray(KNOWN[functions[which]](values.astype(np.float64) * float(given[which].fraction)))

    stored = np.arange(256).astype(np.uint8).view(np.int8).astype(np.int64)
    tables = [step(which, stored - x.zero_point) for which, x in enumerate(given)]
    tables[1] = tables[1] / float(output.fraction)
    linear = functions[0] == "identity"
    second = tables[1] * float(given[0].fraction) if linear else tables[1]
    attrs, *operands = function_product_operands(
        given[0].zero_point if linear else tables[0], second, output.zero_point, clamp, "_".join(functions)
    )

    def real(a: Array, b: Array) -> Array:
        product = np.asarray(step(0, a) * step(1, b) / float(output.fraction))
        return np.array([Fraction(value) for value in product.ravel().tolist()], object).reshape(product.shape)

    def build(a: Any, b: Any) -> Any:
        return get(FunctionProduct)(a, b, *map(constant, operands), attrs=attrs)

    return Case(tuple(given), output, build, real, "", clamp=clamp)


def slopes(
    *values: float,
    scales: tuple[float, float] = (0.05, 0.04),
    points: tuple[int, int] = (-3, 9),
    dtype: str = "int8",
    clamp: tuple[int, int] | None = None,
) -> Case:
    """PReLU, a slope for each of the last axis."""
    shape = (3, 20, len(values))
    x, y = (Quantised(shape, scale, point, dtype) for scale, point in zip(scales, points, strict=True))
    given = np.array(values, np.float32)
    limits = clamp or (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    attrs, factors = prelu_once_operands(x.quantisation, y.quantisation, dtype, given, limits)

    def real(centred: Array) -> Array:
        below = np.array([Fraction(float(value)) for value in given], object)
        factor = (centred >= 0) + (centred < 0) * below
        return np.asarray(centred * factor * (x.fraction / y.fraction), object)

    def build(v: Any) -> Any:
        return get(PreluOnce)(v, constant(factors), attrs=attrs)

    return Case((x,), y, build, real, "PRelu", arrays=(given,), clamp=clamp)


def reduction(
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    *,
    mean: bool = True,
    keep: bool = True,
    scales: tuple[float, float] = (0.05, 0.031),
    points: tuple[int, int] = (-3, 9),
    dtype: str = "int8",
    clamp: tuple[int, int] | None = None,
) -> Case:
    x = Quantised(shape, scales[0], points[0], dtype)
    taken = tuple(axis % len(shape) for axis in axes)
    result = np.zeros(shape).sum(axis=taken, keepdims=keep).shape
    y = Quantised(result, scales[1], points[1], dtype)
    count = int(np.prod([shape[axis] for axis in taken])) if mean else 1
    info = TensorInfo(shape, dtype)
    attrs = scaled_sum_attrs(info, x.quantisation, y.quantisation, axes, keep_dims=keep, mean=mean, clamp=clamp)

    def real(values: Array) -> Array:
        return np.asarray(values.sum(axis=taken, keepdims=keep) * (x.fraction / y.fraction / count), object)

    return Case(
        (x,),
        y,
        lambda v: get(ScaledSum)(v, attrs=attrs),
        real,
        "ReduceMean" if mean else "ReduceSum",
        {"keepdims": int(keep)},
        (np.array(axes, np.int64),),
        clamp,
    )


@dataclass(frozen=True)
class Pool:
    """``padding`` as the model has it; ``ceil`` more rows and columns below and behind."""

    shape: tuple[int, int, int, int] = (1, 7, 6, 3)
    window: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = NONE
    dilation: tuple[int, int] = (1, 1)
    include: bool = False
    ceil: tuple[int, int] = (0, 0)
    scales: tuple[float, float] = (0.05, 0.031)
    points: tuple[int, int] = (-3, 9)
    dtype: str = "int8"
    maximum: bool = False

    @property
    def wide(self) -> tuple[int, int, int, int]:
        top, left, bottom, right = self.padding
        return top, left, bottom + self.ceil[0], right + self.ceil[1]

    def taps(self, axis: int) -> list[list[int]]:
        """For each position of the window the places of its taps, along one axis."""
        before, after = self.wide[axis], self.wide[axis + 2]
        reach = (self.window[axis] - 1) * self.dilation[axis]
        starts = range(-before, self.shape[axis + 1] + after - reach, self.strides[axis])
        return [[start + tap * self.dilation[axis] for tap in range(self.window[axis])] for start in starts]

    def _inside(self, place: int, axis: int, *, padded: bool) -> bool:
        before, after = (self.padding[axis], self.padding[axis + 2]) if padded else (0, 0)
        return -before <= place < self.shape[axis + 1] + after

    def real(self, values: Array) -> Array:
        rows, columns = self.taps(0), self.taps(1)
        ratio = Fraction(float(np.float32(self.scales[0]))) / Fraction(float(np.float32(self.scales[1])))
        result = np.zeros((self.shape[0], len(rows), len(columns), self.shape[3]), object)
        for y, x in np.ndindex(len(rows), len(columns)):
            ys = [place for place in rows[y] if self._inside(place, 0, padded=False)]
            xs = [place for place in columns[x] if self._inside(place, 1, padded=False)]
            sides = [sum(self._inside(place, 0, padded=self.include) for place in rows[y])]
            sides += [sum(self._inside(place, 1, padded=self.include) for place in columns[x])]
            part = values[:, ys][:, :, xs]
            if self.maximum:
                result[:, y, x] = part.max(axis=(1, 2)) * Fraction(1) if part.size else Fraction(-1000)
            else:
                result[:, y, x] = part.sum(axis=(1, 2)) * (ratio / (sides[0] * sides[1]))
        return result

    @property
    def case(self) -> Case:
        x = Quantised(self.shape, self.scales[0], self.points[0], self.dtype)
        output = (self.shape[0], len(self.taps(0)), len(self.taps(1)), self.shape[3])
        same = self.maximum
        y = Quantised(output, self.scales[not same], self.points[not same], self.dtype)
        low, high = np.iinfo(self.dtype).min, np.iinfo(self.dtype).max
        windows = WindowAttrs(self.window, self.strides, self.wide, self.dilation, low, high)

        def build(v: Any) -> Any:
            if self.maximum:
                return get(WindowMax)(v, attrs=windows)
            counted = self.padding if self.include else NONE
            info = TensorInfo(self.shape, self.dtype)
            attrs, multipliers = window_mean_operands(info, x.quantisation, y.quantisation, windows, counted)
            return get(WindowMean)(v, constant(multipliers), attrs=attrs)

        attributes: dict[str, Any] = {
            "kernel_shape": self.window,
            "strides": self.strides,
            "pads": self.padding,
            "dilations": self.dilation,
            "ceil_mode": int(self.ceil != (0, 0)),
        }
        if not self.maximum:
            attributes["count_include_pad"] = int(self.include)
        name = "MaxPool" if self.maximum else "AveragePool"
        return Case((x,), y, build, self.real, name, attributes, channels_first=True)


def resize(
    given: tuple[int, int, int, int], wanted: tuple[int, int], mode: str, scales: tuple[float, float] = (0.05, 0.031),
    points: tuple[int, int] = (-3, 9), dtype: str = "int8",
) -> Case:  # fmt: skip
    """Bilinear; places and weights by ONNX's words, one image at a time."""
    x = Quantised(given, scales[0], points[0], dtype)
    y = Quantised((given[0], *wanted, given[3]), scales[1], points[1], dtype)
    limits = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    places = [positions(mode, before, after) for before, after in zip(given[1:3], wanted, strict=True)]
    attrs, tables = resize_once_operands(places, x.quantisation, y.quantisation, dtype, limits)

    def along(axis: int) -> list[list[tuple[int, Fraction]]]:
        found, extent, count = [], given[1 + axis], wanted[axis]
        for place in range(count):
            at = Fraction(2 * place + 1, 2) * Fraction(extent, count) - Fraction(1, 2)
            if mode == "asymmetric":
                at = Fraction(place * extent, count)
            if mode == "align_corners":
                at = Fraction(place * (extent - 1), max(1, count - 1))
            low = at.numerator // at.denominator
            pairs = [(low, 1 - (at - low)), (low + 1, at - low)]
            found.append([(min(max(pixel, 0), extent - 1), weight) for pixel, weight in pairs])
        return found

    def real(values: Array) -> Array:
        result = np.zeros(y.shape, object)
        for row, pixels in enumerate(along(0)):
            for column, others in enumerate(along(1)):
                for (i, down), (j, right) in itertools.product(pixels, others):
                    result[:, row, column] += values[:, i, j] * (down * right)
        return np.asarray(result * (x.fraction / y.fraction), object)

    return Case((x,), y, lambda v: get(ResizeOnce)(v, *map(constant, tables), attrs=attrs), real, "Resize")


def softmax(
    shape: Shape = (6, 10), given: tuple[float, int] = (0.1, 4), wanted: tuple[float, int] = (1 / 256, -128),
    dtype: str = "int8", input_dtype: str = "int8",
) -> Case:  # fmt: skip
    x, y = Quantised(shape, *given, input_dtype), Quantised(shape, *wanted, dtype)
    attrs, table = softmax_once_operands(x.quantisation, y.quantisation, dtype, input_dtype)

    def real(values: Array) -> Array:
        scaled = values.astype(np.float64) * float(x.fraction)
        exponentials = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
        steps = exponentials / exponentials.sum(axis=-1, keepdims=True) / float(y.fraction)
        return np.array([Fraction(step) for step in steps.ravel().tolist()], object).reshape(shape)

    return Case((x,), y, lambda v: get(SoftmaxOnce)(v, constant(table), attrs=attrs), real, "Softmax", {"axis": -1})


def norm(
    shape: Shape = (6, 32),
    given: tuple[float, int] = (0.05, 4),
    wanted: tuple[float, int] = (0.03, -11),
    *,
    epsilon: float = 1e-5,
    gammas: tuple[float, float] = (0.3, 1.6),
    betas: tuple[float, float] = (-0.7, 0.7),
    dtype: str = "int8",
) -> Case:
    x, y = Quantised(shape, *given, dtype), Quantised(shape, *wanted, dtype)
    random = np.random.default_rng(shape[-1])
    gamma, beta = (random.uniform(*ends, shape[-1]).astype(np.float32) for ends in (gammas, betas))
    limits = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    numbers = x.quantisation, y.quantisation, gamma, beta, epsilon
    attrs, slopes, offsets = layer_norm_operands(*numbers, dtype=dtype, clamp=limits)

    def real(values: Array) -> Array:
        reals = values.astype(np.float64) * float(x.fraction)
        distance = reals - reals.mean(axis=-1, keepdims=True)
        variance = np.square(distance).mean(axis=-1, keepdims=True)
        steps = (distance / np.sqrt(variance + np.float32(epsilon)) * gamma + beta) / float(y.fraction)
        return np.array([Fraction(step) for step in steps.ravel().tolist()], object).reshape(shape)

    attributes = {"axis": -1, "epsilon": epsilon}
    return Case(
        (x,),
        y,
        lambda v: get(LayerNorm)(v, constant(slopes), constant(offsets), attrs=attrs),
        real,
        "LayerNormalization",
        attributes,
        (gamma, beta),
    )
