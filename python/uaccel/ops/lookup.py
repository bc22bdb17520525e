"""Defines functions of one tensor that are looked up, and computes their tables.

A function of 8 bits is a table of 256 entries. One of 16 bits is cut into segments, most of which are polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import need
from uaccel.model import Array, Quantisation, TensorInfo
from uaccel.ops import exact, fixedpoint
from uaccel.ops.exact import const
from uaccel.ops.kernel import Argument, Constant, Input, Kernel, Output, portable, same
from uaccel.ops.operator import Attributes, EachAtOnce, Site, require
from uaccel.tvm_api import tirx

# A function of one 8-bit variable, as a table of its 256 values.

ENTRIES = 256
BYTES = ("int8", "uint8")


class LookupAttrs(Attributes):
    """``function`` names what the table holds, for reports and for accelerators that have that function."""

    function: str


class Lookup(EachAtOnce[LookupAttrs]):
    """Looks up table[input]; the table is indexed by the input's bits as an unsigned number."""

    name = "lookup"
    hides_differences = True
    arguments = ("input", "table")
    takes = BYTES
    gives: ClassVar[tuple[str, ...]] = BYTES  # The types that the table may have.

    def infer(self, attrs: LookupAttrs, *inputs: TensorInfo) -> TensorInfo:
        table = inputs[1]
        fits = table.shape == (ENTRIES,) and table.dtype in self.gives
        require(fits, f"{self.name}: the table is {table}, wanted {ENTRIES} of {' or '.join(self.gives)}")
        return replace(super().infer(attrs, *inputs), dtype=table.dtype)

    def element(self, value: Any, attrs: LookupAttrs, *tables: Any) -> Any:
        return tables[0](value.astype("uint8").astype("int32"))

    def kernels(self, site: Site[LookupAttrs]) -> Sequence[Kernel]:
        return [lookup_kernel(site.output.elements, site.operands[1].value)]


def lookup_kernel(elements: int, table: Array) -> Kernel:
    arguments: tuple[Argument, ...] = (Input(0), Constant("table", table), Output(0))
    parameters = {"elements": elements}
    return portable("uaccel_lookup", "uaccel_lookup", parameters, arguments, inplace=(0,))


