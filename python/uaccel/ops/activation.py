"""Defines activations: PReLU, leaky ReLU, logistic, tanh and 1 / sqrt, and the product of functions of two tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import need
from uaccel.model import Array, Quantisation, TensorInfo
from uaccel.ops import exact
from uaccel.ops.binary import BinaryOperator, broadcast_shape, element_at, infer_broadcast, loop_fields, places_shared
from uaccel.ops.exact import RoundedOnce, Scaled, const
from uaccel.ops.fixedpoint import LONGEST_SHIFT, fixed_ratios, multiply_by_quantized_multiplier, scale_fraction
from uaccel.ops.kernel import Kernel, same
from uaccel.ops.lookup import ENTRIES, lookup_kernel, stored_values, worth_a_table
from uaccel.ops.normalize import inverse_root
from uaccel.ops.operator import Attributes, Each, EachAtOnce, IntegerOperator, Site, require
from uaccel.tvm_api import te, tirx
from uaccel.tvm_api.tir import dtype_of

# TFLite's PRELU: a tensor holds the factors of negative values.


class PreluAttrs(Attributes):
    """``positive_...`` is input scale / output scale, ``negative_...`` that times the scale of alpha."""

    input_zero_point: int
    alpha_zero_point: int
    output_zero_point: int
    positive_multiplier: int
    positive_shift: int
    negative_multiplier: int
    negative_shift: int
    clamp_min: int
    clamp_max: int


class Prelu(BinaryOperator[PreluAttrs]):
    """Computes x for x >= 0, x * alpha for x < 0; alpha is int8 beside int8 and int16."""

    name = "prelu"
    arguments = ("input", "alpha")

    def second_dtypes(self, dtype: str) -> tuple[str, ...]:
        return ("int8",)

    def either(self, value: Any, attrs: PreluAttrs, number: str) -> Any:
        zero_point = attrs.input_zero_point if number == "1" else attrs.alpha_zero_point
        return exact.i32(value) - exact.const(zero_point, "int32")

    def combine(self, x: Any, y: Any, attrs: PreluAttrs, dtype: str) -> Any:
        positive = exact.requantize_const(x, attrs.positive_multiplier, attrs.positive_shift)
        negative = exact.requantize_const(x * y, attrs.negative_multiplier, attrs.negative_shift)
        scaled = tirx.Select(x >= exact.const(0, "int32"), positive, negative)
        return exact.finish(scaled, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, dtype)


# PReLU whose real result is rounded once, half to even: each slope becomes a multiplier of the same shift.

BITS = 30  # of the largest multiplier


class PreluOnceAttrs(RoundedOnce):
    """``multiplier / 2**shift`` is input scale / output scale; the second input has the multipliers of negative x."""

    zero_point: int
    multiplier: int


class PreluOnce(BinaryOperator[PreluOnceAttrs]):
    """Computes x * multiplier for x >= 0, x * slope for x < 0; slopes are int32."""

    name = "prelu_once"
    arguments = ("input", "slopes")

    def second_dtypes(self, dtype: str) -> tuple[str, ...]:
        return ("int32",)

    def either(self, value: Any, attrs: PreluOnceAttrs, number: str) -> Any:
        return exact.i64(value) - exact.const(attrs.zero_point if number == "1" else 0)

    def combine(self, x: Any, y: Any, attrs: PreluOnceAttrs, dtype: str) -> Any:
        factor = tirx.Select(x >= exact.const(0), exact.const(attrs.multiplier), y)
        return exact.rounded_once(x * factor, attrs, dtype)


def prelu_once_operands(
    given: Quantisation, output: Quantisation, dtype: str, slopes: NDArray[np.float32], clamp: tuple[int, int]
) -> tuple[PreluOnceAttrs, Array]:
    """Attributes, and the slopes as multipliers."""
    need(np.isfinite(slopes).all(), "one of its slopes is no number")
    ratio = scale_fraction(given.scale) / scale_fraction(output.scale)
    ratios = fixed_ratios([ratio, *(ratio * Fraction(slope) for slope in slopes.ravel().tolist())], BITS)
    low, high = exact.limits(dtype)
    multiplier, *others = ratios.multipliers
    stage = RoundedOnce.stage(ratios, high - low, output.zero_point, dtype, clamp)
    attrs = PreluOnceAttrs(zero_point=given.zero_point, multiplier=multiplier, **stage)
    return attrs, np.array(others, np.int32).reshape(slopes.shape)


# One factor for positive values and another for negative ones: LEAKY_RELU and ABS.


class TwoSlopesAttrs(Attributes):
    """``negative_multiplier`` may be negative."""

    input_zero_point: int
    output_zero_point: int
    positive_multiplier: int
    positive_shift: int
    negative_multiplier: int
    negative_shift: int


class TwoSlopes(EachAtOnce[TwoSlopesAttrs]):
    """Computes x * positive factor for x >= 0, x * negative factor for x < 0, of int8 and int16."""

    name = "two_slopes"
    takes = ("int8", "int16")

    def element(self, value: Any, attrs: TwoSlopesAttrs, *tables: Any) -> Any:
        dtype, centred = dtype_of(value), exact.i32(value) - exact.const(attrs.input_zero_point, "int32")
        positive = exact.requantize_const(centred, attrs.positive_multiplier, attrs.positive_shift)
        negative = exact.requantize_const(centred, attrs.negative_multiplier, attrs.negative_shift)
        scaled = tirx.Select(centred >= exact.const(0, "int32"), positive, negative)
        return exact.finish(scaled, attrs.output_zero_point, *exact.limits(dtype), dtype)

    def kernels(self, site: Site[TwoSlopesAttrs]) -> Sequence[Kernel]:
        low, high = exact.limits(site.output.dtype)
        parameters = {"elements": site.output.elements} | asdict(site.attrs) | {"clamp_min": low, "clamp_max": high}
        arithmetic = self.one_call(site, parameters, inplace=(0,))
        if site.output.dtype == "int8" and worth_a_table(site.output.elements):
            return [lookup_kernel(site.output.elements, _table(site.attrs)), *arithmetic]
        return arithmetic


def _table(attrs: TwoSlopesAttrs) -> Array:
    value = stored_values("int8") - attrs.input_zero_point
    positive = multiply_by_quantized_multiplier(value, attrs.positive_multiplier, attrs.positive_shift)
    negative = multiply_by_quantized_multiplier(value, attrs.negative_multiplier, attrs.negative_shift)
    scaled = np.where(value >= 0, positive, negative) + attrs.output_zero_point
    return np.asarray(np.clip(scaled, -128, 127), np.int8)


# Logistic and tanh of 16-bit activations: a table of the logistic function with straight lines between its points.
#
# The table has the function at i / 24 for i from 0 on; negative inputs follow from 1 - f(-x), tanh from 2 * f(2x) - 1.

POINTS = 256
STEPS_PER_UNIT = 24
SATURATED = 65535  # the last point, the largest of 16 bits


def sigmoid_points() -> NDArray[np.uint16]:
    """1 / (1 + exp(-i / 24)) in units of 2**-16, raised so that the chord between two points errs as little in the
    middle as at its ends; the last point is where the function saturates."""
    index = np.arange(POINTS - 1)
    chord = (_sigmoid(index) + _sigmoid(index + 1)) / 2
    points = np.floor(_sigmoid(index) + (_sigmoid(index + 0.5) - chord) / 2 + 0.5)
    return np.append(points, SATURATED).astype(np.uint16)


def _sigmoid(index: Array) -> NDArray[np.float64]:
    return np.asarray((SATURATED + 1) / (1 + np.exp(-index / STEPS_PER_UNIT)), np.float64)


@dataclass(frozen=True)
class Curve:
    """Describes how a function follows from the table of the logistic one.

    The magnitude of the scaled input has ``fraction_bits`` between two points; the interpolated value r has them
    too. The output is (r - origin) / 2**shift for inputs from zero, (mirror - r) / 2**shift below.
    """

    fraction_bits: int
    saturated: int  # r beyond the last point
    origin: int
    mirror: int
    shift: int

    def interpolate(self, point: Callable[[Any], Any], magnitude: Any) -> Any:
        """The value on the straight line between two entries of the table, which ``point`` gives."""
        segment = magnitude >> _i32(self.fraction_bits)
        first = tirx.min(segment, _i32(POINTS - 2))
        rest = magnitude & _i32((1 << self.fraction_bits) - 1)
        low, high = exact.i32(point(first)), exact.i32(point(first + 1))
        value = (low << _i32(self.fraction_bits)) + rest * (high - low)
        return tirx.Select(segment >= _i32(POINTS - 1), _i32(self.saturated), value)

    def output(self, scaled: Any, interpolated: Any) -> Any:
        """The result in units of 2**-15, from a scaled input and the table's value for its magnitude."""
        half = _i32(1 << self.shift >> 1)
        above, below = interpolated - _i32(self.origin), _i32(self.mirror - 1) - interpolated
        result = (tirx.Select(scaled >= _i32(0), above, below) + half) >> _i32(self.shift)
        return result.astype("int16")


