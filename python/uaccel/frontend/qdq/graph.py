"""Quantised tensors, and the float model around them to be asked about."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array, Origin, Quantisation, Shape
from uaccel.ops.operator import DEQUANTIZE, PERMUTE, QUANTIZE, RESHAPING, info_of, name_of, permuted_axes
from uaccel.ops.storage import Layout, compose, identity
from uaccel.tvm_api import bindings_of, is_call, is_constant, is_var, plain_attributes

# Quantised tensors while a model is rewritten: integers, the grid of real numbers they stand for, and how they lie.

# What is taken from stored values of a type of the model to hold them as signed integers.
OFFSETS = {"int8": 0, "uint8": 128, "int16": 0, "uint16": 32768}

WIDER = 128  # Steps of 16 bits in one of 8: a power of two, so that no scale loses a bit.

HELD = {"int8": "int8", "uint8": "int8", "int16": "int16", "uint16": "int16"}


@dataclass(frozen=True)
class QuantGrid:
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
    def wide(self) -> QuantGrid:
        """One of 16 bits that has every number of this one."""
        return self if self.dtype == "int16" else QuantGrid(self.scale / WIDER, 0, "int16")

    def held(self, real: float) -> int:
        """The integer that stands for a real number, as QuantizeLinear rounds it."""
        low, high = self.limits
        steps = np.float32(real) / np.float32(self.scale)
        return int(np.clip(np.rint(steps) + self.zero_point, low, high))


def declared_grid(scale: float, zero_point: int, declared: str) -> QuantGrid:
    """The grid of a tensor as the model declares it; KeyError for a type that is not held as integers."""
    return QuantGrid(float(np.float32(scale)), zero_point - OFFSETS[declared], HELD[declared])


@dataclass(frozen=True, eq=False)
class Integers:
    """``stored`` is the Relax expression of the held integers with their axes in the order ``layout``.

    ``flat_of``: what this tensor is a reshape of, where nothing but a reshape was asked for yet and ``stored`` is None.
    """

    shape: Shape
    grid: QuantGrid
    layout: Layout
    stored: Any
    flat_of: Integers | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def stored_shape(self) -> Shape:
        return compose(self.shape, self.layout)

    def on(self, grid: QuantGrid) -> Integers:
        """The same integers, standing for other numbers."""
        return self if grid == self.grid else replace(self, grid=grid)

    def permuted(self, axes: Layout) -> Integers:
        """With its axes named in another order; nothing moves."""
        shape = compose(self.shape, axes)
        return Integers(shape, self.grid, tuple(axes.index(axis) for axis in self.layout), self.stored)


CHANNELS_LAST: dict[int, Layout] = {2: (0, 1), 3: (0, 2, 1), 4: (0, 2, 3, 1)}


# What is known of a float model's constants: their values, and the integers that quantised ones are.


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


# A float model with its quantisation steps, as the front ends give it, to be asked about.


@dataclass
class QdqGraph:
    """``definitions`` has every variable that is bound, in order; ``sources`` is what ``table.py`` found."""

    parameters: list[Any]
    definitions: dict[Any, Any]
    result: Any
    origins: Mapping[str, Origin]
    sources: dict[Any, Any] = field(default_factory=dict)
    _known: dict[Any, KnownIntegers | Array | None] = field(default_factory=dict)

    def call(self, expr: Any, *names: str) -> Any | None:
        """The call that a variable is bound to, if it is one of these operators."""
        bound = self.definitions.get(expr) if is_var(expr) else None
        return bound if bound is not None and is_call(bound) and name_of(bound) in names else None

    def name(self, expr: Any) -> str:
        """The operator that gives a variable's value; empty for anything else."""
        bound = self.definitions.get(expr) if is_var(expr) else None
        return name_of(bound) if bound is not None and is_call(bound) else ""

    def grid(self, call: Any) -> QuantGrid | None:
        """What a call of quantize or dequantize states; None for scales along an axis, or types that are not held."""
        scale, zero = (self.value(arg) for arg in call.args[1:3])
        declared = info_of(call if name_of(call) == QUANTIZE else call.args[0]).dtype
        if scale is None or zero is None or scale.size != 1 or zero.size != 1 or declared not in HELD:
            return None
        return declared_grid(float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0]), declared)

    def value(self, expr: Any) -> Array | None:
        """The value of what depends on constants alone, as far as it can be told."""
        known = self._find(expr)
        return known.values if isinstance(known, KnownIntegers) else known

    def integers(self, expr: Any) -> KnownIntegers | None:
        """The integers of a quantised constant, whatever axes were changed since."""
        known = self._find(expr)
        return known if isinstance(known, KnownIntegers) else None

    def _find(self, expr: Any) -> KnownIntegers | Array | None:
        if is_constant(expr):
            return np.asarray(expr.value.numpy())
        if not is_var(expr):
            return None
        if expr not in self._known:
            bound = self.definitions.get(expr)
            self._known[expr] = self._computed(bound) if bound is not None and is_call(bound) else None
        return self._known[expr]

    def _computed(self, call: Any) -> KnownIntegers | Array | None:
        name = name_of(call)
        if name == DEQUANTIZE:
            return self._dequantised(call)
        if name == QUANTIZE:
            return self._quantised(call)
        if name not in (PERMUTE, *RESHAPING) or not call.args:
            return None
        known = self._find(call.args[0])
        if known is None:
            return None
        if isinstance(known, KnownIntegers):
            return _moved_integers(name, call, known)
        return _moved(name, call, known)

    def _dequantised(self, call: Any) -> KnownIntegers | None:
        data, scale, zero = (self.value(arg) for arg in call.args)
        if data is None or scale is None or zero is None:
            return None
        axis = int(call.attrs.axis)
        parts = (along_axis(part, axis, data.ndim) for part in (scale.astype(np.float32), zero.astype(np.int64)))
        return KnownIntegers(data, *parts)

    def _quantised(self, call: Any) -> Array | None:
        data, scale, zero = (self.value(arg) for arg in call.args)
        if data is None or scale is None or zero is None:
            return None
        axis, dtype = int(call.attrs.axis), info_of(call).dtype
        steps = data.astype(np.float32) / along_axis(scale.astype(np.float32), axis, data.ndim)
        limits = np.iinfo(dtype)
        shifted = np.rint(steps) + along_axis(zero.astype(np.int64), axis, data.ndim)
        return np.asarray(np.clip(shifted, limits.min, limits.max).astype(dtype))


