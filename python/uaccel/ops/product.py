"""Multiplication whose real result is rounded once, half to even."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uaccel.model import Quantisation
from uaccel.ops import exact
from uaccel.ops.base import register
from uaccel.ops.broadcast import BinaryOperator
from uaccel.ops.ratio import fixed_ratios, most_that_counts, scale_fraction
from uaccel.ops.rounded import RoundedOnce

BITS = 30  # of the multiplier: a product of int16 elements takes 33, with its sign


@dataclass(frozen=True)
class ProductAttrs(RoundedOnce):
    """``multiplier / 2**shift`` is input scale * input scale / output scale."""

    zero_point1: int
    zero_point2: int
    multiplier: int


@register
class Product(BinaryOperator[ProductAttrs]):
    """(input1 - zero_point1) * (input2 - zero_point2) * ratio, rounded once, half to even."""

    name = "product"
    kernel = "uaccel_product"

    def first(self, value: Any, attrs: ProductAttrs) -> Any:
        return exact.i64(value) - exact.const(attrs.zero_point1)

    def second(self, value: Any, attrs: ProductAttrs) -> Any:
        return exact.i64(value) - exact.const(attrs.zero_point2)

    def combine(self, x: Any, y: Any, attrs: ProductAttrs, dtype: str) -> Any:
        return attrs.finish(x * y * exact.const(attrs.multiplier), dtype)


def product_attrs(
    first: Quantisation,
    second: Quantisation,
    output: Quantisation,
    dtype: str,
    *,
    clamp: tuple[int, int] | None = None,
) -> ProductAttrs:
    """first * second; ``clamp`` bounds the stored result, for an activation that comes after."""
    ratio = scale_fraction(first.scale) * scale_fraction(second.scale) / scale_fraction(output.scale)
    ratios = fixed_ratios([ratio], BITS)
    low, high = exact.limits(dtype)
    return ProductAttrs(
        zero_point1=first.zero_point,
        zero_point2=second.zero_point,
        multiplier=ratios.multipliers[0],
        shift=ratios.shift,
        tolerance=ratios.tolerance(most_that_counts(ratio, (high - low) ** 2, high - low)),
        output_zero_point=output.zero_point,
        clamp_min=clamp[0] if clamp else low,
        clamp_max=clamp[1] if clamp else high,
    )