class Sigmoid16Attrs(Attributes):
    """``multiplier / 2**right_shift`` brings the input to units of 1 / (3 * 4096): 2**9 of them lie between points."""

    multiplier: int
    right_shift: int


def table_argument(value: Any, multiplier: int, right_shift: int) -> Any:
    """An input in the table's units."""
    return (exact.i32(value) * _i32(multiplier) + _i32(1 << right_shift >> 1)) >> _i32(right_shift)


class _Sigmoid16(Each[Sigmoid16Attrs]):
    hides_differences = True
    arguments = ("input", "points")
    takes = ("int16",)
    curve: ClassVar[Curve]

    def infer(self, attrs: Sigmoid16Attrs, *inputs: TensorInfo) -> TensorInfo:
        require(inputs[1] == TensorInfo((POINTS,), "uint16"), f"{self.name}: the table is {inputs[1]}")
        return super().infer(attrs, *inputs)

    def meaning(self, attrs: Sigmoid16Attrs, data: Any, points: Any) -> Any:
        curve = self.curve

        def scale(*index: Any) -> Any:
            return table_argument(data(*index), attrs.multiplier, attrs.right_shift)

        scaled = te.compute(data.shape, scale, name="scaled")
        magnitude = te.compute(data.shape, lambda *index: tirx.abs(scaled(*index)), name="magnitude")

        def interpolate(*index: Any) -> Any:
            return curve.interpolate(points, magnitude(*index))

        interpolated = te.compute(data.shape, interpolate, name="interpolated")

        def output(*index: Any) -> Any:
            return curve.output(scaled(*index), interpolated(*index))

        return te.compute(data.shape, output, name=self.name)

    def kernels(self, site: Site[Sigmoid16Attrs]) -> Sequence[Kernel]:
        parameters = {"elements": site.output.elements} | asdict(site.attrs) | asdict(self.curve)
        return self.one_call(site, parameters, "", struct="uaccel_sigmoid16", inplace=(0,))


