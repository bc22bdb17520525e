"""Defines how accumulators become results: rounded twice as TFLite does, in single precision, or once half to even.

The TE expressions are what operators state as their exact meaning; every kernel must equal them bit for bit.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uaccel.errors import ModelError
from uaccel.ops.fixedpoint import FLOAT32_LIMITS, RESTS, Int32s, Ratios, multiply_by_quantized_multiplier
from uaccel.ops.fixedpoint import requantize_float32 as requantize_float32_numpy
from uaccel.ops.operator import Attributes, tensor_info
from uaccel.tvm_api import tirx
from uaccel.tvm_api.tir import dtype_of

# The two roundings that an operator's attribute ``rounding`` can name.
#
# TFLite's integers round twice. Models from ONNX and PyTorch requantise in single precision: the accumulator becomes a
# float32, is multiplied by one float32, and the product is rounded half to even. Both keep their scale as a multiplier
# and a shift: ``multiplier * 2**(shift - 31)``, which for the second kind is exactly the float32. The 7 low bits of a
# multiplier that a float32 leaves free hold the rest of a bias that is no whole number of products (``with_rests``).

TFLITE: Final = "tflite"
FLOAT32: Final = "float32"
ROUNDINGS: Final = (TFLITE, FLOAT32)

LARGEST: Final = 2.0**30  # Scales are below it: shifts reach 30 at most, as in TFLite.
# An accumulator of 32 bits times this scale is one half at most, which rounds to zero; smaller scales give the same.
SMALLEST: Final = 2.0**-32


def float32_scale(scale: float) -> tuple[int, int]:
    """``float32_scales`` for a single scale."""
    multipliers, shifts = float32_scales(np.float32(scale))
    return int(multipliers[0]), int(shifts[0])


def float32_scales(scales: ArrayLike, wide: bool = False) -> tuple[Int32s, Int32s]:
    """Multipliers of 24 significant bits and shifts whose values are exactly the scales, rounded to float32 first.

    A scale below ``SMALLEST`` becomes ``SMALLEST``: both make zero of every 32-bit accumulator. Accumulators of 64 bits
    (``wide``) could tell them apart, so there it is refused.
    """
    exact = np.ravel(np.asarray(scales, np.float32)).astype(np.float64)
    fits = (exact >= (SMALLEST if wide else 0)) & (exact < LARGEST)
    if not fits.all():
        least = "2**-32" if wide else "0"
        raise ModelError(
            f"its quantisation scales give the factor {exact[~fits][0]:.9g}, wanted one from {least} to below 2**30; "
            "quantise the model again"
        )
    mantissas, shifts = np.frexp(np.maximum(exact, SMALLEST))
    return (mantissas * (1 << 31)).astype(np.int32), shifts.astype(np.int32)


# A rest is added to smaller sums only: a float32 holds whole numbers up to 2**24 exactly, so the rest is not added to
# a sum that was rounded already.
MOST_WITH_REST: Final = 1 << 24


def with_rests(multipliers: Int32s, rests: ArrayLike) -> Int32s:
    """Stores rests, so many 128ths from 0 to 127 that are added to each sum, in the low bits of the multipliers."""
    return np.asarray(multipliers + np.asarray(rests, np.int32), np.int32)


def requantize_numpy(acc: ArrayLike, multiplier: ArrayLike, shift: ArrayLike, rounding: str) -> NDArray[np.int64]:
    """Requantises an int32 accumulator on NumPy, in the rounding that is named."""
    if rounding == FLOAT32:
        return requantize_float32_numpy(acc, multiplier, shift)
    return multiply_by_quantized_multiplier(acc, multiplier, shift)


def check_rounding(attrs: Any, what: str) -> None:
    """Raises TypeError, as type rules do, where the rounding is unknown."""
    if attrs.rounding not in ROUNDINGS:
        raise TypeError(f"{what}: rounding {attrs.rounding!r}, wanted {' or '.join(map(repr, ROUNDINGS))}")


def kernel_suffix(attrs: Any) -> str:
    """The suffix by which the portable kernels' names state the rounding."""
    return "" if attrs.rounding == TFLITE else f"_{attrs.rounding}"


