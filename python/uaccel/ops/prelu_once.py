"""PReLU whose real result is rounded once, half to even: every element of a tensor of slopes is a factor of its own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import ModelError
from uaccel.model import Array, Quantisation
from uaccel.ops import exact
from uaccel.ops.base import register
from uaccel.ops.broadcast import BinaryOperator
from uaccel.ops.ratio import fixed_ratios, scale_fraction
from uaccel.ops.rounded import RoundedOnce
from uaccel.tvm_api import tirx

BITS = 30  # of the largest multiplier


@dataclass(frozen=True)
class PreluOnceAttrs(RoundedOnce):
    """``multiplier / 2**shift`` is input scale / output scale; those of negative elements stand in the second input."""

    zero_point: int
    multiplier: int


@register
class PreluOnce(BinaryOperator[PreluOnceAttrs]):
    """x * multiplier for x >= 0, x * slope for x < 0; slopes are int32."""

    name = "prelu_once"
    arguments = ("input", "slopes")
    kernel = "uaccel_prelu_once"

    def second_dtypes(self, dtype: str) -> tuple[str, ...]:
        return ("int32",)

    def first(self, value: Any, attrs: PreluOnceAttrs) -> Any:
        return exact.i64(value) - exact.const(attrs.zero_point)

    def second(self, value: Any, attrs: PreluOnceAttrs) -> Any:
        return exact.i64(value)

    def combine(self, x: Any, y: Any, attrs: PreluOnceAttrs, dtype: str) -> Any:
        factor = tirx.Select(x >= exact.const(0), exact.const(attrs.multiplier), y)
        return attrs.finish(x * factor, dtype)


def prelu_once_operands(
    given: Quantisation, output: Quantisation, dtype: str, slopes: NDArray[np.float32], clamp: tuple[int, int]
) -> tuple[PreluOnceAttrs, Array]:
    """Attributes, and the slopes as multipliers."""
    if not np.isfinite(slopes).all():
        raise ModelError("one of its slopes is no number")
    ratio = scale_fraction(given.scale) / scale_fraction(output.scale)
    ratios = fixed_ratios([ratio, *(ratio * Fraction(slope) for slope in slopes.ravel().tolist())], BITS)
    low, high = exact.limits(dtype)
    multiplier, *others = ratios.multipliers
    attrs = PreluOnceAttrs(
        zero_point=given.zero_point,
        multiplier=multiplier,
        shift=ratios.shift,
        tolerance=ratios.tolerance(high - low),
        output_zero_point=output.zero_point,
        clamp_min=clamp[0],
        clamp_max=clamp[1],
    )
    return attrs, np.array(others, np.int32).reshape(slopes.shape)
