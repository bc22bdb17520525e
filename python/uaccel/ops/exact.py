"""Rounding as TE expressions, for the operators' exact meanings: TFLite's reference kernels, float32, half to even.

64-bit intermediates keep every step free of overflow; where the reference wraps to 32 bits, so does the cast here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops.fixedpoint import FLOAT32_LIMITS, RESTS
from uaccel.ops.rounding import FLOAT32
from uaccel.tvm_api import tirx
from uaccel.tvm_api.tir import dtype_of


def i32(value: Any) -> Any:
    return value.astype("int32")


def i64(value: Any) -> Any:
    return value.astype("int64")


def const(value: int, dtype: str = "int64") -> Any:
    return tirx.const(value, dtype)


def info(tensor: Any) -> TensorInfo:
    """Shape and dtype of a TE tensor, as the type rules take them."""
    return TensorInfo(tuple(int(extent) for extent in tensor.shape), str(tensor.dtype))


def clamp(value: Any, low: int, high: int) -> Any:
    dtype = dtype_of(value)
    return tirx.max(tirx.min(value, const(high, dtype)), const(low, dtype))


def chosen(condition: Any, one: Any, other: Any) -> Any:
    """One of two values."""
    return tirx.Select(condition, one, other)


def wrap32(value: Any) -> Any:
    """An int64 as its lower 32 bits read as signed; casts there and back would be simplified away by TVM."""
    half = const(1 << 31)
    return ((value + half) & const((1 << 32) - 1)) - half


def rounding_divide_by_power(value: Any, exponent: Any) -> Any:
    """int64 value / 2**exponent, halves away from zero."""
    one, zero = const(1), const(0)
    mask = (one << exponent) - one
    threshold = (mask >> one) + tirx.Select(value < zero, one, zero)
    return (value >> exponent) + tirx.Select((value & mask) > threshold, one, zero)


def high_mul(value: Any, multiplier: Any) -> Any:
    """The doubled high word of a 32 by 32 bit product, as int64; ``multiplier`` is not negative."""
    return (i64(value) * i64(multiplier) + const(1 << 30)) >> const(31)


def requantize(acc: Any, multiplier: Any, shift: Any) -> Any:
    """int32 acc * multiplier / 2**31 * 2**shift, rounded twice; the result is an int32 held in 64 bits."""
    left = tirx.max(i64(shift), const(0))
    right = tirx.max(-i64(shift), const(0))
    shifted = wrap32(i64(acc) << left)
    return rounding_divide_by_power(high_mul(shifted, multiplier), right)


def requantize_const(acc: Any, multiplier: int, shift: int) -> Any:
    """``requantize`` with parameters that are known."""
    return requantize(acc, const(multiplier, "int32"), const(shift, "int32"))


def requantize_wide(acc: Any, multiplier: Any, shift: Any) -> Any:
    """int64 acc, as 16-bit activations need it: a 16-bit multiplier and one rounding."""
    wide = i64(multiplier)
    reduced = tirx.Select(wide < const(0x7FFF0000), (wide + const(1 << 15)) >> const(16), const(0x7FFF))
    total = const(15) - i64(shift)
    return (acc * reduced + (const(1) << (total - const(1)))) >> total


def real(value: float) -> Any:
    return tirx.const(value, "float32")


def requantize_float32(acc: Any, multiplier: Any, shift: Any) -> Any:
    """(float32(acc) + rest) * float32(multiplier * 2**(shift - 31)), half to even, saturated; an int32 in 64 bits.

    The quotients are exact: 24 bits of the multiplier by a power of two, and its other 7, which are the rest.
    """
    rest = i32(multiplier) & const(RESTS - 1, "int32")
    scale = (i32(multiplier) - rest).astype("float32") / (const(1) << (const(31) - i64(shift))).astype("float32")
    total = acc.astype("float32") + rest.astype("float32") / real(RESTS)
    low, high = FLOAT32_LIMITS
    return i64(half_even(tirx.max(tirx.min(total * scale, real(high)), real(low))))


def half_even(value: Any) -> Any:
    """A float32 that an int32 can hold, as that."""
    return i32(tirx.nearbyint(value))


def requantize_as(rounding: str, acc: Any, multiplier: Any, shift: Any) -> Any:
    """``acc`` in the rounding of an operator; an int64 acc is that of 16-bit activations."""
    if rounding == FLOAT32:
        return requantize_float32(acc, multiplier, shift)
    return (requantize_wide if dtype_of(acc) == "int64" else requantize)(acc, multiplier, shift)


def round_half_even(value: Any, shift: Any, tolerance: int = 0) -> Any:
    """int64 value / 2**shift, rounded once; within ``tolerance`` of the middle the even neighbour is taken."""
    bits, one = (const(shift) if isinstance(shift, int) else shift), const(1)
    biased = value + (one << (bits - one)) + const(tolerance)
    above = biased >> bits
    tie = (biased & ((one << bits) - one)) <= const(2 * tolerance)
    return above - tirx.Select(tie, above & one, const(0))


def finish(value: Any, zero_point: int, low: int, high: int, dtype: str) -> Any:
    """Add the zero point, clamp and narrow."""
    return clamp(value + const(zero_point, dtype_of(value)), low, high).astype(dtype)


def limits(dtype: str) -> tuple[int, int]:
    integers = np.iinfo(dtype)
    return int(integers.min), int(integers.max)
