"""Finds the polynomials and tables of ``uaccel.lookup16``: all 65,536 results are right, in few bytes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import need
from uaccel.model import Array
from uaccel.ops.lookup16 import COLUMNS, STORED, Lookup16Attrs

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]

LENGTHS: Final = (6, 7, 8, 9, 10)
FRACTIONS: Final = (22, 19, 16)
FURTHEST: Final = 1 << 18
"""Steps: a result beyond is cut off long before."""
LARGEST: Final = 1 << 15
"""Bytes of a function."""
NUDGES: Final = (0, 1, -1, 2, -2, 4, -4)
"""What is tried of the fraction where a result lies near the middle between two steps: in the last bits."""


@dataclass(frozen=True, eq=False)
class _Try:
    rows: Ints
    right: NDArray[np.bool_]
    bits: int
    fraction: int

    @property
    def size(self) -> int:
        return self.rows.size * 4 + int((~self.right).sum()) * (2 << self.bits)


def segments_of(steps: Reals, low: int, high: int, function: str) -> tuple[Lookup16Attrs, Array, Array]:
    """``steps``: of each value from -32768 the real result in steps of the output, with its zero point."""
    bounded = np.clip(np.nan_to_num(steps, nan=-FURTHEST), -FURTHEST, FURTHEST)
    results = np.clip(np.rint(bounded), low, high).astype(np.int64)
    tries = (_tried(bounded, results, bits, fraction, (low, high)) for bits, fraction in product(LENGTHS, FRACTIONS))
    best = min(tries, key=lambda found: found.size)
    need(best.size <= LARGEST, f"its results of 16 bits would take {best.size} bytes, at most {LARGEST} are worth it")
    there = np.flatnonzero(~best.right)
    best.rows[there] = 0
    best.rows[there, 0] = np.arange(len(there)) << best.bits
    best.rows[there, COLUMNS - 1] = STORED
    stored = results.reshape(-1, 1 << best.bits)[there].reshape(-1)
    attrs = Lookup16Attrs(function, best.bits, best.fraction, low, high)
    return attrs, best.rows.astype(np.int32), (stored if len(stored) else np.zeros(1)).astype(np.int16)


def _tried(steps: Reals, results: Ints, bits: int, fraction: int, bounds: tuple[int, int]) -> _Try:
    """Least squares, each segment by itself."""
    places = np.arange(1 << bits) / (1 << bits)
    powers = np.stack([places**power for power in range(4)], axis=1)
    factors = steps.reshape(-1, 1 << bits) @ np.linalg.pinv(powers).T
    whole = np.floor(factors[:, 0]).astype(np.int64)
    factors[:, 0] -= whole
    fixed = np.rint(np.ldexp(factors, fraction))
    fits = np.abs(fixed).sum(axis=1) < 2**30
    rows = np.concatenate([whole[:, np.newaxis], np.where(fits[:, np.newaxis], fixed, 0).astype(np.int64)], axis=1)
    wanted, right = results.reshape(-1, 1 << bits), np.zeros(len(rows), bool)
    for nudge in NUDGES:
        left = np.flatnonzero(fits & ~right)
        trial = rows[left] + np.array([0, nudge, 0, 0, 0])
        good = (_evaluated(trial, bits, fraction, bounds) == wanted[left]).all(axis=1)
        rows[left[good]], right[left[good]] = trial[good], True
    return _Try(rows, right, bits, fraction)


def _evaluated(rows: Ints, bits: int, fraction: int, bounds: tuple[int, int]) -> Ints:
    places = np.arange(1 << bits)
    whole, rest, line, square, cube = (rows[:, column, np.newaxis] for column in range(COLUMNS))
    total = ((((((cube * places) >> bits) + square) * places >> bits) + line) * places >> bits) + rest
    return np.clip(whole + ((total + (1 << (fraction - 1))) >> fraction), *bounds)