def _i32(value: int) -> Any:
    return exact.const(value, "int32")


class Logistic16(_Sigmoid16):
    """Computes 1 / (1 + exp(-x)) in units of 2**-15."""

    name = "logistic16"
    curve = Curve(fraction_bits=9, saturated=0x7FFF << 10, origin=0, mirror=1 << 25, shift=10)


class Tanh16(_Sigmoid16):
    """Computes tanh(x) = 2 / (1 + exp(-2x)) - 1 in units of 2**-15; a bit fewer between points stands for 2x."""

    name = "tanh16"
    curve = Curve(fraction_bits=8, saturated=0xFFFF << 8, origin=1 << 23, mirror=1 << 23, shift=8)


# 1 / sqrt(x) of 16-bit activations.

FINE: Final = 20  # Bits of a root after the point.


class Rsqrt16Attrs(Scaled):
    """``multiplier * 2**(shift - 31)`` brings the root of a stored value to the output's scale."""


class Rsqrt16(Each[Rsqrt16Attrs]):
    """Computes 1 / sqrt(x); the largest value for x <= 0, where the reference stops with an error for x < 0."""

    name = "rsqrt16"
    takes = ("int16",)

    def meaning(self, attrs: Rsqrt16Attrs, data: Any) -> Any:
        value = te.compute(data.shape, lambda *i: tirx.max(exact.i64(data(*i)), const(1)), name="value")
        multiplier, shift = inverse_root(value)

        def precise(*index: Any) -> Any:
            return exact.requantize(const(1), multiplier(*index), shift(*index) + const(FINE))

        fine = te.compute(data.shape, precise, name="fine")

        def element(*index: Any) -> Any:
            scaled = exact.requantize_const(fine(*index), attrs.multiplier, attrs.shift - FINE)
            result = tirx.Select(data(*index) > const(0, "int16"), scaled, const(32767))
            return exact.finish(result, 0, -32768, 32767, "int16")

        return te.compute(data.shape, element, name="rsqrt16")

    def kernels(self, site: Site[Rsqrt16Attrs]) -> Sequence[Kernel]:
        parameters = {"elements": site.output.elements, **same(site.attrs, "multiplier", "shift")}
        return self.one_call(site, parameters, struct="uaccel_rsqrt", inplace=(0,))


