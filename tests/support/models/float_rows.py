"""Layers of floats as rows: a call of an operator of ours, and the inputs that it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.models.relax_modules import module_of
from uaccel.ops.conv_float import BOTH, LOWER, NONE, Conv2dFloat, Conv2dFloatAttrs, FloatSumAttrs, FullyConnectedFloat
from uaccel.ops.operator import IntegerOperator, constant, get
from uaccel.ops.pool import AveragePool2dFloat, MaxPool2dFloat, PoolFloatAttrs
from uaccel.tvm_api import relax

Array = NDArray[Any]


@dataclass(frozen=True)
class FloatRow:
    """``shapes`` of the inputs, ``constants`` behind the first of them."""

    operator: type[IntegerOperator[Any]]
    shapes: Sequence[tuple[int, ...]]
    attrs: Any
    constants: Sequence[Array] = field(default=())

    def inputs(self, rng: np.random.Generator, size: float) -> list[Array]:
        """Some of them zeros of either sign."""
        values = [(rng.normal(size=shape) * size).astype(np.float32) for shape in self.shapes]
        for value in values:
            value[rng.random(value.shape) < 0.1] *= np.float32(0)
        return values

    def call(self, *given: Any) -> Any:
        return get(self.operator)(given[0], *map(constant, self.constants), *given[1:], attrs=self.attrs)


def _floats(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def conv(
    shape: tuple[int, int, int, int],
    channels: int,
    kernel: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
    *,
    groups: int = 1,
    bounds: Sequence[float] = (),
    adds: bool = False,
    bias: bool = True,
    half: bool = False,
) -> FloatRow:
    """``bounds``: a lower one, or both. ``half``: weights that are numbers of half precision, of any size."""
    attrs = Conv2dFloatAttrs(*_activation(bounds), strides, padding, dilation, groups)
    weights = (_halves if half else _floats)(1, channels, *kernel, shape[3] // groups)
    extents = (
        (shape[1 + a] + padding[a] + padding[2 + a] - (kernel[a] - 1) * dilation[a] - 1) // strides[a] + 1
        for a in (0, 1)
    )
    shapes = [shape, (shape[0], *extents, channels)] if adds else [shape]
    return FloatRow(Conv2dFloat, shapes, attrs, [weights, _floats(2, channels) * np.float32(bias)])


def _halves(seed: int, *shape: int) -> Array:
    """Of all exponents, the smallest numbers and zeros of either sign among them."""
    bits = np.random.default_rng(seed).integers(0, 1 << 16, shape).astype(np.uint16)
    bits[bits & 0x7C00 == 0x7C00] &= 0x83FF
    return bits.view(np.float16).astype(np.float32)


def dense(
    rows: int, depth: int, units: int, *, bounds: Sequence[float] = (), adds: bool = False, half: bool = False
) -> FloatRow:
    shapes = [(rows, depth), (rows, units)] if adds else [(rows, depth)]
    constants = [(_halves if half else _floats)(3, units, depth), _floats(4, units)]
    return FloatRow(FullyConnectedFloat, shapes, FloatSumAttrs(*_activation(bounds)), constants)


def _activation(bounds: Sequence[float]) -> tuple[str, float, float]:
    lower, upper, *_ = (*bounds, 0.0, 0.0)
    return (NONE, LOWER, BOTH)[len(bounds)], lower, upper


def pool(
    kind: str,
    shape: tuple[int, ...],
    window: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
    *,
    counts: int = 0,
) -> FloatRow:
    operator = MaxPool2dFloat if kind == "max" else AveragePool2dFloat
    return FloatRow(operator, [shape], PoolFloatAttrs(window, strides, padding, dilation, counts))


ROWS: Mapping[str, FloatRow] = {
    "conv": conv((1, 7, 9, 3), 6, (3, 3), padding=(1, 1, 1, 1), bounds=(0.0,)),
    "conv, one channel in": conv((1, 13, 5, 1), 8, (10, 4), (2, 2), (4, 1, 5, 2)),
    "conv, strides and dilation": conv((2, 9, 8, 4), 5, (2, 3), (2, 1), (0, 2, 1, 1), (2, 2), bounds=(-1.0, 1.5)),
    "conv, groups": conv((1, 6, 5, 6), 9, (3, 2), padding=(1, 0, 1, 1), groups=3),
    "conv, more channels, three pixels left over": conv((1, 7, 5, 4), 8, (3, 3), padding=(1, 1, 1, 1)),
    "conv, added": conv((1, 6, 5, 3), 4, (3, 3), padding=(1, 1, 1, 1), bounds=(0.0,), adds=True),
    "conv, a window of borders alone": conv((1, 2, 2, 2), 4, (2, 2), padding=(3, 3, 3, 3)),
    "pointwise": conv((1, 5, 7, 8), 12, (1, 1), bounds=(0.0, 6.0)),
    "pointwise, batches": conv((3, 3, 3, 5), 7, (1, 1)),
    "pointwise, strides": conv((1, 7, 7, 4), 4, (1, 1), (2, 2)),
    "pointwise, added": conv((1, 5, 3, 8), 8, (1, 1), adds=True),
    "conv, no bias": conv((1, 4, 4, 3), 4, (3, 3), bias=False),
    "pointwise, no bias": conv((1, 3, 3, 4), 5, (1, 1), bias=False),
    "depthwise, no bias": conv((1, 4, 6, 4), 4, (3, 3), padding=(1, 1, 1, 1), groups=4, bias=False),
    "depthwise": conv((1, 9, 7, 8), 8, (3, 3), padding=(1, 1, 1, 1), groups=8, bounds=(0.0, 6.0)),
    "depthwise, strides": conv((1, 9, 8, 5), 5, (3, 3), (2, 2), (0, 0, 1, 1), groups=5),
    "depthwise, dilation": conv((2, 9, 11, 4), 4, (3, 2), (1, 1), (2, 1, 2, 3), (2, 3), groups=4),
    "depthwise, times two": conv((1, 5, 5, 3), 6, (3, 3), padding=(1, 1, 1, 1), groups=3),
    "depthwise, added": conv((1, 5, 6, 6), 6, (3, 3), padding=(1, 1, 1, 1), groups=6, bounds=(0.0,), adds=True),
    "depthwise, wide": conv((1, 3, 3, 4), 4, (5, 5), padding=(2, 2, 2, 2), groups=4),
    "dense": dense(1, 17, 10),
    "conv, half precision": conv((1, 7, 5, 6), 7, (3, 3), padding=(1, 1, 1, 1), bounds=(0.0,), half=True),
    "pointwise, half precision": conv((1, 5, 5, 40), 12, (1, 1), half=True),
    "conv, groups, half precision": conv((1, 6, 5, 6), 9, (3, 2), padding=(1, 0, 1, 1), groups=3, half=True),
    "dense, half precision": dense(5, 33, 10, half=True),
    "dense, rows": dense(6, 9, 5, bounds=(0.0,)),
    "dense, added": dense(3, 8, 8, adds=True),
    "mean": pool("mean", (1, 7, 9, 6), (2, 3), (2, 1), (1, 0, 0, 2)),
    "mean, borders counted": pool("mean", (1, 6, 6, 5), (3, 3), (2, 2), (1, 1, 1, 1), counts=1),
    "mean of all": pool("mean", (2, 5, 4, 9), (5, 4)),
    "max": pool("max", (1, 8, 7, 5), (3, 2), (2, 2), (1, 1, 1, 0)),
    "max, dilation": pool("max", (1, 9, 9, 4), (3, 3), (1, 2), (2, 2, 2, 2), (2, 2)),
}


def together(rows: Mapping[str, FloatRow]) -> Any:
    """A module with an input for each input of each row, and an output a row."""
    rng = np.random.default_rng(0)
    given = [row.inputs(rng, 1.0) for row in rows.values()]

    def build(*variables: Any) -> Any:
        left = iter(variables)
        return relax.Tuple([row.call(*(next(left) for _ in row.shapes)) for row in rows.values()])

    return module_of([value for values in given for value in values], build)


def inputs_of(rows: Mapping[str, FloatRow], seed: int) -> list[Array]:
    """Those of every third seed are hardly normal numbers, so that their products are too small to be."""
    rng, size = np.random.default_rng(seed), 1e-38 if seed % 3 == 2 else 1.0
    return [value for row in rows.values() for value in row.inputs(rng, size)]


def assert_same_bits(got: Array, wanted: Array, what: str) -> None:
    """Of floats: zeros of the same sign, and numbers too small to be normal; any NaN for a NaN."""
    assert got.shape == wanted.shape, f"{what}: {got.shape}, wanted {wanted.shape}"
    same = (got.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(got) & np.isnan(wanted))
    first = np.argwhere(~same)[:1]
    assert same.all(), (
        f"{what}: {(~same).sum()} of {same.size} differ, first at {first}: {got[~same][0]!r}, {wanted[~same][0]!r}"
    )