def rounding_of(attrs: Any) -> str:
    """The rounding that attributes name; TFLite's for operators that name none."""
    return str(getattr(attrs, "rounding", TFLITE))


# The same roundings as TE expressions, for the operators' exact meanings.
#
# 64-bit intermediates keep every step free of overflow. Where the reference wraps to 32 bits, so does ``wrap32`` here.


info: Final = tensor_info


def i32(value: Any) -> Any:
    return value.astype("int32")


def i64(value: Any) -> Any:
    return value.astype("int64")


def const(value: int, dtype: str = "int64") -> Any:
    return tirx.const(value, dtype)


def clamp(value: Any, low: int, high: int) -> Any:
    dtype = dtype_of(value)
    return tirx.max(tirx.min(value, const(high, dtype)), const(low, dtype))


def chosen(condition: Any, one: Any, other: Any) -> Any:
    """``one`` where the condition holds, else ``other``. Both are evaluated."""
    return tirx.Select(condition, one, other)


def wrap32(value: Any) -> Any:
    """An int64 as its lower 32 bits read as signed, still in 64 bits.

    TVM would simplify casts to 32 bits and back away; masking between two additions of 2**31 it leaves alone.
    """
    half = const(1 << 31)
    return ((value + half) & const((1 << 32) - 1)) - half


def rounding_divide_by_power(value: Any, exponent: Any) -> Any:
    """int64 value / 2**exponent, halves away from zero; see the function of this name in ``fixedpoint``."""
    one, zero = const(1), const(0)
    mask = (one << exponent) - one
    threshold = (mask >> one) + tirx.Select(value < zero, one, zero)
    return (value >> exponent) + tirx.Select((value & mask) > threshold, one, zero)


def high_mul(value: Any, multiplier: Any) -> Any:
    """The doubled high word of a 32 by 32 bit product, as int64.

    It does not saturate: the two operands are never both -2**31, the one case that needs it.
    """
    return (i64(value) * i64(multiplier) + const(1 << 30)) >> const(31)


def requantize(acc: Any, multiplier: Any, shift: Any) -> Any:
    """int32 acc * multiplier / 2**31 * 2**shift, rounded twice; the result is an int32 held in 64 bits."""
    left = tirx.max(i64(shift), const(0))
    right = tirx.max(-i64(shift), const(0))
    shifted = wrap32(i64(acc) << left)
    return rounding_divide_by_power(high_mul(shifted, multiplier), right)


def requantize_const(acc: Any, multiplier: int, shift: int) -> Any:
    """``requantize`` with parameters that are known at compile time."""
    return requantize(acc, const(multiplier, "int32"), const(shift, "int32"))


def requantize_wide(acc: Any, multiplier: Any, shift: Any) -> Any:
    """int64 acc times a multiplier that is cut to 16 bits, rounded once: the reference's way for 16-bit activations.

    The multiplier is rounded to its upper 16 bits, or is 0x7FFF where rounding would carry into the sign. Accumulators
    of up to 48 bits, as the reference demands, keep the product below 2**63.
    """
    wide = i64(multiplier)
    reduced = tirx.Select(wide < const(0x7FFF0000), (wide + const(1 << 15)) >> const(16), const(0x7FFF))
    total = const(15) - i64(shift)
    return (acc * reduced + (const(1) << (total - const(1)))) >> total


def real(value: float) -> Any:
    return tirx.const(value, "float32")


