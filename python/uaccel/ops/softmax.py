"""Defines softmax and its logarithm: as TFLite computes them for 8 and 16 bits, and rounded once for other models.

All begin with the differences to a row's largest element, so that no exponential exceeds one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Quantisation, TensorInfo
from uaccel.ops import exact, fixedpoint
from uaccel.ops.exact import Scaled, const, high_mul, rounding_divide_by_power
from uaccel.ops.kernel import Kernel, dtype_suffix, same
from uaccel.ops.operator import Attributes, IntegerOperator, Site, require
from uaccel.tvm_api import te, tirx

# The steps that softmax and its logarithm share, as TE tensors with one value a row or element.
#
# Each step is a TE stage of its own, since an expression would be copied into each of its uses.

# Integer bits of the sum of exponentials. Each is one at most and has 31 - 12 = 19 bits after the point in the sum, so
# fewer than 2**12 elements keep a row's sum below 2**31 for certain.
SUM_BITS = 12
LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1


A = TypeVar("A", bound=Attributes)


def row_fields(data: TensorInfo) -> dict[str, int]:
    """The rows along the last axis, and their length, as fields of a kernel's structure."""
    return {"rows": data.elements // data.shape[-1], "depth": data.shape[-1]}


class OfRows(IntegerOperator[A]):
    """Works on rows, along the last axis, with tables: usually of exponentials for all differences in a row."""

    hides_differences = True
    arguments: ClassVar[tuple[str, ...]] = ("input", "exponentials")
    tables: ClassVar[Mapping[str, TensorInfo]] = {"int8": TensorInfo((256,), "int32")}  # By the input's type.

    def infer(self, attrs: A, data: TensorInfo, *tables: TensorInfo) -> TensorInfo:
        require(len(data.shape) > 0, f"{self.name}: the input is a scalar")
        require(data.dtype in self.tables, f"{self.name}: input is {data.dtype}, wanted {' or '.join(self.tables)}")
        for table in tables:
            wanted = self.tables[data.dtype]
            require(table == wanted, f"{self.name}: the table is {table}, wanted {wanted}")
        return TensorInfo(data.shape, getattr(attrs, "output_dtype", data.dtype))

    def by_table(self, site: Site[A], more: dict[str, int], types: str) -> list[Kernel]:
        """The kernel; of a table for int8 it reads what lies before the last zeros, and takes these for zero."""
        data, table = site.operands[0].info, site.operands[1].value
        used = table[: 1 + np.flatnonzero(table)[-1]] if data.dtype == "int8" else table
        rows = row_fields(data) | {"entries": len(used)}
        inplace = (0,) if site.output.dtype == data.dtype else ()
        return self.one_call(site, rows | more, types, held={"exponentials": used}, inplace=inplace)


def differences(data: Any) -> Any:
    """How far each element lies below the largest of its row, as int32."""
    k = te.reduce_axis((0, int(data.shape[-1])), name="k")
    rows = data.shape[:-1]
    largest = te.compute(rows, lambda *row: te.max(exact.i32(data(*row, k)), axis=k), name="largest")
    return te.compute(data.shape, lambda *i: largest(*i[:-1]) - exact.i32(data(*i)), name="differences")


def row_sums(values: Any, convert: Callable[[Any], Any] = exact.i64) -> Any:
    """The sum of what each element of a row is converted to."""
    k = te.reduce_axis((0, int(values.shape[-1])), name="k")
    return te.compute(values.shape[:-1], lambda *row: te.sum(convert(values(*row, k)), axis=k), name="sums")


def exponential_sums(difference: Any, table: Any) -> Any:
    """Each row's sum of exponentials, 19 bits after the point."""
    return row_sums(difference, lambda d: rounding_divide_by_power(exact.i64(table(d)), const(SUM_BITS)))


def leading_zeros(value: Any) -> Any:
    """The leading zeros of a 32-bit number that is held in 64 bits: how many powers 2**0 to 2**31 are larger."""
    return sum(
        (tirx.Select(value < const(1 << bit), const(1), const(0)) for bit in range(1, 32)),
        start=tirx.Select(value < const(1), const(1), const(0)),
    )


def shift_left(value: Any, bits: int) -> Any:
    """Shifts left and saturates to 32 bits."""
    return exact.clamp(value << const(bits), LOWEST, HIGHEST)


def reciprocal_of(normal: Any) -> Any:
    """2**62 / x for x from 2**31 to 2**32: three steps of Newton's division.

    ``_reciprocal_of_one_plus`` in ``fixedpoint`` explains them. The estimate, 2**32 / x with 29 bits after the point,
    becomes 2**62 / x by one more bit.
    """
    shape = normal.shape
    half = te.compute(shape, lambda *row: normal(*row) >> const(1), name="half")

    def first(*row: Any) -> Any:
        """48/17 - 32/17 * half"""
        return const(1515870810) + high_mul(half(*row), const(-1010580540))

    estimate = te.compute(shape, first, name="estimate")
    for step in range(3):
        estimate = _newton_step(half, estimate, step)
    return te.compute(shape, lambda *row: shift_left(estimate(*row), 1), name="reciprocal")


def _newton_step(half: Any, estimate: Any, step: int) -> Any:
    """estimate + estimate * (1 - half * estimate), 29 bits after the point."""

    def element(*row: Any) -> Any:
        error = const(1 << 29) - high_mul(half(*row), estimate(*row))
        return estimate(*row) + shift_left(high_mul(estimate(*row), error), 2)

    return te.compute(half.shape, element, name=f"newton_{step}")


# Softmax along the last axis of 8-bit activations.


class SoftmaxAttrs(Scaled):
    """``multiplier * 2**(shift - 31)`` is beta * input scale in units of 2**-26: what the table was made from."""

    output_dtype: str


class Softmax(OfRows[SoftmaxAttrs]):
    """Computes softmax of int8 along the last axis; the output covers 0..1 with the whole range of int8 or int16.

    ``exponentials[d]`` is exp(-d * beta * input scale) * 2**31 as the reference computes it in fixed point: there
    are only 256 differences to the largest element of a row. The sum, normalised to 2**31..2**32 by ``headroom`` bits,
    is 2**(12 - headroom) times a number from one to two, whose inverse ``scale`` has 31 bits after the point. So a
    share is shifted right by 12 - headroom for that power of two, and by 31 - bits to the output's bits.
    """

    name = "softmax"

    def meaning(self, attrs: SoftmaxAttrs, data: Any, table: Any) -> Any:
        difference = differences(data)
        sums = exponential_sums(difference, table)
        headroom = te.compute(sums.shape, lambda *row: leading_zeros(sums(*row)), name="headroom")
        normal = te.compute(sums.shape, lambda *row: sums(*row) << headroom(*row), name="normal")
        scale = reciprocal_of(normal)
        low, high = exact.limits(attrs.output_dtype)
        bits = 8 * TensorInfo((), attrs.output_dtype).itemsize

        def share(*index: Any) -> Any:
            return high_mul(scale(*index[:-1]), exact.i64(table(difference(*index))))

        shares = te.compute(data.shape, share, name="shares")

        def output(*index: Any) -> Any:
            exponent = const(SUM_BITS + 31 - bits) - headroom(*index[:-1])
            rounded = rounding_divide_by_power(shares(*index), exponent)
            return exact.finish(rounded, low, low, high, attrs.output_dtype)

        return te.compute(data.shape, output, name="softmax")

    def kernels(self, site: Site[SoftmaxAttrs]) -> Sequence[Kernel]:
        """Looks exponentials up in a table instead of computing them in fixed point at run time.

        It takes at most 1 KB of flash and usually half of it; the code that it replaces takes as much and would
        run a dozen 64-bit multiplications for every element, twice.
        """
        return self.by_table(site, {}, f"s8_{dtype_suffix(site.output.dtype)}")


# Softmax along the last axis of 16-bit activations, by two interpolated tables as in the reference.


class Softmax16Attrs(Scaled):
    """``multiplier * 2**(shift - 31)`` turns input differences into steps of the exponential's table."""


def interpolated(table: Any, value: Any) -> Any:
    """Reads a table of 513 points at a 16-bit value: 9 bits choose the segment, 7 the place in it."""
    index = const(256, "int32") + (value >> const(7, "int32"))
    base = exact.i32(table(index))
    slope = exact.i32(table(index + const(1, "int32"))) - base
    place = value & const(127, "int32")
    return base + ((slope * place + const(64, "int32")) >> const(7, "int32"))


class Softmax16(OfRows[Softmax16Attrs]):
    """Computes softmax of int16 along the last axis; 0..32767 stands for 0..1. Both tables hold 513 points."""

    name = "softmax16"
    arguments = ("input", "exponential", "reciprocal")
    tables: ClassVar[Mapping[str, TensorInfo]] = {"int16": TensorInfo((513,), "int16")}

    def meaning(self, attrs: Softmax16Attrs, data: Any, exponential_table: Any, reciprocal_table: Any) -> Any:
        difference = differences(data)

        def exponential(*index: Any) -> Any:
            scaled = exact.requantize_const(-difference(*index), attrs.multiplier, attrs.shift)
            centred = exact.clamp(scaled + const(32767), -32768, 32767)
            return interpolated(exponential_table, exact.i32(centred))

        rows, exponentials = data.shape[:-1], te.compute(data.shape, exponential, name="exponentials")
        sums = row_sums(exponentials)
        headroom = te.compute(rows, lambda *row: leading_zeros(sums(*row)), name="headroom")

        def reciprocal(*row: Any) -> Any:
            """1 / (1 + x) for the x in 0..1 that the sum's bits below its leading one make.

            The fraction is x plus one, with 16 bits after the point. Less 2**16 + 2**15, the table's index is centred.
            """
            fraction = ((sums(*row) << (headroom(*row) - const(1))) + const(1 << 13)) >> const(14)
            centred = exact.clamp(fraction - const((1 << 15) + (1 << 16)), -32768, 32767)
            return exact.i64(interpolated(reciprocal_table, exact.i32(centred)))

        reciprocals = te.compute(rows, reciprocal, name="reciprocals")

        def output(*index: Any) -> Any:
            shift = const(31) - headroom(*index[:-1])
            product = exact.i64(exponentials(*index)) * reciprocals(*index[:-1])
            share = (product + (const(1) << (shift - const(1)))) >> shift
            return exact.clamp(share, 0, 32767).astype("int16")

        return te.compute(data.shape, output, name="softmax")

    def kernels(self, site: Site[Softmax16Attrs]) -> Sequence[Kernel]:
        parameters = row_fields(site.operands[0].info) | same(site.attrs, "multiplier", "shift")
        return self.one_call(site, parameters, function="uaccel_softmax", inplace=(0,))


# Softmax along the last axis whose real result is rounded once, half to even.
#
# No product leaves 63 bits. The largest element contributes exp(0) = 2**30, so a row's sum, shifted to 31 bits, lies in
# 2**30..2**31. The dividend ``inverse * 2**31`` has 62 bits, so the quotient is below 2**32 and keeps 30 bits or more.
# An exponential of at most 2**30 times that is below 2**62.

ENTRIES = 256
EXPONENTIAL_BITS = 30  # after the point; the largest is one
RECIPROCAL_BITS = 31  # by which the dividend is raised
INVERSE_BITS = 31  # of 1 / output scale


class SoftmaxOnceAttrs(Attributes):
    """``inverse / 2**shift`` is 1 / output scale."""

    inverse: int
    shift: int
    output_zero_point: int
    output_dtype: str


class SoftmaxOnce(OfRows[SoftmaxOnceAttrs]):
    """Computes softmax along the last axis; ``exponentials[d]`` is exp(-d * input scale) * 2**30, rounded.

    For int16 a difference is 256 * upper + lower: the table begins with the exponentials of 256 * d, those of d follow.

    The sum of a row's exponentials is exact. One division a row gives its reciprocal, with 30 bits and more.
    """

    name = "softmax_once"
    tables: ClassVar[Mapping[str, TensorInfo]] = {**OfRows.tables, "int16": TensorInfo((2 * ENTRIES,), "int32")}

    def meaning(self, attrs: SoftmaxOnceAttrs, data: Any, table: Any) -> Any:
        exponential = _exponentials(differences(data), table, wide=str(data.dtype) == "int16")
        rows, sums = data.shape[:-1], row_sums(exponential)
        excess = te.compute(rows, lambda *row: _excess(sums(*row)), name="excess")

        def reciprocal(*row: Any) -> Any:
            return tirx.truncdiv(const(attrs.inverse << RECIPROCAL_BITS), sums(*row) >> excess(*row))

        reciprocals = te.compute(rows, reciprocal, name="reciprocals")
        low, high = exact.limits(attrs.output_dtype)

        def output(*index: Any) -> Any:
            shift = const(RECIPROCAL_BITS + attrs.shift) + excess(*index[:-1])
            share = exponential(*index) * reciprocals(*index[:-1])
            shortest = tirx.min(shift, const(fixedpoint.LONGEST_SHIFT))
            # A share is below 2**62: with a longer shift it is below one half, which is zero.
            rounded = tirx.Select(shift > shortest, const(0), exact.round_half_even(share, shortest))
            return exact.finish(rounded, attrs.output_zero_point, low, high, attrs.output_dtype)

        return te.compute(data.shape, output, name=self.name)

    def kernels(self, site: Site[SoftmaxOnceAttrs]) -> Sequence[Kernel]:
        attrs, types = site.attrs, (site.operands[0].info.dtype, site.output.dtype)
        shift = {"inverse": attrs.inverse, "shift": RECIPROCAL_BITS + attrs.shift}
        more = {**shift, "output_zero_point": attrs.output_zero_point}
        return self.by_table(site, more, "_".join(map(dtype_suffix, types)))


def _exponentials(difference: Any, table: Any, *, wide: bool) -> Any:
    """Each exponential, 30 bits after the point; ``wide``: the rounded product of those of the upper and lower byte."""

    def element(*index: Any) -> Any:
        distance = difference(*index)
        if not wide:
            return exact.i64(table(distance))
        upper, lower = table(distance >> 8), table(ENTRIES + (distance & 255))
        return (exact.i64(upper) * exact.i64(lower) + const(1 << (EXPONENTIAL_BITS - 1))) >> const(EXPONENTIAL_BITS)

    return te.compute(difference.shape, element, name="exponentials")


def _excess(total: Any) -> Any:
    """How many bits a sum is longer than 31; the largest exponential alone, 2**30, has that many."""
    longer = (
        tirx.Select(total >= const(1 << bits), const(1), const(0)) for bits in range(31, fixedpoint.LONGEST_SHIFT)
    )
    return sum(longer, start=const(0))


def softmax_once_operands(
    given: Quantisation, wanted: Quantisation, output_dtype: str = "int8", input_dtype: str = "int8"
) -> tuple[SoftmaxOnceAttrs, NDArray[np.int32]]:
    """Attributes and the table of exponentials."""
    inverse = fixedpoint.fixed_ratios([Fraction(1) / fixedpoint.scale_fraction(wanted.scale)], INVERSE_BITS)
    places = np.arange(ENTRIES)
    places = places if input_dtype == "int8" else np.concatenate([places * ENTRIES, places])
    differences = places * float(fixedpoint.scale_fraction(given.scale))
    table = np.rint(np.exp(-differences) * (1 << EXPONENTIAL_BITS)).astype(np.int32)
    return SoftmaxOnceAttrs(inverse.multipliers[0], inverse.shift, wanted.zero_point, output_dtype), table


# The tables that the softmax kernels read, computed as the reference computes the values at run time.

DIFF_BITS = 26  # differences are scaled to 5 integer and 26 fraction bits
# An exponential below 2**11 / 2**31 = 2**-20 is less than half a unit of the sum, whose last bit is 2**-19, and of an
# output, whose last bit is 2**-16 at least. So it rounds to zero in both, and zero may stand in the table.
NEGLIGIBLE = 1 << 11

LOOKUP_STEPS = 512

Float32s = NDArray[np.float32]


def input_radius(shift: int) -> int:
    """The largest difference that fits the scaled format; the exponentials of larger ones count as zero."""
    return (31 << DIFF_BITS) >> shift


def exponentials(multiplier: int, shift: int) -> NDArray[np.int32]:
    """exp(-d * multiplier * 2**(shift - 57)) * 2**31 for d = 0..255; zero where it is negligible."""
    difference = np.arange(256, dtype=np.int64)
    scaled = fixedpoint.rounding_doubling_high_mul(-difference << shift, multiplier)
    values = np.where(difference <= input_radius(shift), fixedpoint.exp_of_negative(scaled, 31 - DIFF_BITS), 0)
    return np.where(values < NEGLIGIBLE, 0, values).astype(np.int32)


def exponential_lookup() -> NDArray[np.int16]:
    """exp on [-10, 0] for 16-bit activations: 513 points of the interpolated table."""
    return _lookup(lambda x: np.exp(x.astype(np.float64)).astype(np.float32), -10.0, 0.0)


def reciprocal_lookup() -> NDArray[np.int16]:
    """1 / (1 + x) on [0, 1], likewise."""
    one = np.float32(1)
    return _lookup(lambda x: one / (one + x), 0.0, 1.0)


def _lookup(function: Callable[[Float32s], Float32s], low: float, high: float) -> NDArray[np.int16]:
    """513 points of a function, in units of 2**-15, in the single precision of the reference.

    At the middle of a segment the straight line misses the function. Each point is moved by half of that error, which
    divides it between the middle and the ends.
    """
    half, scale = np.float32(0.5), np.float32(65536) / np.float32(2)
    step = (np.float32(high) - np.float32(low)) / np.float32(LOOKUP_STEPS)
    start = np.float32(low) + np.arange(LOOKUP_STEPS, dtype=np.float32) * step
    following = np.float32(low) + np.arange(1, LOOKUP_STEPS + 1, dtype=np.float32) * step
    value = _rounded(function(start) * scale)
    middle = _rounded(function(start + step * half) * scale)
    interpolated = _rounded((function(following) * scale + value) * half)
    last = _rounded(function(np.array([high], np.float32)) * scale)
    points = np.concatenate([value - _rounded((interpolated - middle) * half), last])
    return np.asarray(np.clip(points, -32768, 32767), np.int16)


def _rounded(value: Float32s) -> Float32s:
    """Rounds halves away from zero."""
    return np.asarray(np.trunc(value + np.copysign(np.float32(0.5), value)), np.float32)


# Logarithm of softmax along the last axis of 8-bit activations, as the reference computes it.

# All of these are in units of 2**-31.
LN_2 = 1488522236
ROOT_HALF = 1518500250  # 2**-0.5
CENTRE = 1805811301  # 2**-0.25, the geometric middle of 2**-0.5..1, where the fraction of polynomials serves
# The reference's coefficients of that fraction: of the cube above, of the square, the constant and the offset below.
NUMERATOR, DENOMINATOR = 117049297, 127690142
CONSTANT, LINEAR = 1057819769, 638450708


class LogSoftmaxAttrs(Scaled):
    """``multiplier * 2**(shift - 31)`` is the input scale in units of 2**-26."""


class LogSoftmax(OfRows[LogSoftmaxAttrs]):
    """Computes ln(softmax) of int8; the output's -128..127 stand for about -16..0. The table is softmax's."""

    name = "log_softmax"

    def meaning(self, attrs: LogSoftmaxAttrs, data: Any, table: Any) -> Any:
        difference = differences(data)
        logarithm = _logarithm(exponential_sums(difference, table))

        def output(*index: Any) -> Any:
            distance = exact.i64(difference(*index))
            scaled = high_mul(-(distance << const(attrs.shift)), const(attrs.multiplier))
            rounded = rounding_divide_by_power(scaled - logarithm(*index[:-1]), const(22))
            inside = distance <= const(input_radius(attrs.shift))
            return tirx.Select(inside, exact.clamp(rounded + const(127), -128, 127), const(-128)).astype("int8")

        return te.compute(data.shape, output, name="log_softmax")

    def kernels(self, site: Site[LogSoftmaxAttrs]) -> Sequence[Kernel]:
        attrs = site.attrs
        return self.by_table(site, {"radius": _radius(attrs), **same(attrs, "multiplier", "shift")}, "s8")


def _radius(attrs: LogSoftmaxAttrs) -> int:
    """The largest distance below 16: the outputs of larger ones are the lowest, and their difference may overflow."""
    return max(d for d in range(256) if (d << attrs.shift) * attrs.multiplier >> 31 < 16 << DIFF_BITS)


def _logarithm(sums: Any) -> Any:
    """ln(x) with 26 bits after the point, for sums x of 1 and more with 19.

    x = r / 2**-0.25 * 2**z with r in 2**-0.5..1, so ln(x) = z * ln(2) + ln(r / 2**-0.25). The last term is a fraction
    of two polynomials in q = 2 * (r - 2**-0.25). Two candidates for r differ by the factor 2**0.5: ``up`` is x shifted
    until x * 2**-0.5 lies in 1/2..1, ``down`` is x shifted until it lies there itself, times 2**0.5. The smaller is
    below one and belongs to the larger z. z has a quarter behind the point, of 25 bits there, so the quarter is 2**23.
    The numerator is shifted by 6 to have 25, too: one bit of headroom, which the last shift gives up.
    """
    shape = sums.shape
    zeros = te.compute(shape, lambda *row: leading_zeros(sums(*row)), name="zeros")

    root = te.compute(shape, lambda *row: high_mul(sums(*row), const(ROOT_HALF)), name="root")
    root_zeros = te.compute(shape, lambda *row: leading_zeros(root(*row)), name="root_zeros")

    def mantissa(*row: Any) -> Any:
        down = high_mul(sums(*row) << (zeros(*row) - const(1)), const(ROOT_HALF))
        up = sums(*row) << (root_zeros(*row) - const(1))
        return tirx.min(shift_left(down, 1), up)

    def exponent(*row: Any) -> Any:
        down = ((const(SUM_BITS) - zeros(*row)) << const(25)) + const(1 << 23)
        up = ((const(SUM_BITS + 1) - root_zeros(*row)) << const(25)) - const(1 << 23)
        return tirx.max(down, up)

    r = te.compute(shape, mantissa, name="mantissa")
    q = te.compute(shape, lambda *row: (r(*row) - const(CENTRE)) << const(1), name="offset")
    square = te.compute(shape, lambda *row: high_mul(q(*row), q(*row)), name="square")

    def denominator(*row: Any) -> Any:
        middle = (r(*row) + const(CENTRE + 1)) >> const(1)
        factor = const(CONSTANT) + q(*row) + high_mul(square(*row), const(DENOMINATOR))
        return high_mul(middle, factor) + high_mul(q(*row), const(LINEAR)) + const(1 << 31)

    def numerator(*row: Any) -> Any:
        cubic = high_mul(high_mul(q(*row), square(*row)), const(NUMERATOR))
        return high_mul(q(*row), r(*row)) + cubic

    top = te.compute(shape, numerator, name="numerator")
    inverse = reciprocal_of(te.compute(shape, denominator, name="denominator"))

    def logarithm(*row: Any) -> Any:
        fraction = high_mul(rounding_divide_by_power(top(*row), const(6)), inverse(*row))
        return shift_left(high_mul(exponent(*row), const(LN_2)) + fraction, 1)

    return te.compute(shape, logarithm, name="logarithm")
