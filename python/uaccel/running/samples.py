"""Inputs for a run when the user gives none: a ramp, and for verification those that show what a ramp hides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.session.inputs import ramp
from uaccel.session.tensors import TensorType

Array = NDArray[Any]
SAMPLES: Final = 8
"""So many are verified with, where the user says nothing."""
WIDE: Final = 127
"""The largest number in tensors of 32 and 64 bits, which often are indices; the ramp has no larger ones either."""


def default_samples(tensors: Sequence[TensorType], count: int, seed: int = 0) -> list[list[Array]]:
    """The ramp first, then zeros, the extremes, one and the other by turns, and random numbers from ``seed``."""
    made = [
        [ramp(tensor) for tensor in tensors],
        [np.zeros(tensor.shape, tensor.dtype) for tensor in tensors],
        [_filled(tensor, 0) for tensor in tensors],
        [_filled(tensor, 1) for tensor in tensors],
        [_by_turns(tensor) for tensor in tensors],
    ]
    generator = np.random.default_rng(seed)
    while len(made) < count:
        made.append([_random(tensor, generator) for tensor in tensors])
    return made[:count]


def _limits(dtype: str) -> tuple[float, float]:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return 0, 1
    if kind.kind not in "iu":
        return -1.0, 1.0
    info = np.iinfo(kind)
    return (info.min, info.max) if kind.itemsize < 4 else (max(info.min, -WIDE), WIDE)


def _filled(tensor: TensorType, side: int) -> Array:
    return np.full(tensor.shape, _limits(tensor.dtype)[side], tensor.dtype)


def _by_turns(tensor: TensorType) -> Array:
    low, high = _limits(tensor.dtype)
    return np.resize(np.array([low, high], tensor.dtype), tensor.shape)


def _random(tensor: TensorType, generator: np.random.Generator) -> Array:
    low, high = _limits(tensor.dtype)
    if np.dtype(tensor.dtype).kind == "f":
        return generator.uniform(low, high, tensor.shape).astype(tensor.dtype)
    return generator.integers(int(low), int(high), tensor.shape, endpoint=True).astype(tensor.dtype)
