"""What is known of a float model's constants: their values, and the integers that quantised ones are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array


@dataclass(frozen=True)
class KnownIntegers:
    """value = scales * (integers - zero_points); the latter two broadcast against the former."""

    integers: Array
    scales: NDArray[np.float32]
    zero_points: Array

    @property
    def values(self) -> NDArray[np.float32]:
        centred = (self.integers.astype(np.int64) - self.zero_points).astype(np.float32)
        return np.asarray(centred * self.scales, np.float32)

    @property
    def centred(self) -> Array:
        """The integers less their zero points."""
        return np.asarray(self.integers.astype(np.int64) - self.zero_points)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.integers.shape)

    def each(self, change: Callable[[Array], Array]) -> KnownIntegers:
        """The same change of axes for the integers and for what belongs to them."""
        return KnownIntegers(change(self.integers), change(self.scales), change(self.zero_points))

    def reshaped(self, shape: tuple[int, ...]) -> KnownIntegers:
        integers = self.integers.reshape(shape)
        if self.scales.size == 1 and self.zero_points.size == 1:
            ones = (1,) * len(shape)
            return KnownIntegers(integers, self.scales.reshape(ones), self.zero_points.reshape(ones))
        parts = (np.broadcast_to(part, self.integers.shape) for part in (self.scales, self.zero_points))
        return KnownIntegers(integers, *(part.reshape(shape) for part in parts))

    def scales_along(self, axis: int) -> NDArray[np.float32] | None:
        """One scale for each slice along an axis, None where they differ within a slice."""
        return _along(self.scales, axis, self.shape)

    def symmetric(self) -> bool:
        return not self.zero_points.any()


def _along(array: Array, axis: int, shape: tuple[int, ...]) -> Array | None:
    full = np.moveaxis(np.broadcast_to(array, shape), axis, 0).reshape(shape[axis], -1)
    return full[:, 0].copy() if bool((full == full[:, :1]).all()) else None


def along_axis(array: Array, axis: int, rank: int) -> Array:
    """One entry, or one for each slice along an axis, so that it broadcasts against a tensor of this rank."""
    if array.size == 1:
        return array.reshape((1,) * rank)
    return array.reshape(tuple(-1 if i == axis % rank else 1 for i in range(rank)))
