"""The exponentials and reciprocals that the softmax kernels look up, computed as the reference computes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from uaccel.ops.exponential import exp_of_negative
from uaccel.ops.fixedpoint import rounding_doubling_high_mul

DIFF_BITS = 26  # differences are scaled to 5 integer and 26 fraction bits
NEGLIGIBLE = 1 << 11  # an exponential below 2**-20 rounds to zero in the sum and in every output

LOOKUP_STEPS = 512

Float32s = NDArray[np.float32]


def input_radius(shift: int) -> int:
    """Larger differences than this do not fit the scaled format; their exponential counts as zero."""
    return (31 << DIFF_BITS) >> shift


def exponentials(multiplier: int, shift: int) -> NDArray[np.int32]:
    """exp(-d * multiplier * 2**(shift - 57)) * 2**31 for d = 0..255; zero where it is negligible."""
    difference = np.arange(256, dtype=np.int64)
    scaled = rounding_doubling_high_mul(-difference << shift, multiplier)
    values = np.where(difference <= input_radius(shift), exp_of_negative(scaled, 31 - DIFF_BITS), 0)
    return np.where(values < NEGLIGIBLE, 0, values).astype(np.int32)


def exponential_lookup() -> NDArray[np.int16]:
    """exp on [-10, 0] for 16-bit activations: 513 points of the interpolated table."""
    return _lookup(lambda x: np.exp(x.astype(np.float64)).astype(np.float32), -10.0, 0.0)


def reciprocal_lookup() -> NDArray[np.int16]:
    """1 / (1 + x) on [0, 1], likewise."""
    one = np.float32(1)
    return _lookup(lambda x: one / (one + x), 0.0, 1.0)


def _lookup(function: Callable[[Float32s], Float32s], low: float, high: float) -> NDArray[np.int16]:
    """Points so placed that linear interpolation errs least at the middle; single precision, as the reference."""
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
    """Halves away from zero."""
    return np.asarray(np.trunc(value + np.copysign(np.float32(0.5), value)), np.float32)
