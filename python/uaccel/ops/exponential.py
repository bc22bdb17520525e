"""Exponentials and quotients in the reference's fixed point, on numpy: what tables of functions are made with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uaccel.ops.fixedpoint import rounding_divide_by_power, rounding_doubling_high_mul

Values = NDArray[np.int64]

ONE = (1 << 31) - 1  # 1.0 where 31 bits are fraction
BIT_EXPONENTS = (-2, -1, 0, 1, 2, 3, 4)
BIT_FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)  # exp(-2**e) * 2**31
EIGHTH = 1895147668  # exp(-1/8) * 2**31
THIRD = 715827883  # 2**31 / 3


def exp_of_negative(a: Values, integer_bits: int) -> Values:
    """exp(a / 2**(31 - integer_bits)) * 2**31 for a <= 0: a polynomial on [-1/4, 0) times a factor a higher bit."""
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
    """exp(a / 2**31) * 2**31 for -1/4 <= a / 2**31 < 0: Taylor's series around -1/8, to the fourth power."""
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
    """(1 - x) / (1 + x), scaled likewise."""
    return saturated((_reciprocal_of_one_plus(x) - (1 << 29)) << 2)


def _reciprocal_of_one_plus(x: Values) -> Values:
    """2 / (1 + x) with 29 bits of fraction: three steps of Newton's division."""
    half = (x + ONE + 1) >> 1
    estimate = 1515870810 + rounding_doubling_high_mul(half, -1010580540)  # 48/17 - 32/17 * half
    for _ in range(3):
        error = (1 << 29) - rounding_doubling_high_mul(half, estimate)
        estimate = estimate + saturated(rounding_doubling_high_mul(estimate, error) << 2)
    return estimate


def saturated(value: Values) -> Values:
    """To 32 bits."""
    return np.clip(value, -(1 << 31), ONE)
