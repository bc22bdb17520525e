"""Quantised tensors while a model is rewritten: integers, the grid of real numbers they stand for, and how they lie."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from uaccel.model import Quantisation, Shape
from uaccel.ops.axes import Layout, compose

OFFSETS = {"int8": 0, "uint8": 128, "int16": 0, "uint16": 32768}
"""What is taken from stored values of a type of the model to hold them as signed integers."""

WIDER = 128
"""Steps of 16 bits in one of 8: a power of two, so that no scale loses a bit."""

HELD = {"int8": "int8", "uint8": "int8", "int16": "int16", "uint16": "int16"}


@dataclass(frozen=True)
class Grid:
    """real = scale * (held - zero_point), in single precision."""

    scale: float
    zero_point: int
    dtype: str

    @property
    def limits(self) -> tuple[int, int]:
        integers = np.iinfo(self.dtype)
        return int(integers.min), int(integers.max)

    @property
    def quantisation(self) -> Quantisation:
        return Quantisation((self.scale,), (self.zero_point,))

    @property
    def wide(self) -> Grid:
        """One of 16 bits that has every number of this one."""
        return self if self.dtype == "int16" else Grid(self.scale / WIDER, 0, "int16")

    def held(self, real: float) -> int:
        """The integer that stands for a real number, as QuantizeLinear rounds it."""
        low, high = self.limits
        steps = np.float32(real) / np.float32(self.scale)
        return int(np.clip(np.rint(steps) + self.zero_point, low, high))


def grid_of(scale: float, zero_point: int, declared: str) -> Grid:
    """The grid of a tensor as the model declares it; KeyError for a type that is not held as integers."""
    return Grid(float(np.float32(scale)), zero_point - OFFSETS[declared], HELD[declared])


@dataclass(frozen=True, eq=False)
class Integers:
    """``stored`` is the Relax expression of the held integers with their axes in the order ``layout``.

    ``flat_of``: what this tensor is a reshape of, where nothing but a reshape was asked for yet and ``stored`` is None.
    """

    shape: Shape
    grid: Grid
    layout: Layout
    stored: Any
    flat_of: Integers | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def stored_shape(self) -> Shape:
        return compose(self.shape, self.layout)

    def on(self, grid: Grid) -> Integers:
        """The same integers, standing for other numbers."""
        return self if grid == self.grid else replace(self, grid=grid)

    def permuted(self, axes: Layout) -> Integers:
        """With its axes named in another order; nothing moves."""
        shape = compose(self.shape, axes)
        return Integers(shape, self.grid, tuple(axes.index(axis) for axis in self.layout), self.stored)


CHANNELS_LAST: dict[int, Layout] = {2: (0, 1), 3: (0, 2, 1), 4: (0, 2, 3, 1)}
