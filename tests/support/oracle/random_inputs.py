"""Inputs that find faults: ramps, extremes and noise over the range of each input's type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from support.models.tflite_view import TensorInfo, view

Array = npt.NDArray[Any]
Range = tuple[int | float, int | float]

FLOAT_RANGE: Range = (-8.0, 8.0)


def random_inputs(
    model: bytes | Sequence[TensorInfo], seed: int, n: int, limits: Range | None = None
) -> list[list[Array]]:
    """`n` input sets, one array per input of the model, the same for the same arguments.

    The first are structured: the ramp of `uaccel run`, all lowest, all highest, lowest and highest in turn,
    all at the zero point, and a falling ramp. After them come in turn uniform noise, noise near the zero
    point, and noise in which many elements are extreme. `limits` bounds the values of all inputs; without
    it integers take their type's whole range and floats `FLOAT_RANGE`.
    """
    specs = view(model).inputs if isinstance(model, bytes) else tuple(model)
    generator = np.random.RandomState(seed)
    return [[_draw(spec, number, generator, limits) for spec in specs] for number in range(n)]


def _draw(spec: TensorInfo, number: int, generator: np.random.RandomState, limits: Range | None) -> Array:
    low, high = limits or _type_range(spec.dtype)
    count = int(np.prod(spec.shape, dtype=np.int64))
    zero = min(max(spec.zero_points[0] if spec.zero_points else 0, low), high)
    structured = _structured(count, low, high, zero, np.dtype(spec.dtype).kind == "f")
    if number < len(structured):
        values = structured[number]()
    else:
        noise = (_uniform, _near_zero, _spiky)[number % 3]
        values = noise(generator, count, low, high, zero)
    if np.dtype(spec.dtype).kind != "f":
        values = np.rint(values)
    return _cast(np.clip(values, low, high), spec.dtype).reshape(spec.shape)


def _type_range(dtype: str) -> Range:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return FLOAT_RANGE
    if kind.kind == "b":
        return (0, 1)
    return (int(np.iinfo(kind).min), int(np.iinfo(kind).max))


def _structured(count: int, low: float, high: float, zero: float, is_float: bool) -> list[Callable[[], Array]]:
    index = np.arange(count)
    step = (high - low) / 256 if is_float else 1
    period = 256 if is_float else min(high - low + 1, 65536)
    return [
        lambda: ((7 * index + 3) % period) * step + low,
        lambda: np.full(count, float(low)),
        lambda: np.full(count, float(high)),
        lambda: np.where(index % 2 == 0, float(low), float(high)),
        lambda: np.full(count, float(zero)),
        lambda: np.linspace(high, low, count),
    ]


def _uniform(generator: np.random.RandomState, count: int, low: float, high: float, _zero: float) -> Array:
    return generator.uniform(low, high, count)


def _near_zero(generator: np.random.RandomState, count: int, low: float, high: float, zero: float) -> Array:
    return zero + generator.uniform(-0.06, 0.06, count) * (high - low)


def _spiky(generator: np.random.RandomState, count: int, low: float, high: float, zero: float) -> Array:
    choice = generator.randint(0, 4, count)
    return np.choose(choice, [generator.uniform(low, high, count), np.full(count, low), np.full(count, high), zero])


def _cast(values: Array, dtype: str) -> Array:
    """To the type, where the highest int64 as a float would be one too many."""
    kind = np.dtype(dtype)
    if kind == np.int64:
        values = np.clip(values, -(2.0**63), 2.0**63 - 1024)
    return values.astype(kind)