# Product of a function of one 8-bit tensor and a function of another, the real result rounded once, half to even.

FACTOR_BITS = 30  # of each factor: a product takes 61, with its sign
WIDE_BITS = 52  # of a factor, in two words, for a tensor itself of 9 bits with its sign: a product takes 61, too
WORD = 32
FURTHEST = 1024  # steps from the zero point, beyond the range of int8 with any zero point: products saturate
NEAR = 2.0**-20  # steps: where products err by at most this, they count as ties if they are as near to the middle
NOISE = 2.0**-8  # steps by which the rounded entries of tables may make products wrong, else the model is refused
MOST_BITS = 31  # after the point of each factor: a product then has 62, the most that round_half_even can shift by


class FunctionProductAttrs(Attributes):
    """``shift`` is how many bits after the point a product of two entries has; within ``tolerance`` of the middle it
    is a tie. ``functions`` names the two functions for reports."""

    shift: int
    tolerance: int
    output_zero_point: int
    clamp_min: int
    clamp_max: int
    functions: str


class FunctionProduct(IntegerOperator[FunctionProductAttrs]):
    """Multiplies table1[input1] by table2[input2]; the inputs' bits index the tables. A first table of one entry is a
    zero point instead. The second may have 64 bits: low words, as signed numbers, and then high words."""

    name = "function_product"
    arguments = ("input1", "input2", "table1", "table2")

    def infer(self, attrs: FunctionProductAttrs, *inputs: TensorInfo) -> TensorInfo:
        first, second, table1, table2 = inputs
        require(first.dtype == second.dtype == "int8", f"{self.name}: {first} and {second}, wanted two of int8")
        one, entries, words = (TensorInfo((count,), "int32") for count in (1, ENTRIES, 2 * ENTRIES))
        known = (table1, table2) in ((one, entries), (entries, entries), (one, words))
        require(known, f"{self.name}: the tables are {table1} and {table2}, wanted {ENTRIES} of int32")
        return TensorInfo(infer_broadcast(first, second, self.name), "int8")

    def meaning(self, attrs: FunctionProductAttrs, *inputs: Any) -> Any:
        *data, table1, table2 = inputs
        shapes = [tuple(int(extent) for extent in tensor.shape) for tensor in data]

        def element(*index: Any) -> Any:
            x, y = (element_at(tensor, shape, index) for tensor, shape in zip(data, shapes, strict=True))
            first = exact.i32(x) - table1(0) if int(table1.shape[0]) == 1 else table1(_place(x))
            second = exact.i64(table2(_place(y)))
            if int(table2.shape[0]) > ENTRIES:
                second = second + exact.i64(table2(_place(y) + ENTRIES)) * exact.const(1 << WORD)
            return exact.rounded_once(exact.i64(first) * second, attrs, "int8")

        return te.compute(broadcast_shape(*shapes), element, name=self.name)

    def kernels(self, site: Site[FunctionProductAttrs]) -> Sequence[Kernel]:
        first, second, table1, table2 = site.operands
        parameters = asdict(site.attrs) | loop_fields(first.info.shape, second.info.shape)
        del parameters["functions"]
        parameters["entries1"] = table1.info.elements
        parameters["words2"] = table2.info.elements // ENTRIES
        return self.one_call(site, parameters, inplace=places_shared(site, 2))


