"""Computes in fixed point on NumPy, without TVM: what tables and kernel parameters are made with.

The multipliers and exponentials equal TFLite's reference kernels bit for bit. Ratios of scales serve operators that
round once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uaccel.errors import ModelError, need

# Output stages: accumulators multiplied by a scale that is kept as a multiplier and a shift.
#
# All but ``requantize_float32`` is the integer arithmetic of TFLite's reference kernels.

Int32s = NDArray[np.int32]

# What ``requantize_float32`` saturates to: the range of a signed integer of 24 bits. A float32 holds each of them
# exactly, no result of 16 bits comes near, and adding a zero point cannot overflow an int32.
FLOAT32_LIMITS = (-(1 << 23), (1 << 23) - 1)

# The significand of a float32 has 24 bits, so a multiplier of 31 bits has 7 to spare. They hold the fraction of a bias
# that is no whole number of products, in 128ths.
RESTS = 128


def quantize_multiplier(real: float) -> tuple[int, int]:
    """A real multiplier as a 31-bit fraction and a power of two: ``real = fraction / 2**31 * 2**shift``.

    As in the reference, a factor too small for 31 shifts to the right becomes zero, and one too large for 30 to the
    left becomes the largest.
    """
    if real == 0.0:
        return 0, 0
    need(math.isfinite(real), f"its quantisation scales give the factor {real}; quantise the model again")
    mantissa, shift = math.frexp(real)
    fraction = math.floor(mantissa * (1 << 31) + 0.5) if mantissa >= 0 else math.ceil(mantissa * (1 << 31) - 0.5)
    if fraction == 1 << 31:
        fraction //= 2
        shift += 1
    if shift < -31:
        return 0, 0
    if shift > 30:
        return (1 << 31) - 1, 30
    return fraction, shift


def quantize_multipliers(reals: ArrayLike) -> tuple[Int32s, Int32s]:
    """``quantize_multiplier`` for each of several."""
    pairs = [quantize_multiplier(float(real)) for real in np.ravel(np.asarray(reals, dtype=np.float64))]
    return np.array([m for m, _ in pairs], np.int32), np.array([s for _, s in pairs], np.int32)


def rounding_doubling_high_mul(a: ArrayLike, b: ArrayLike) -> NDArray[np.int64]:
    """round(a * b / 2**31), halves upwards: the high word of a doubled product.

    Only (-2**31) * (-2**31) exceeds 32 bits; it saturates.
    """
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    return np.asarray(np.minimum((product + (1 << 30)) >> 31, (1 << 31) - 1), np.int64)


def rounding_divide_by_power(x: ArrayLike, exponent: ArrayLike) -> NDArray[np.int64]:
    """round(x / 2**exponent), halves away from zero.

    The shift rounds down. One is added where the bits shifted out are one half or more; for a negative x only where
    they are more, since its lower neighbour is the one away from zero.
    """
    value = np.asarray(x, np.int64)
    mask = (np.int64(1) << np.asarray(exponent, np.int64)) - 1
    threshold = (mask >> 1) + (value < 0)
    return (value >> np.asarray(exponent, np.int64)) + ((value & mask) > threshold)


def multiply_by_quantized_multiplier(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> NDArray[np.int64]:
    """x * multiplier / 2**31 * 2**shift as the reference kernels round it: twice."""
    shifts = np.asarray(shift, np.int64)
    left = np.maximum(shifts, 0)
    shifted = (np.asarray(x, np.int64) << left).astype(np.int32)
    return rounding_divide_by_power(rounding_doubling_high_mul(shifted, multiplier), np.maximum(-shifts, 0))


def requantize_float32(acc: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> NDArray[np.int64]:
    """(float32(acc) + rest) * float32(multiplier * 2**(shift - 31)), then half to even: as single precision rounds.

    The rest is the multiplier's low 7 bits, divided by ``RESTS``.
    """
    given = np.asarray(multiplier, np.int64)
    rest = given % RESTS
    scale = np.ldexp((given - rest).astype(np.float64), np.asarray(shift, np.int64) - 31).astype(np.float32)
    total = np.asarray(acc, np.int64).astype(np.float32) + (rest / RESTS).astype(np.float32)
    product = total * scale
    return np.asarray(np.clip(np.rint(product), *FLOAT32_LIMITS), np.int64)


# Exponentials and quotients in the reference's fixed point: what the tables of functions are made with.

Values = NDArray[np.int64]

ONE = (1 << 31) - 1  # 1.0 where 31 bits are fraction
BIT_EXPONENTS = (-2, -1, 0, 1, 2, 3, 4)
BIT_FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)  # exp(-2**e) * 2**31
EIGHTH = 1895147668  # exp(-1/8) * 2**31
THIRD = 715827883  # 2**31 / 3


def exp_of_negative(a: Values, integer_bits: int) -> Values:
    """exp(a / 2**(31 - integer_bits)) * 2**31 for a <= 0, as the reference computes it.

    ``a = rest - (rest - a)``, where rest lies in [-1/4, 0) and ``rest - a`` is a multiple of 1/4. A polynomial gives
    exp(rest). Each bit of the multiple, worth 2**e from e = -2 on, contributes its factor exp(-2**e). Zero has no such
    rest, so its result is set apart: the largest number below one.
    """
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    rest = (a & (quarter - 1)) - quarter
    result = _exp_on_quarter(rest << integer_bits)
    for exponent, factor in zip(BIT_EXPONENTS, BIT_FACTORS, strict=True):
        if exponent < integer_bits:
            is_set = (rest - a) & (1 << (fraction_bits + exponent))
            result = np.where(is_set != 0, rounding_doubling_high_mul(result, factor), result)
    return np.asarray(np.where(a == 0, ONE, result), np.int64)


def _exp_on_quarter(a: Values) -> Values:
    """exp(a / 2**31) * 2**31 for -1/4 <= a / 2**31 < 0: Taylor's series around -1/8, to the fourth power.

    With |x| <= 1/8 the first term left out, x**5 / 120, is below 2**-21.
    """
    x = a + (1 << 28)
    x2 = rounding_doubling_high_mul(x, x)
    x3 = rounding_doubling_high_mul(x2, x)
    x4 = rounding_doubling_high_mul(x2, x2)
    thirds = rounding_doubling_high_mul(rounding_divide_by_power(x4, 2) + x3, THIRD)
    series = x + rounding_divide_by_power(thirds + x2, 1)
    return EIGHTH + rounding_doubling_high_mul(EIGHTH, series)


def one_over_one_plus(x: Values) -> Values:
    """2**31 / (1 + x / 2**31) for x in [0, 2**31)."""
    return saturated(_reciprocal_of_one_plus(x) << 1)


def one_minus_over_one_plus(x: Values) -> Values:
    """2**31 * (1 - x) / (1 + x), x scaled likewise: 2 / (1 + x) less one."""
    return saturated((_reciprocal_of_one_plus(x) - (1 << 29)) << 2)


def _reciprocal_of_one_plus(x: Values) -> Values:
    """2 / (1 + x) with 29 bits of fraction, as the inverse of ``half = (1 + x) / 2`` by Newton's division.

    On [1/2, 1] the seed 48/17 - 32/17 * half errs by at most 1/17. A step squares the error: 17**-8 after three is
    below 2**-31. The high word of a product of 31 and 29 bits of fraction has 29 of them; of 29 and 29 it has 27,
    hence the shift by two.
    """
    half = (x + ONE + 1) >> 1
    estimate = 1515870810 + rounding_doubling_high_mul(half, -1010580540)  # 48/17 - 32/17 * half
    for _ in range(3):
        error = (1 << 29) - rounding_doubling_high_mul(half, estimate)
        estimate = estimate + saturated(rounding_doubling_high_mul(estimate, error) << 2)
    return estimate


def saturated(value: Values) -> Values:
    """Clamps to 32 bits."""
    return np.clip(value, -(1 << 31), ONE)


# Ratios of scales as integers, for operators that compute the real result and round it once, half to even.
#
# Scales are float32 numbers, so every ratio of them is a fraction. It is held with 30 bits and more, where float32 has
# 24; a short binary fraction is held exactly. An inexact multiplier could miss a tie, which is a result in the middle
# between two integers. So results count as ties that are as near to the middle as the multipliers err: the
# ``tolerance``.

LONGEST_SHIFT = 62  # a product below 2**62 and the half of 2**61 that rounds it fit a signed 64-bit number
NARROWEST = 8  # the tolerance is at most 2**-8 of a step, so that few results that are no ties count as ties


@dataclass(frozen=True)
class Ratios:
    """Holds ratios, each as ``multiplier / 2**shift``; ``exact`` where that loses nothing."""

    multipliers: tuple[int, ...]
    shift: int
    exact: bool

    def tolerance(self, magnitude: int) -> int:
        """How far a sum of products may lie from what it stands for, in units of ``2**-shift``.

        ``magnitude`` bounds the sum of the operands' magnitudes. Each multiplier is rounded, so it errs by one half at
        most, and the sum by half the magnitude.
        """
        return 0 if self.exact else min((magnitude + 1) // 2, (1 << self.shift) >> NARROWEST)


def scale_fraction(scale: float) -> Fraction:
    """A scale as float32 holds it."""
    held = float(np.float32(scale))
    if not (math.isfinite(held) and held > 0):
        raise ModelError(f"a scale is {float(scale):.9g}; scales are positive numbers: quantise the model again")
    return Fraction(held)


def fixed_ratios(ratios: Sequence[Fraction], bits: int) -> Ratios:
    """Multipliers of at most ``bits`` bits, the largest of just as many, that share a power of two.

    Where the largest rounds up to ``2**bits``, one bit fewer after the point makes room. A shift below 1 would leave
    no bit for the half that rounding looks at.
    """
    largest = max(abs(ratio) for ratio in ratios)
    shift = min(bits - _integer_bits(largest), LONGEST_SHIFT)
    if _scaled(largest, shift) == 1 << bits:
        shift -= 1
    if shift < 1:
        raise ModelError(
            f"its quantisation scales give the factor {float(largest):.6g}, at most {float(1 << (bits - 1)):.6g} is "
            "possible: the output's scale is too small; quantise the model again"
        )
    multipliers = tuple(_scaled(ratio, shift) for ratio in ratios)
    pairs = zip(multipliers, ratios, strict=True)
    return Ratios(multipliers, shift, all(Fraction(m, 1 << shift) == ratio for m, ratio in pairs))


def most_that_counts(ratio: Fraction, largest: int, steps: int) -> int:
    """The largest operand, of all up to ``largest``, that can matter to a tie.

    A larger one gives more than ``steps + 1`` steps, which saturate however they are rounded.
    """
    return min(largest, int((steps + 1) / ratio) + 1)


def _integer_bits(ratio: Fraction) -> int:
    """The least n with ratio < 2**n; negative for small ratios."""
    bits = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    return bits + (ratio >= Fraction(2) ** bits)


def _scaled(ratio: Fraction, shift: int) -> int:
    return round(ratio * Fraction(2) ** shift)
