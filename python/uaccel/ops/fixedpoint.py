"""The arithmetic of output stages, on numpy: what tables and parameters are computed with.

Most of it is the integer arithmetic of TFLite's reference kernels.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uaccel.errors import ModelError

Int32s = NDArray[np.int32]

FLOAT32_LIMITS = (-(1 << 23), (1 << 23) - 1)
"""What ``requantize_float32`` saturates to: far beyond any type of 16 bits, and a zero point can be added."""

RESTS = 128
"""A float32 leaves a multiplier's low 7 bits free: they hold what a bias is above a whole number, in parts of 1."""


def quantize_multiplier(real: float) -> tuple[int, int]:
    """A real multiplier as a 31-bit fraction and a power of two: ``real = fraction / 2**31 * 2**shift``."""
    if real == 0.0:
        return 0, 0
    if not math.isfinite(real):
        raise ModelError(f"its quantisation scales give the factor {real}; quantise the model again")
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
    """round(a * b / 2**31), halves upwards, saturated: the high word of a doubled product."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    return np.asarray(np.minimum((product + (1 << 30)) >> 31, (1 << 31) - 1), np.int64)


def rounding_divide_by_power(x: ArrayLike, exponent: ArrayLike) -> NDArray[np.int64]:
    """round(x / 2**exponent), halves away from zero."""
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

    The rest is the multiplier's low bits, by ``RESTS``.
    """
    given = np.asarray(multiplier, np.int64)
    rest = given % RESTS
    scale = np.ldexp((given - rest).astype(np.float64), np.asarray(shift, np.int64) - 31).astype(np.float32)
    total = np.asarray(acc, np.int64).astype(np.float32) + (rest / RESTS).astype(np.float32)
    product = total * scale
    return np.asarray(np.clip(np.rint(product), *FLOAT32_LIMITS), np.int64)
