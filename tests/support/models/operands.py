"""Describes operands of drawn nodes and calls: shapes, bounds, and the numbers that show a difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Operand:
    """Describes an operand: its shape, and bounds of its values; ``stored`` ones are constants of the file.

    ``values`` are given as they are; ``hostile`` operands also have zeros, halves, infinities, NaN, and extremes."""

    shape: tuple[int, ...] = ()
    low: float | None = None
    high: float | None = None
    stored: bool = False
    values: Any = None

    def array(self, dtype: str, rng: np.random.Generator, hostile: bool) -> Array:
        kind = np.dtype(dtype)
        if self.values is not None:
            return np.asarray(self.values).astype(kind)
        if self.low is not None and self.low == self.high:
            return np.full(self.shape, self.low, kind)
        if kind.kind == "b":
            return rng.integers(0, 2, self.shape).astype(kind)
        low, high = (-3 if self.low is None else self.low), (3 if self.high is None else self.high)
        if kind.kind == "f":
            made = rng.uniform(low, high, self.shape).astype(kind)
        else:
            info = np.iinfo(kind)
            low, high = (-20 if self.low is None else low), (20 if self.high is None else high)
            low, high = (low, high) if high >= info.min else (-high, -low)  # negative numbers of unsigned types
            made = rng.integers(max(int(low), info.min), min(int(high), info.max), self.shape, endpoint=True).astype(
                kind
            )
        if self.low is None and made.size:
            some = np.asarray(_special(kind, hostile), kind)
            places = rng.permutation(made.size)[: min(len(some), max(1, made.size // 2))]
            made.reshape(-1)[places] = some[rng.permutation(len(some))[: len(places)]]
        return np.asarray(made)


def _special(kind: np.dtype[Any], hostile: bool) -> list[Any]:
    if kind.kind == "f":
        return [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0, -1.0] + ([np.inf, -np.inf, np.nan] * 3 if hostile else [])
    info = np.iinfo(kind)
    return [0.0, 1.0, 2.0, 7.0] + ([info.min, info.max, info.min + 1, info.max - 1] * 2 if hostile else [])


def stored(values: Any) -> Operand:
    made = np.asarray(values)
    return Operand(made.shape, stored=True, values=made)


def ints(*values: int) -> Operand:
    return stored(np.asarray(values, np.int64))


def given(shape: tuple[int, ...], low: float, high: float) -> Operand:
    return Operand(shape, low, high)


def weights(*shape: int) -> Operand:
    return Operand(shape, stored=True)
