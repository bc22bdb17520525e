"""The arithmetic of output stages against numbers from outside: their definitions, and values worked out by hand.

Exact meaning and kernels are both made with it, so comparing them with each other shows no fault of its own.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from uaccel.errors import ModelError
from uaccel.ops.fixedpoint import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    quantize_multipliers,
    requantize_float32,
    rounding_divide_by_power,
    rounding_doubling_high_mul,
)

HALF, MOST = 1 << 30, (1 << 31) - 1


@pytest.mark.parametrize(
    ("real", "fraction", "shift"),
    [
        (0.0, 0, 0),
        (1.0, HALF, 1),
        (0.5, HALF, 0),
        (0.25, HALF, -1),
        (3.0, 3 << 29, 2),
        (0.1, 1717986918, -3),  # 0.8 * 2**31 is 1717986918.4
        (1 / 3, 1431655765, -1),
        (1 - 2.0**-31, MOST, 0),
        (1 - 2.0**-32, HALF, 1),  # its fraction would round to 2**31, which is 2**30 of the next power
        (1 - 2.0**-40, HALF, 1),
        (2 - 2.0**-40, HALF, 2),
        (2.0**-31 * (1 - 2.0**-50), HALF, -30),
        (2.0**-32, HALF, -31),
        (2.0**-33, 0, 0),  # less than any shift can say
        (2.0**30 * (1 - 2.0**-31), MOST, 30),
        (2.0**30 * (1 - 2.0**-40), MOST, 30),  # the most that can be said
        (1e30, MOST, 30),
    ],
)
def test_known_multipliers(real: float, fraction: int, shift: int) -> None:
    assert quantize_multiplier(real) == (fraction, shift)


def test_a_multiplier_is_the_nearest_that_there_is() -> None:
    random = np.random.default_rng(1)
    reals = np.ldexp(random.uniform(0.5, 1.0, 5000), random.integers(-31, 30, 5000))
    reals[::3] = np.ldexp(1 - np.ldexp(1.0, random.integers(-50, -25, len(reals[::3]))), random.integers(-30, 29))
    for real, fraction, shift in zip(reals.tolist(), *quantize_multipliers(reals), strict=True):
        assert HALF <= fraction <= MOST
        step = Fraction(2) ** int(shift) / (1 << 31)
        assert abs(int(fraction) * step - Fraction(real)) <= step / 2


@pytest.mark.parametrize("real", [float("inf"), float("nan")])
def test_a_factor_that_is_no_number_is_refused(real: float) -> None:
    with pytest.raises(ModelError, match=f"its quantisation scales give the factor {real}; quantise the model again"):
        quantize_multiplier(real)


@pytest.mark.parametrize(
    ("a", "b", "product"),
    [
        (1 << 30, 1 << 30, 1 << 29),
        (1, HALF, 1),  # 0.5: halves upwards
        (-1, HALF, 0),  # -0.5
        (-3, HALF, -1),
        (-(1 << 31), -(1 << 31), MOST),
        (-(1 << 31), MOST, -MOST),
        (MOST, MOST, MOST - 1),
    ],
)
def test_known_high_words(a: int, b: int, product: int) -> None:
    assert rounding_doubling_high_mul(a, b) == product


@pytest.mark.parametrize(
    ("x", "exponent", "quotient"),
    [(5, 1, 3), (-5, 1, -3), (4, 1, 2), (6, 2, 2), (-6, 2, -2), (-7, 2, -2), (1, 31, 0), (MOST, 31, 1), (-9, 0, -9)],
)
def test_known_quotients(x: int, exponent: int, quotient: int) -> None:
    assert rounding_divide_by_power(x, exponent) == quotient


@pytest.mark.parametrize(
    ("x", "multiplier", "shift", "result"),
    [
        (1000, HALF, 1, 1000),
        (1000, HALF, 0, 500),
        (5, HALF, 0, 3),  # halves upwards, then nothing to divide
        (-5, HALF, 0, -2),
        (-5, HALF, -1, -1),  # rounded twice: -2.5 to -2, then -1.0
        (3, HALF, -1, 1),  # 1.5 to 2, then 1
        (1 << 30, HALF, 2, 0),  # wraps before it is multiplied
    ],
)
def test_known_products(x: int, multiplier: int, shift: int, result: int) -> None:
    assert multiply_by_quantized_multiplier(x, multiplier, shift) == result


@pytest.mark.parametrize(
    ("acc", "multiplier", "shift", "result"),
    [
        (5, HALF, 0, 2),  # 2.5, half to even
        (7, HALF, 0, 4),
        (-5, HALF, 0, -2),
        ((1 << 24) + 1, HALF, 1, (1 << 23) - 1),  # beyond what is held
        (-(1 << 31), HALF, 1, -(1 << 23)),
        ((1 << 24) + 1, HALF, -3, 1 << 20),  # the accumulator loses its last bit
    ],
)
def test_known_products_in_single_precision(acc: int, multiplier: int, shift: int, result: int) -> None:
    assert requantize_float32(acc, multiplier, shift) == result
