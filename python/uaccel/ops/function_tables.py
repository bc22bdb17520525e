"""Functions of one 8-bit variable as 256 values, for the stored inputs -128 to 127.

What the reference has a kernel for is computed as there; other functions as a float kernel would.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array, Quantisation
from uaccel.ops.exponential import ONE, exp_of_negative, one_minus_over_one_plus, one_over_one_plus, saturated
from uaccel.ops.fixedpoint import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_power,
    rounding_doubling_high_mul,
)

Table = NDArray[np.int8]
Values = NDArray[np.int64]
Reals = Array

STORED = np.arange(-128, 128, dtype=np.int64)
SIGMOID_INTEGER_BITS = 4
RSQRT_BITS = 20  # of fraction between its two scalings
BEYOND = 1e6  # steps, more than any 8-bit range
HALF_SQRT_2 = 1518500250  # sqrt(1/2) * 2**31


def clipped(values: Values) -> Table:
    return np.clip(values, -128, 127).astype(np.int8)


def logistic(given: Quantisation) -> Table:
    """1 / (1 + exp(-x)); the output has scale 1/256 and zero point -128."""
    x, end = _sigmoid_argument(given)
    tail = one_over_one_plus(exp_of_negative(-np.abs(x), SIGMOID_INTEGER_BITS))
    q31 = np.where(x > 0, tail, np.where(x < 0, ONE - tail, 1 << 30))
    return _with_ends(rounding_divide_by_power(q31, 23) - 128, end)


def tanh(given: Quantisation) -> Table:
    """The output has scale 1/128 and zero point 0."""
    x, end = _sigmoid_argument(given)
    # -|x| with one integer bit more is -2|x|
    tail = one_minus_over_one_plus(exp_of_negative(-np.abs(x), SIGMOID_INTEGER_BITS + 1))
    return _with_ends(rounding_divide_by_power(np.sign(x) * tail, 24), end)


def _sigmoid_argument(given: Quantisation) -> tuple[Values, Values]:
    """The inputs with 27 bits of fraction, and -1 or 1 where they are beyond the range of that."""
    mantissa, shift = math.frexp(given.scale * (1 << (31 - SIGMOID_INTEGER_BITS)))
    multiplier = math.floor(mantissa * (1 << 31) + 0.5)
    largest = float((1 << SIGMOID_INTEGER_BITS) - 1) * (1 << (31 - SIGMOID_INTEGER_BITS))
    radius = math.floor(math.ldexp(largest, -shift))
    value = STORED - given.zero_point
    end = np.where(value <= -radius, -1, np.where(value >= radius, 1, 0))
    inside = np.where(end == 0, value, 0)
    return multiply_by_quantized_multiplier(inside, multiplier, shift), end


def _with_ends(values: Values, end: Values) -> Table:
    """-128 and 127 where the input is beyond range."""
    return clipped(np.where(end == 0, values, np.where(end < 0, -128, 127)))


def of_reals(given: Quantisation, wanted: Quantisation, function: Callable[[Reals], Reals]) -> Table:
    """What dequantising, the function in single precision and quantising give; what is no number becomes the lowest."""
    real = np.float32(given.scale) * (STORED - given.zero_point).astype(np.float32)
    with np.errstate(all="ignore"):
        quotient = function(real.astype(np.float64)).astype(np.float32) * (np.float32(1) / np.float32(wanted.scale))
    steps = np.nan_to_num(np.clip(quotient, -BEYOND, BEYOND), nan=-BEYOND)
    return clipped(_rounded(steps).astype(np.int64) + wanted.zero_point)


def _rounded(value: NDArray[np.float32]) -> NDArray[np.float32]:
    """Halves away from zero."""
    whole = np.trunc(value)
    return np.asarray(whole + np.trunc(2 * (value - whole)), np.float32)


def elu(x: Reals) -> Reals:
    """x where it is positive, exp(x) - 1 where not, the exponential rounded to single precision."""
    exponential = np.exp(np.minimum(x, 0)).astype(np.float32)
    return np.where(x < 0, exponential - np.float32(1), x)


def gelu(x: Reals) -> Reals:
    """x times the probability that a normal variable is less."""
    return np.asarray(0.5 * x * (1 + np.vectorize(math.erf)(x * math.sqrt(0.5))))


def gelu_by_tanh(x: Reals) -> Reals:
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


@dataclass(frozen=True)
class HardSwishFactors:
    """15-bit fractions and powers of two: input to output scale, and input scale to where 3.0 is 2**15.

    Both take the input 7 bits finer than it is stored.
    """

    output_multiplier: int
    output_shift: int
    ramp_multiplier: int
    ramp_shift: int


def hard_swish(given: Quantisation, wanted: Quantisation, factors: HardSwishFactors) -> Table:
    """x * clip(x + 3, 0, 6) / 6, in 16 bits, whose last sum wraps."""
    fine = (STORED - given.zero_point) << 7
    scaled = _high_mul16(fine, factors.output_multiplier)
    ramp = fine
    if factors.ramp_shift > 0:
        ramp = _saturated16(ramp << (factors.ramp_shift - 1))
    ramp = _high_mul16(ramp, factors.ramp_multiplier)
    if factors.ramp_shift > 0:
        ramp = _saturated16(ramp << 1)
    ramp = rounding_divide_by_power(ramp, max(0, -factors.ramp_shift))
    product = ((ramp + (1 << 15)) >> 1) * scaled
    towards_zero = np.sign(product) * (np.abs(product) >> 15)
    value = rounding_divide_by_power(towards_zero, -factors.output_shift) + wanted.zero_point
    return clipped(value.astype(np.int16).astype(np.int64))


def _high_mul16(a: Values, b: int) -> Values:
    """round(a * b / 2**15), halves upwards, saturated."""
    return np.asarray(np.minimum((a * b + (1 << 14)) >> 15, (1 << 15) - 1), np.int64)


def _saturated16(value: Values) -> Values:
    return np.clip(value, -(1 << 15), (1 << 15) - 1)


def rsqrt(given: Quantisation, wanted: Quantisation) -> Table:
    """1 / sqrt(x); the largest value for x <= 0, where the reference stops with an error for x < 0."""
    multiplier, shift = quantize_multiplier(1.0 / (math.sqrt(given.scale) * wanted.scale))
    value = STORED - given.zero_point
    roots = [_inverse_square_root(max(int(v), 1)) for v in value]
    root, root_shift = (np.array(column, np.int64) for column in zip(*roots, strict=True))
    fine = multiply_by_quantized_multiplier(1, root, root_shift + RSQRT_BITS)
    scaled = multiply_by_quantized_multiplier(fine, multiplier, shift - RSQRT_BITS)
    return clipped(np.where(value > 0, scaled + wanted.zero_point, 127))


def _inverse_square_root(value: int) -> tuple[int, int]:
    """Multiplier and shift of 1 / sqrt(value), 1 <= value < 2**29: five of Newton's steps with 28 bits of fraction."""
    if value == 1:
        return ONE, 0
    pairs = (31 - value.bit_length()) // 2 - 1
    half = rounding_divide_by_power(value << 2 * pairs >> 1, 1)
    x = np.array(1 << 28, np.int64)
    for _ in range(5):
        square = rounding_doubling_high_mul(x, x)
        cube = saturated(rounding_doubling_high_mul(square, x) << 6)
        x = saturated((rounding_doubling_high_mul(3 << 27, x) - rounding_doubling_high_mul(half, cube)) << 3)
    root = int(rounding_doubling_high_mul(x, HALF_SQRT_2))
    return (root << pairs - 11, 0) if pairs > 11 else (root, pairs - 11)