def requantize_float32(acc: Any, multiplier: Any, shift: Any) -> Any:
    """(float32(acc) + rest) * float32(multiplier * 2**(shift - 31)), half to even, saturated; an int32 in 64 bits.

    Two quotients are exact: the upper 24 bits of the multiplier divided by a power of two, and its lower 7, the rest,
    divided by 128. So only the conversion of ``acc``, the addition of the rest and the product round.
    """
    rest = i32(multiplier) & const(RESTS - 1, "int32")
    scale = (i32(multiplier) - rest).astype("float32") / (const(1) << (const(31) - i64(shift))).astype("float32")
    total = acc.astype("float32") + rest.astype("float32") / real(RESTS)
    low, high = FLOAT32_LIMITS
    return i64(half_even(tirx.max(tirx.min(total * scale, real(high)), real(low))))


def half_even(value: Any) -> Any:
    """Rounds a float32 in the range of an int32 half to even."""
    return i32(tirx.nearbyint(value))


def requantize_as(rounding: str, acc: Any, multiplier: Any, shift: Any) -> Any:
    """Requantises ``acc`` in an operator's rounding; 16-bit activations come with an int64 ``acc``."""
    if rounding == FLOAT32:
        return requantize_float32(acc, multiplier, shift)
    return (requantize_wide if dtype_of(acc) == "int64" else requantize)(acc, multiplier, shift)


def round_half_even(value: Any, shift: Any, tolerance: int = 0) -> Any:
    """int64 value / 2**shift, rounded once; within ``tolerance`` of the middle the even neighbour is taken.

    ``above`` is the result with halves upwards, where all within the tolerance below a half go up too. For exactly
    those near a half, on either side, the bits behind the point of ``biased`` are at most twice the tolerance. Then
    ``above`` is the upper neighbour, and one less is even where it is odd.
    """
    bits, one = (const(shift) if isinstance(shift, int) else shift), const(1)
    biased = value + (one << (bits - one)) + const(tolerance)
    above = biased >> bits
    tie = (biased & ((one << bits) - one)) <= const(2 * tolerance)
    return above - tirx.Select(tie, above & one, const(0))


def finish(value: Any, zero_point: int, low: int, high: int, dtype: str) -> Any:
    """Add the zero point, clamp and narrow."""
    return clamp(value + const(zero_point, dtype_of(value)), low, high).astype(dtype)


def rounded_twice(total: Any, attrs: Any, dtype: str, what: str = "") -> Any:
    """The stored result of an operator that rounds as TFLite does; ``what`` precedes the names of its scale."""
    scaled = requantize_const(total, *(getattr(attrs, what + name) for name in ("multiplier", "shift")))
    return finish(scaled, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, dtype)


def rounded_once(total: Any, attrs: Any, dtype: str) -> Any:
    """The stored result of an operator that rounds once, for a total of ``RoundedOnce``; no tolerance is 0."""
    rounded = round_half_even(total, attrs.shift, getattr(attrs, "tolerance", 0))
    return finish(rounded, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, dtype)


def limits(dtype: str) -> tuple[int, int]:
    integers = np.iinfo(dtype)
    return int(integers.min), int(integers.max)


# Attributes of output stages: a scale as TFLite keeps it, and what it takes to round a real result once, half to even.


class Scaled(Attributes):
    """Is the base of attributes about one factor, ``multiplier * 2**(shift - 31)``."""

    multiplier: int
    shift: int


class RoundedOnce(Attributes, kw_only=True):
    """Totals are results times ``2**shift``; those within ``tolerance`` of the middle of two integers count as ties."""

    shift: int
    tolerance: int
    output_zero_point: int
    clamp_min: int
    clamp_max: int

    @staticmethod
    def stage(
        ratios: Ratios, magnitude: int, zero_point: int, dtype: str, clamp: tuple[int, int] | None = None
    ) -> dict[str, int]:
        """These attributes for totals of products with ``ratios`` of operands whose magnitudes sum to ``magnitude``."""
        low, high = clamp or limits(dtype)
        rounded = {"shift": ratios.shift, "tolerance": ratios.tolerance(magnitude)}
        return {**rounded, "output_zero_point": zero_point, "clamp_min": low, "clamp_max": high}
