"""Biases that are no whole number of products: what the output stage adds, so that each result is the real one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.ops.fixedpoint import RESTS, Int32s
from uaccel.ops.rounding import FLOAT32, MOST_WITH_REST, requantized, with_rests

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]

NOISE: Final = 2.0**-22
"""How far, relatively, what three roundings to float32 give may be from the real product."""
STEP: Final = 1 << 7
"""From one multiplier that is a float32 to the next."""
TRIALS: Final = [(part, STEP * tilt) for tilt, part in product((0, 1, -1, 2, -2, 3, -3, 4, -4), (0, 1, -1))]
"""What is added to the bias, in 128ths, and to the multiplier: the nearest ones first."""


@dataclass(frozen=True, eq=False)
class Channels:
    """Of each output channel: the bias in products, the real factor from a product to a step of the output, the same
    as ``float32_scales`` has it, and how far from zero its sums can be. ``low`` and ``high``: the steps that results
    have, the zero point taken off."""

    units: Reals
    factor: Reals
    multiplier: Int32s
    shift: Int32s
    reach: Ints
    low: int
    high: int

    def __getitem__(self, chosen: Any) -> Channels:
        return replace(
            self,
            units=self.units[chosen],
            factor=self.factor[chosen],
            multiplier=self.multiplier[chosen],
            shift=self.shift[chosen],
            reach=self.reach[chosen],
        )

    @property
    def apart(self) -> NDArray[np.bool_]:
        """Those whose bias has a rest that is more than float32's noise, and whose sums can be added to one."""
        real = np.abs(self.units - np.rint(self.units)) > NOISE * np.abs(self.units)
        return np.asarray(real & (self.reach + np.abs(self.units) < MOST_WITH_REST))


def carried(channels: Channels) -> tuple[Int32s, Int32s]:
    """Biases as whole numbers, and the multipliers with the rests.

    A rest has 7 bits. Where some sum would come out as another step than the real result, neighbours are tried.
    """
    parts = np.rint(channels.units).astype(np.int64) * RESTS
    multiplier = channels.multiplier.astype(np.int64)
    left = np.flatnonzero(channels.apart)
    parts[left] = np.rint(channels.units[left] * RESTS).astype(np.int64)
    sums, steps, counts = _around(channels[left])
    fewest = np.full(len(left), np.iinfo(np.int64).max)
    nearest = parts.copy()
    for part, tilt in TRIALS:
        open_ = np.flatnonzero(fewest)
        if not len(open_):
            break
        at = left[open_]
        trial = np.clip(channels.multiplier[at].astype(np.int64) + tilt, 1 << 30, (1 << 31) - STEP)
        wrong = _wrong(channels[at], nearest[at] + part, trial, (sums[open_], steps[open_], counts[open_]))
        better = wrong < fewest[open_]
        fewest[open_[better]] = wrong[better]
        parts[at[better]], multiplier[at[better]] = nearest[at[better]] + part, trial[better]
    return (parts // RESTS).astype(np.int32), with_rests(multiplier.astype(np.int32), parts % RESTS)


def _around(channels: Channels) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Of each channel and each step but the last the first sum with a larger result, and whether there is one."""
    steps = np.arange(channels.low, channels.high, dtype=np.int64)[None, :]
    middles = (steps + 0.5) / channels.factor[:, None] - channels.units[:, None]
    counts = np.abs(middles) <= channels.reach[:, None]
    first = np.where(counts, np.floor(middles), 0).astype(np.int64) + 1
    return first, np.broadcast_to(steps, first.shape), counts


def _wrong(channels: Channels, parts: Ints, multiplier: Ints, around: tuple[Ints, Ints, Any]) -> Ints:
    """How many steps begin at another sum than they should."""
    sums, steps, counts = around
    whole = (parts // RESTS)[:, None] + sums
    scale = with_rests(multiplier.astype(np.int32), parts % RESTS)[:, None], channels.shift[:, None]
    above = requantized(whole, *scale, FLOAT32) > steps
    below = requantized(whole - 1, *scale, FLOAT32) <= steps
    return np.asarray((counts & ~(above & below)).sum(axis=1), np.int64)
