"""Means as convolutions with weights of 1; real means only where the output stage gives each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import frexp, prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.accelerator import FLOAT32, OpCall, sums
from uaccel.streams import Shape, Window, window_of

from .layers import Clamp

NEIGHBOURS: Final = (0, 1, -1, 2, -2)
"""Scales that are tried: steps of the last bit from the nearest single-precision number."""
MOST_SUMS: Final = 1 << 22


@dataclass(frozen=True)
class Mean:
    """``parameters``: bias, multiplier and shift of each channel."""

    window: Window
    clamp: Clamp
    parameters: tuple[int, int, int]


def image_of(call: OpCall) -> Shape | None:
    """What the mean is of, as rows and columns; None where something else lies between its axes."""
    shape, axes = call.operands[0].info.shape, getattr(call.attrs, "axes", (1, 2))
    if len(shape) == 4 and axes == (1, 2):
        return Shape(*shape)
    first, behind = axes[0], axes[-1] + 1
    if axes != tuple(range(first, behind)):
        return None
    return Shape(prod(shape[:first]), prod(shape[first:behind]), 1, prod(shape[behind:]))


def mean_of(call: OpCall) -> Mean | str:
    """How the machine computes it, or why it cannot."""
    attrs, image = call.attrs, image_of(call)
    if image is None:
        return f"it is the mean along axes {attrs.axes} of {call.operands[0].info}, wanted axes that follow each other"
    window = Window((image.rows, image.columns))
    if call.op == "uaccel.mean":
        clamp = Clamp(attrs.input_zero_point, attrs.output_zero_point, single=attrs.rounding == FLOAT32)
        bias = -attrs.input_zero_point * window.taps
        return Mean(window, clamp, (bias, *sums.mean_factor(attrs, window.taps)))
    if call.op == "uaccel.window_mean":
        multipliers = call.operands[1].value
        if len(multipliers) > 1:
            most = attrs.least + len(multipliers) - 1
            return f"its windows have {attrs.least} to {most} elements, wanted the same number for each"
        multiplier = int(multipliers[0])
        window = window_of(attrs, attrs.window)
    else:
        multiplier = attrs.multiplier
    rounded = Real(multiplier, attrs.shift, attrs.tolerance, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max)
    scale = single_scale(rounded, window.taps, attrs.input_zero_point)
    if scale is None:
        return "no scale in single precision gives each of its means"
    clamp = Clamp(attrs.input_zero_point, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, single=True)
    return Mean(window, clamp, (-attrs.input_zero_point * window.taps, *scale))


@dataclass(frozen=True)
class Real:
    """``sum * multiplier / 2**shift``, rounded once: to even what lies within the tolerance of the middle."""

    multiplier: int
    shift: int
    tolerance: int
    zero_point: int
    clamp_min: int
    clamp_max: int

    def rounded(self, sums_: NDArray[np.int64]) -> NDArray[np.int64]:
        biased = sums_ * self.multiplier + (1 << self.shift - 1) + self.tolerance
        above = biased >> self.shift
        tie = (biased & (1 << self.shift) - 1) <= 2 * self.tolerance
        return self.clamped(above - (tie & above & 1))

    def clamped(self, value: NDArray[Any]) -> NDArray[np.int64]:
        return np.asarray(np.clip(value + self.zero_point, self.clamp_min, self.clamp_max), np.int64)


@cache
def single_scale(real: Real, taps: int, zero_point: int) -> tuple[int, int] | None:
    """Multiplier and shift with which the output stage's FLOAT32 gives what ``real`` gives, for every sum there is."""
    least, most = taps * (-128 - zero_point), taps * (127 - zero_point)
    if most - least > MOST_SUMS:
        return None
    every = np.arange(least, most + 1)
    wanted = real.rounded(every)
    nearest = np.float32(real.multiplier * 2.0**-real.shift)
    for steps in NEIGHBOURS:
        scale = nearest + np.float32(steps) * np.spacing(nearest)
        if np.array_equal(real.clamped(np.rint(every.astype(np.float32) * scale)), wanted):
            mantissa, shift = frexp(float(scale))
            return int(mantissa * (1 << 31)), shift
    return None
