"""The two ways in which accumulators become results.

TFLite's integers round twice. Models from ONNX and PyTorch requantise in single precision: the accumulator becomes a
float32, is multiplied by one float32, and the product is rounded half to even. Both keep their scale as a multiplier
and a shift: ``multiplier * 2**(shift - 31)``, which for the second kind is exactly the float32. The bits of a
multiplier that a float32 leaves free hold the rest of a bias that is no whole number of products (``with_rests``).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uaccel.errors import ModelError
from uaccel.ops.fixedpoint import Int32s, multiply_by_quantized_multiplier, requantize_float32

TFLITE: Final = "tflite"
FLOAT32: Final = "float32"
ROUNDINGS: Final = (TFLITE, FLOAT32)

LARGEST: Final = 2.0**30
"""Scales are below it."""
SMALLEST: Final = 2.0**-32
"""No accumulator of 32 bits comes above one half with this scale, so that smaller ones mean the same: zero."""


def float32_scale(scale: float) -> tuple[int, int]:
    """``float32_scales`` of one."""
    multipliers, shifts = float32_scales(np.float32(scale))
    return int(multipliers[0]), int(shifts[0])


def float32_scales(scales: ArrayLike, wide: bool = False) -> tuple[Int32s, Int32s]:
    """Multipliers of 24 bits and shifts whose values are exactly these, which are rounded to float32 if they are not.

    What a scale below ``SMALLEST`` gives, zero, is what ``SMALLEST`` gives; but for accumulators of 64 bits (``wide``).
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


MOST_WITH_REST: Final = 1 << 24
"""A sum that a rest is added to is a float32 to the last bit."""


def with_rests(multipliers: Int32s, rests: ArrayLike) -> Int32s:
    """Multipliers of ``float32_scales`` that also add so many 128ths, 0 to 127, to each sum."""
    return np.asarray(multipliers + np.asarray(rests, np.int32), np.int32)


def requantized(acc: ArrayLike, multiplier: ArrayLike, shift: ArrayLike, rounding: str) -> NDArray[np.int64]:
    """On numpy; ``acc`` is an int32."""
    if rounding == FLOAT32:
        return requantize_float32(acc, multiplier, shift)
    return multiply_by_quantized_multiplier(acc, multiplier, shift)


def check_rounding(attrs: Any, what: str) -> None:
    """For type rules."""
    if attrs.rounding not in ROUNDINGS:
        raise TypeError(f"{what}: rounding {attrs.rounding!r}, wanted {' or '.join(map(repr, ROUNDINGS))}")


def kernel_suffix(attrs: Any) -> str:
    """How the portable kernels' names tell the rounding."""
    return "" if attrs.rounding == TFLITE else f"_{attrs.rounding}"


def rounding_of(attrs: Any) -> str:
    """That of an operator's attributes, whatever the operator."""
    return str(getattr(attrs, "rounding", TFLITE))