def _place(value: Any) -> Any:
    return value.astype("uint8").astype("int32")


def function_product_operands(
    first: NDArray[np.float64] | int,
    second: NDArray[np.float64],
    output_zero_point: int,
    clamp: tuple[int, int],
    functions: str,
) -> tuple[FunctionProductAttrs, Array, Array]:
    """Attributes and tables. ``second`` has the real values of the second factor by the bits of its input, so that the
    product counts steps of the output; ``first`` has those of the first, or the zero point of a tensor itself.

    An entry errs by one half at most, so a product by (|entry1| + |entry2| + 1) / 2: ``wrong``. A tensor itself is
    exact, so that only its 255 steps count there.
    """
    if isinstance(first, int):
        table1, largest = np.array([first], np.int32), 255.0
        table2, shift = _fixed(second, np.ones(1), FACTOR_BITS, MOST_BITS)
        if largest / 2.0 ** (shift + 1) > NEAR:
            table2, shift = _fixed(second, np.ones(1), WIDE_BITS, LONGEST_SHIFT)
        wrong = (largest + 1) / 2
    else:
        table1, bits1 = _fixed(np.asarray(first), second, FACTOR_BITS, MOST_BITS)
        table2, bits2 = _fixed(second, np.asarray(first), FACTOR_BITS, MOST_BITS)
        shift = bits1 + bits2
        wrong = (float(np.abs(table1).max()) + float(np.abs(table2).max()) + 1) / 2
    need(shift >= 1, f"a factor reaches {2.0 ** (FACTOR_BITS - shift):.3g} steps of the output's scale, too far")
    steps = wrong / 2.0**shift
    need(steps <= NOISE, f"its factors have so wide ranges that 32 bits leave them {steps:.3g} steps")
    tolerance = math.ceil(wrong) if steps <= NEAR else 0
    attrs = FunctionProductAttrs(shift, tolerance, output_zero_point, *clamp, functions)
    return attrs, table1, table2 if table2.dtype == np.int32 else _words(table2)


def _fixed(values: NDArray[np.float64], others: NDArray[np.float64], size: int, most: int) -> tuple[Array, int]:
    """Values with as many bits after the point as ``size`` has room for, ``most`` at most, and how many these are.

    A value is cut off, infinity too, where even the least of the ``others`` but zero takes the product ``FURTHEST``
    steps away: it saturates all the same. Zero times infinity becomes zero.
    """
    need(not np.isnan(values).any(), "a function of one of its inputs has a value that is no number")
    least = np.abs(others[np.isfinite(others) & (others != 0)]).min(initial=np.inf)
    held = np.clip(values, -FURTHEST / least, FURTHEST / least)
    bits = min(size - int(np.frexp(np.abs(held).max())[1]), most)
    return np.rint(np.ldexp(held, bits)).astype(np.int32 if size == FACTOR_BITS else np.int64), bits


def _words(values: Array) -> Array:
    """Numbers of 64 bits as low words and high words, both signed."""
    low = values.astype(np.int32)
    return np.concatenate([low, (values - low) >> WORD]).astype(np.int32)