def _moved(name: str, call: Any, value: Array) -> Array:
    if name == PERMUTE:
        return value.transpose(permuted_axes(call))
    return value.reshape(shape_of(call))


def _moved_integers(name: str, call: Any, known: KnownIntegers) -> KnownIntegers:
    if name == PERMUTE:
        axes = permuted_axes(call)
        return known.each(lambda part: part.transpose(axes))
    return known.reshaped(shape_of(call))


def read(module: Any, origins: Mapping[str, Origin]) -> QdqGraph:
    parameters, bindings, result = bindings_of(module["main"])
    return QdqGraph(parameters, dict(bindings), result, origins)


def shape_of(expr: Any) -> Shape:
    return info_of(expr).shape


def attributes(call: Any) -> SimpleNamespace:
    return plain_attributes(call)


# Several moves in a row as one: of which parts a tensor's elements are, and in which order these lie.

MOST_PARTS: Final = 6  # Axes that a transposition has.


@dataclass(frozen=True)
class Trail:
    """A tensor that came of ``base`` by reshapes and transpositions: of ``base`` seen with ``extents`` the axes in this
    ``order``, none of them of one element."""

    base: Any
    extents: Shape
    order: Layout

    @property
    def moves(self) -> bool:
        return self.order != identity(len(self.order))

    def permuted(self, shape: Shape, axes: Layout) -> Trail | None:
        """The tensor seen with this shape, with its axes permuted; None where an axis begins within a part."""
        trail: Trail = self
        groups: list[list[int]] = []
        place = 0
        for extent in shape:
            first, wanted = place, extent
            while wanted > 1:
                part = trail.extents[trail.order[place]]
                if wanted % part and part % wanted:
                    return None
                if part > wanted:
                    trail, part = trail._cut(trail.order[place], wanted), wanted
                wanted, place = wanted // part, place + 1
            groups.append(list(range(first, place)))
        return Trail(self.base, trail.extents, tuple(trail.order[at] for axis in axes for at in groups[axis]))

    def _cut(self, part: int, outer: int) -> Trail:
        """With a part in two."""
        inner = self.extents[part] // outer
        extents = (*self.extents[:part], outer, inner, *self.extents[part + 1 :])
        order: list[int] = []
        for number in self.order:
            order += [number, number + 1] if number == part else [number + (number > part)]
        return Trail(self.base, extents, tuple(order))

    @property
    def joined(self) -> Trail:
        """Parts that follow each other before and after are one."""
        runs: list[list[int]] = []
        for number in self.order:
            if runs and runs[-1][-1] + 1 == number:
                runs[-1].append(number)
            else:
                runs.append([number])
        first = sorted(run[0] for run in runs)
        sizes = {run[0]: math.prod(self.extents[number] for number in run) for run in runs}
        return Trail(self.base, tuple(sizes[at] for at in first), tuple(first.index(run[0]) for run in runs))


def beginning(base: Any, shape: Sequence[int]) -> Trail:
    """A tensor of no moves yet."""
    extents = tuple(int(extent) for extent in shape if extent != 1)
    return Trail(base, extents, identity(len(extents)))
