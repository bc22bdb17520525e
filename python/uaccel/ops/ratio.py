"""Ratios of scales as integers, for operators that compute the real result and round it once, half to even.

Scales are float32 numbers, so every ratio of them is a fraction. It is held with 30 bits and more, where float32 has
24; a short binary fraction is held exactly. What cannot be held exactly could miss a tie, a result in the middle of two
integers; so results as near to the middle as the multipliers err count as ties: the ``tolerance``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from uaccel.errors import ModelError

LONGEST_SHIFT = 62  # products and what is added to round them fit 64 bits
NARROWEST = 8  # bits of a step that the tolerance leaves alone


@dataclass(frozen=True)
class Ratios:
    """Each ratio is ``multiplier / 2**shift``; ``exact`` where that loses nothing."""

    multipliers: tuple[int, ...]
    shift: int
    exact: bool

    def tolerance(self, magnitude: int) -> int:
        """How far a sum of products may lie from what it stands for, in units of ``2**-shift``.

        ``magnitude`` bounds the sum of the operands' magnitudes.
        """
        return 0 if self.exact else min((magnitude + 1) // 2, (1 << self.shift) >> NARROWEST)


def scale_fraction(scale: float) -> Fraction:
    """A scale as float32 holds it."""
    held = float(np.float32(scale))
    if not (math.isfinite(held) and held > 0):
        raise ModelError(f"a scale is {float(scale):.9g}; scales are positive numbers: quantise the model again")
    return Fraction(held)


def fixed_ratios(ratios: Sequence[Fraction], bits: int) -> Ratios:
    """Multipliers of at most ``bits`` bits, the largest of just as many, that share a power of two."""
    largest = max(abs(ratio) for ratio in ratios)
    shift = min(bits - _integer_bits(largest), LONGEST_SHIFT)
    if _scaled(largest, shift) == 1 << bits:
        shift -= 1
    if shift < 1:
        raise ModelError(
            f"its quantisation scales give the factor {float(largest):.6g}, at most {float(1 << (bits - 1)):.6g} is "
            "possible: the output's scale is too small; quantise the model again"
        )
    multipliers = tuple(_scaled(ratio, shift) for ratio in ratios)
    pairs = zip(multipliers, ratios, strict=True)
    return Ratios(multipliers, shift, all(Fraction(m, 1 << shift) == ratio for m, ratio in pairs))


def most_that_counts(ratio: Fraction, largest: int, steps: int) -> int:
    """The largest operand, of all up to ``largest``, whose result ``steps`` do not saturate."""
    return min(largest, int((steps + 1) / ratio) + 1)


def _integer_bits(ratio: Fraction) -> int:
    """The least n with ratio < 2**n; negative for small ratios."""
    bits = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    return bits + (ratio >= Fraction(2) ** bits)


def _scaled(ratio: Fraction, shift: int) -> int:
    return round(ratio * Fraction(2) ** shift)