def by_bits(values: Array) -> Array:
    """The values for -128..127 in the order of a table: first those for 0..127."""
    return np.roll(values, ENTRIES // 2)


def stored_values(dtype: str) -> NDArray[np.int64]:
    """The stored values of an 8-bit type in the order of a table's entries: sorted by their bits."""
    return np.arange(ENTRIES).astype(np.uint8).view(dtype).astype(np.int64)


def worth_a_table(elements: int) -> bool:
    """A table takes more flash than the arithmetic that it replaces; fewer elements than entries do not repay it."""
    return elements >= ENTRIES


# A function of one 16-bit variable: for each of its 65,536 values the real result, rounded once.
#
# Its values are cut into segments of one length. In most of them a polynomial of the third degree gives every result;
# the others have their results in a table. ``segments_of`` finds both.

VALUES: Final = 1 << 16
COLUMNS: Final = 5
# Stands in place of the cube's factor where the results lie in the table, from the first column's number on.
STORED: Final = -(1 << 31)


class Lookup16Attrs(LookupAttrs):
    """``function`` names it, for reports. A segment has ``2**bits`` values; factors have ``fraction`` bits after the
    point."""

    bits: int
    fraction: int
    clamp_min: int
    clamp_max: int


class Lookup16(EachAtOnce[Lookup16Attrs]):
    """Evaluates polynomials: ``segments`` has rows of whole part, fraction and three factors, ``stored`` the results of
    segments without a polynomial."""

    name = "lookup16"
    hides_differences = True
    arguments = ("input", "segments", "stored")
    takes = ("int16",)

    def infer(self, attrs: Lookup16Attrs, *inputs: TensorInfo) -> TensorInfo:
        _, segments, stored = inputs
        wanted = TensorInfo((VALUES >> attrs.bits, COLUMNS), "int32")
        require(segments == wanted, f"lookup16: the segments are {segments}, wanted {wanted}")
        fits = stored.dtype == "int16" and len(stored.shape) == 1
        require(fits, f"lookup16: the table is {stored}, wanted int16 with one axis")
        return super().infer(attrs, *inputs)

    def element(self, value: Any, attrs: Lookup16Attrs, *tables: Any) -> Any:
        segments, stored = tables
        bits, last = const(attrs.bits), const(int(stored.shape[0]) - 1)
        place = exact.i64(value) + const(VALUES // 2)
        segment, t = place >> bits, place & const((1 << attrs.bits) - 1)
        whole, rest, line, square, cube = (exact.i64(segments(segment, column)) for column in range(COLUMNS))
        total = ((((((cube * t) >> bits) + square) * t >> bits) + line) * t >> bits) + rest
        rounded = whole + ((total + const(1 << (attrs.fraction - 1))) >> const(attrs.fraction))
        clamped = tirx.max(tirx.min(rounded, const(attrs.clamp_max)), const(attrs.clamp_min))
        there = exact.i64(stored(tirx.max(tirx.min(whole + t, last), const(0))))
        return tirx.Select(cube == const(STORED), there, clamped).astype("int16")

    def kernels(self, site: Site[Lookup16Attrs]) -> Sequence[Kernel]:
        parameters = {
            "elements": site.output.elements,
            **same(site.attrs, "bits", "fraction", "clamp_min", "clamp_max"),
        }
        return self.one_call(site, parameters, "", inplace=(0,))


# A function of one 8-bit variable whose results stay real, as a table of 256 single-precision numbers.


class FloatLookup(Lookup):
    """Looks up table[input], a float; the table is indexed by the input's bits as an unsigned number."""

    name = "float_lookup"
    gives = ("float32",)

    def kernels(self, site: Site[LookupAttrs]) -> Sequence[Kernel]:
        return self.one_call(site, {"elements": site.output.elements}, "")


# Tables for TFLite models: functions of one 8-bit variable as 256 values, for the stored inputs -128 to 127.
#
# Functions for which the reference has an integer kernel are computed as there, others as a float kernel would.

Table = NDArray[np.int8]
Values = NDArray[np.int64]
RealArray = Array

STORED_INT8 = np.arange(-128, 128, dtype=np.int64)
SIGMOID_INTEGER_BITS = 4
RSQRT_BITS = 20  # bits of fraction that rsqrt keeps between its two scalings
BEYOND = 1e6  # more steps than any 8-bit range has
HALF_SQRT_2 = 1518500250  # sqrt(1/2) * 2**31


def clipped(values: Values) -> Table:
    return np.clip(values, -128, 127).astype(np.int8)


def logistic(given: Quantisation) -> Table:
    """1 / (1 + exp(-x)); the output has scale 1/256 and zero point -128, hence the shift from 31 bits to 8."""
    x, end = _sigmoid_argument(given)
    tail = fixedpoint.one_over_one_plus(fixedpoint.exp_of_negative(-np.abs(x), SIGMOID_INTEGER_BITS))
    q31 = np.where(x > 0, tail, np.where(x < 0, fixedpoint.ONE - tail, 1 << 30))
    return _with_ends(fixedpoint.rounding_divide_by_power(q31, 23) - 128, end)


def tanh(given: Quantisation) -> Table:
    """tanh(x); the output has scale 1/128 and zero point 0."""
    x, end = _sigmoid_argument(given)
    # -|x| with one integer bit more is -2|x|
    tail = fixedpoint.one_minus_over_one_plus(fixedpoint.exp_of_negative(-np.abs(x), SIGMOID_INTEGER_BITS + 1))
    return _with_ends(fixedpoint.rounding_divide_by_power(np.sign(x) * tail, 24), end)


def _sigmoid_argument(given: Quantisation) -> tuple[Values, Values]:
    """The inputs with 27 bits of fraction, and -1 or 1 where they exceed the range of 4 integer bits."""
    mantissa, shift = math.frexp(given.scale * (1 << (31 - SIGMOID_INTEGER_BITS)))
    multiplier = math.floor(mantissa * (1 << 31) + 0.5)
    largest = float((1 << SIGMOID_INTEGER_BITS) - 1) * (1 << (31 - SIGMOID_INTEGER_BITS))
    radius = math.floor(math.ldexp(largest, -shift))
    value = STORED_INT8 - given.zero_point
    end = np.where(value <= -radius, -1, np.where(value >= radius, 1, 0))
    inside = np.where(end == 0, value, 0)
    return fixedpoint.multiply_by_quantized_multiplier(inside, multiplier, shift), end


def _with_ends(values: Values, end: Values) -> Table:
    """-128 and 127 where the input is beyond range."""
    return clipped(np.where(end == 0, values, np.where(end < 0, -128, 127)))


def of_reals(given: Quantisation, wanted: Quantisation, function: Callable[[RealArray], RealArray]) -> Table:
    """The table of dequantising, the function in single precision, and quantising; NaN becomes the lowest value."""
    real = np.float32(given.scale) * (STORED_INT8 - given.zero_point).astype(np.float32)
    with np.errstate(all="ignore"):
        quotient = function(real.astype(np.float64)).astype(np.float32) * (np.float32(1) / np.float32(wanted.scale))
    steps = np.nan_to_num(np.clip(quotient, -BEYOND, BEYOND), nan=-BEYOND)
    return clipped(_rounded(steps).astype(np.int64) + wanted.zero_point)


def _rounded(value: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rounds halves away from zero."""
    whole = np.trunc(value)
    return np.asarray(whole + np.trunc(2 * (value - whole)), np.float32)


def elu_table(x: RealArray) -> RealArray:
    """x where it is positive, exp(x) - 1 where not, the exponential rounded to single precision."""
    exponential = np.exp(np.minimum(x, 0)).astype(np.float32)
    return np.where(x < 0, exponential - np.float32(1), x)


@dataclass(frozen=True)
class HardSwishFactors:
    """Holds two factors as 15-bit fractions and powers of two: to the output's scale, and to units of 3 / 2**15.

    Both take the input 7 bits finer than it is stored.
    """

    output_multiplier: int
    output_shift: int
    ramp_multiplier: int
    ramp_shift: int


def hard_swish(given: Quantisation, wanted: Quantisation, factors: HardSwishFactors) -> Table:
    """x * clip(x + 3, 0, 6) / 6 in the reference's 16 bits, whose last sum wraps.

    ``ramp`` saturates at -1..1 as x does at -3..3; (ramp + 1) / 2 is the factor of x. A ramp shift to the left is done
    before the product but for one bit, and that bit after it: each part saturates as in the reference.
    """
    fine = (STORED_INT8 - given.zero_point) << 7
    scaled = _high_mul16(fine, factors.output_multiplier)
    ramp = fine
    if factors.ramp_shift > 0:
        ramp = _saturated16(ramp << (factors.ramp_shift - 1))
    ramp = _high_mul16(ramp, factors.ramp_multiplier)
    if factors.ramp_shift > 0:
        ramp = _saturated16(ramp << 1)
    ramp = fixedpoint.rounding_divide_by_power(ramp, max(0, -factors.ramp_shift))
    product = ((ramp + (1 << 15)) >> 1) * scaled
    towards_zero = np.sign(product) * (np.abs(product) >> 15)
    value = fixedpoint.rounding_divide_by_power(towards_zero, -factors.output_shift) + wanted.zero_point
    return clipped(value.astype(np.int16).astype(np.int64))


def _high_mul16(a: Values, b: int) -> Values:
    """round(a * b / 2**15), halves upwards, saturated."""
    return np.asarray(np.minimum((a * b + (1 << 14)) >> 15, (1 << 15) - 1), np.int64)


def _saturated16(value: Values) -> Values:
    return np.clip(value, -(1 << 15), (1 << 15) - 1)


def sqrt(given: Quantisation, wanted: Quantisation) -> Table:
    """Square roots in single precision, cut off to whole steps; the lowest value for x < 0, where the reference stops
    with an error."""
    real = np.float32(given.scale) * (STORED_INT8 - given.zero_point).astype(np.float32)
    steps = np.trunc(np.sqrt(np.maximum(real, 0)) / np.float32(wanted.scale))
    return clipped(np.where(real < 0, -BEYOND, np.minimum(steps, BEYOND) + wanted.zero_point).astype(np.int64))


def rsqrt(given: Quantisation, wanted: Quantisation) -> Table:
    """1 / sqrt(x); the largest value for x <= 0, where the reference stops with an error for x < 0."""
    multiplier, shift = fixedpoint.quantize_multiplier(1.0 / (math.sqrt(given.scale) * wanted.scale))
    value = STORED_INT8 - given.zero_point
    roots = [_inverse_square_root(max(int(v), 1)) for v in value]
    root, root_shift = (np.array(column, np.int64) for column in zip(*roots, strict=True))
    fine = fixedpoint.multiply_by_quantized_multiplier(1, root, root_shift + RSQRT_BITS)
    scaled = fixedpoint.multiply_by_quantized_multiplier(fine, multiplier, shift - RSQRT_BITS)
    return clipped(np.where(value > 0, scaled + wanted.zero_point, 127))


def _inverse_square_root(value: int) -> tuple[int, int]:
    """Multiplier and shift of 1 / sqrt(value), 1 <= value < 2**29: five of Newton's steps with 28 bits of fraction.

    ``pairs`` shifts of two bits bring the value to w * 2**29 with w in 1/4..1; ``half`` is w / 2. From x = 1 the steps
    x * (1.5 - w / 2 * x**2) approach 1 / sqrt(w), which leaves an error below 2**-19 for w = 1/4, the worst case. Then
    1 / sqrt(value) = x * 2**-0.5 * 2**(pairs - 14). As x with 28 bits of fraction is a multiplier worth x / 8, the
    shift is pairs - 11.
    """
    if value == 1:
        return fixedpoint.ONE, 0
    pairs = (31 - value.bit_length()) // 2 - 1
    half = fixedpoint.rounding_divide_by_power(value << 2 * pairs >> 1, 1)
    x = np.array(1 << 28, np.int64)
    for _ in range(5):
        square = fixedpoint.rounding_doubling_high_mul(x, x)
        cube = fixedpoint.saturated(fixedpoint.rounding_doubling_high_mul(square, x) << 6)
        x = fixedpoint.saturated(
            (fixedpoint.rounding_doubling_high_mul(3 << 27, x) - fixedpoint.rounding_doubling_high_mul(half, cube)) << 3
        )
    root = int(fixedpoint.rounding_doubling_high_mul(x, HALF_SQRT_2))
    return (root << pairs - 11, 0) if pairs > 11 else (root, pairs - 11)


# Tables for models that mean float32: a function of one 8-bit variable is dequantised, computed, quantised again.

Reals = NDArray[np.float32]
Wide = NDArray[np.float64]
Function = Callable[[Reals], Reals]


def table_float32(
    function: Function,
    given: Quantisation,
    wanted: Quantisation,
    *,
    input_dtype: str = "int8",
    output_dtype: str = "int8",
) -> NDArray[np.int8] | NDArray[np.uint8]:
    """The table for ``uaccel.lookup``, indexed by the input's bits, as ONNX defines each step.

    The quotient is rounded half to even and saturated; what is no number becomes the lowest value, as in ONNX Runtime.
    """
    low, high = exact.limits(output_dtype)
    with np.errstate(all="ignore"):
        real = (stored_values(input_dtype) - given.zero_point).astype(np.float32) * np.float32(given.scale)
        steps = np.asarray(function(real), np.float32) / np.float32(wanted.scale)
    steps = np.where(np.isnan(steps), -np.inf, steps).astype(np.float64)
    stored = np.rint(np.clip(steps, low - wanted.zero_point, high - wanted.zero_point)) + wanted.zero_point
    return np.asarray(stored, output_dtype)


def leaky_relu(alpha: float) -> Function:
    return lambda x: np.where(x < 0, x * np.float32(alpha), x)


def clip(low: float, high: float) -> Function:
    return lambda x: np.asarray(np.clip(x, np.float32(low), np.float32(high)))


# The search for the polynomials and tables of ``uaccel.lookup16``: all 65,536 results are right, in few bytes.
#
# Each length of segments is tried with each number of bits after the point. A polynomial is accepted only if integer
# arithmetic, evaluated here as the kernel does, gives every result of its segment; other segments are stored. The try
# that takes the fewest bytes wins, and of equal ones the finest fraction.

SegmentReals = NDArray[np.float64]
Ints = NDArray[np.int64]

LENGTHS: Final = (6, 7, 8, 9, 10)  # Bits of a segment: 64 to 1,024 values.
FRACTIONS: Final = (22, 19, 16)  # Bits after the point: fewer leave room for steeper segments.
FURTHEST: Final = 1 << 18  # Steps: results saturate at 2**15, so farther real results are the same.
LARGEST: Final = 1 << 15  # Bytes that a function may take.
# Added to the fraction in turn, in its last bits, where results lie near the middle between two steps.
NUDGES: Final = (0, 1, -1, 2, -2, 4, -4)


@dataclass(frozen=True, eq=False)
class _Try:
    """Holds the rows of all segments, and for which of them the polynomial gives every result."""

    rows: Ints
    right: NDArray[np.bool_]
    bits: int
    fraction: int

    @property
    def size(self) -> int:
        return self.rows.size * 4 + int((~self.right).sum()) * (2 << self.bits)


def segments_of(steps: SegmentReals, low: int, high: int, function: str) -> tuple[Lookup16Attrs, Array, Array]:
    """Attributes, segments and stored results of a function.

    ``steps`` has for each value from -32768 on the real result in steps of the output, zero point included.
    """
    bounded = np.clip(np.nan_to_num(steps, nan=-FURTHEST), -FURTHEST, FURTHEST)
    results = np.clip(np.rint(bounded), low, high).astype(np.int64)
    tries = (_tried(bounded, results, bits, fraction, (low, high)) for bits, fraction in product(LENGTHS, FRACTIONS))
    best = min(tries, key=lambda found: found.size)
    need(best.size <= LARGEST, f"its results of 16 bits would take {best.size} bytes, at most {LARGEST} are worth it")
    there = np.flatnonzero(~best.right)
    best.rows[there] = 0
    best.rows[there, 0] = np.arange(len(there)) << best.bits
    best.rows[there, COLUMNS - 1] = STORED
    stored = results.reshape(-1, 1 << best.bits)[there].reshape(-1)
    attrs = Lookup16Attrs(function, best.bits, best.fraction, low, high)
    return attrs, best.rows.astype(np.int32), (stored if len(stored) else np.zeros(1)).astype(np.int16)


def _tried(steps: SegmentReals, results: Ints, bits: int, fraction: int, bounds: tuple[int, int]) -> _Try:
    """Fits each segment by least squares, rounds its factors, and tries the nudges until all results are right.

    Places in a segment count as 0 to 1 here, so no power of a place exceeds one: while the factors' magnitudes sum to
    less than 2**30, no sum of the kernel leaves 32 bits. The whole part of the constant is held apart, for more bits.
    """
    places = np.arange(1 << bits) / (1 << bits)
    powers = np.stack([places**power for power in range(4)], axis=1)
    factors = steps.reshape(-1, 1 << bits) @ np.linalg.pinv(powers).T
    whole = np.floor(factors[:, 0]).astype(np.int64)
    factors[:, 0] -= whole
    fixed = np.rint(np.ldexp(factors, fraction))
    fits = np.abs(fixed).sum(axis=1) < 2**30
    rows = np.concatenate([whole[:, np.newaxis], np.where(fits[:, np.newaxis], fixed, 0).astype(np.int64)], axis=1)
    wanted, right = results.reshape(-1, 1 << bits), np.zeros(len(rows), bool)
    for nudge in NUDGES:
        left = np.flatnonzero(fits & ~right)
        trial = rows[left] + np.array([0, nudge, 0, 0, 0])
        good = (_evaluated(trial, bits, fraction, bounds) == wanted[left]).all(axis=1)
        rows[left[good]], right[left[good]] = trial[good], True
    return _Try(rows, right, bits, fraction)


def _evaluated(rows: Ints, bits: int, fraction: int, bounds: tuple[int, int]) -> Ints:
    """The results of polynomials by Horner's rule, bit for bit as ``Lookup16`` means them."""
    places = np.arange(1 << bits)
    whole, rest, line, square, cube = (rows[:, column, np.newaxis] for column in range(COLUMNS))
    total = ((((((cube * places) >> bits) + square) * places >> bits) + line) * places >> bits) + rest
    return np.clip(whole + ((total + (1 << (fraction - 1))) >> fraction), *bounds)
