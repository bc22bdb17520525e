"""Holds a float model with its quantisation steps, and the integers that its quantised tensors become.

``QdqGraph`` answers questions about the model. ``Integers`` is a quantised tensor in the new module, with its grid
(scale and zero point) and layout. ``Trail`` composes several reshapes and transpositions into one.
"""

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
from uaccel.ops.pointwise import BY_RELAX
from uaccel.ops.storage import Layout, compose, identity
from uaccel.tvm_api import bindings_of, is_call, is_constant, is_var, plain_attributes

# Quantised tensors while a model is rewritten: signed integers, their grid of real numbers, their order of axes.
#
# Unsigned types are held as signed ones, zero point and all, so that every later rule knows int8 and int16 alone.

# The offset that is subtracted from a declared type's stored values to make them signed.
OFFSETS = {"int8": 0, "uint8": 128, "int16": 0, "uint16": 32768}

# One step of 8 bits is this many of 16. A power of two divides a float32 scale exactly, and 128 is the largest that
# fits: an int8 is at most 255 from its zero point, and 255 * 128 = 32,640 is an int16 with zero point 0.
WIDER = 128

HELD = {"int8": "int8", "uint8": "int8", "int16": "int16", "uint16": "int16"}


@dataclass(frozen=True)
class QuantGrid:
    """Maps held integers to real numbers: real = scale * (held - zero_point), in single precision."""

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
        """A grid of 16 bits that contains every real number of this one."""
        return self if self.dtype == "int16" else QuantGrid(self.scale / WIDER, 0, "int16")

    def held(self, real: float) -> int:
        """The integer that stands for a real number, as QuantizeLinear rounds it."""
        low, high = self.limits
        steps = np.float32(real) / np.float32(self.scale)
        return int(np.clip(np.rint(steps) + self.zero_point, low, high))


def declared_grid(scale: float, zero_point: int, declared: str) -> QuantGrid:
    """Converts a grid as the model declares it to that of the held integers; KeyError for other types."""
    return QuantGrid(float(np.float32(scale)), zero_point - OFFSETS[declared], HELD[declared])


@dataclass(frozen=True, eq=False)
class Integers:
    """Holds a quantised tensor: ``shape`` in the model's order of axes, ``stored`` with its axes ordered by ``layout``.

    Moving axes is put off until somebody needs another order: a transposition only renames ``layout``. Where ``stored``
    is None the tensor is a flattened ``flat_of`` that nobody has computed yet (see ``reshaped`` in ``emitter``).
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
        """The same integers on another grid, where they mean other real numbers."""
        return self if grid == self.grid else replace(self, grid=grid)

    def permuted(self, axes: Layout) -> Integers:
        """The tensor with its axes permuted, by renaming them: no byte moves."""
        shape = compose(self.shape, axes)
        return Integers(shape, self.grid, tuple(axes.index(axis) for axis in self.layout), self.stored)


CHANNELS_LAST: dict[int, Layout] = {2: (0, 1), 3: (0, 2, 1), 4: (0, 2, 3, 1)}


# Constants of the float model: a quantised constant keeps its integers beside its scales and zero points.


@dataclass(frozen=True)
class KnownIntegers:
    """Holds a quantised constant: value = scales * (integers - zero_points), which broadcast."""

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
        """Applies one change of axes to the integers, the scales and the zero points."""
        return KnownIntegers(change(self.integers), change(self.scales), change(self.zero_points))

    def reshaped(self, shape: tuple[int, ...]) -> KnownIntegers:
        """Several scales become one for each element: a reshape may split or join the axis that they follow."""
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
    """Shapes one entry, or one for each slice along an axis, to broadcast against a tensor of this rank."""
    if array.size == 1:
        return array.reshape((1,) * rank)
    return array.reshape(tuple(-1 if i == axis % rank else 1 for i in range(rank)))


# The float model with its quantisation steps, as the front ends give it.


@dataclass
class QdqGraph:
    """Answers questions about the float model; results are kept, for rules ask for the same variable many times.

    ``definitions`` has every bound variable in order. ``sources`` is the memory of ``lookup_table.source_of``.
    """

    parameters: list[Any]
    definitions: dict[Any, Any]
    result: Any
    origins: Mapping[str, Origin]
    sources: dict[Any, Any] = field(default_factory=dict)
    _known: dict[Any, KnownIntegers | Array | None] = field(default_factory=dict)

    def call(self, expr: Any, *names: str) -> Any | None:
        """The call that a variable is bound to, if its operator is one of ``names``; else None."""
        bound = self.definitions.get(expr) if is_var(expr) else None
        return bound if bound is not None and is_call(bound) and name_of(bound) in names else None

    def name(self, expr: Any) -> str:
        """The operator that gives a variable's value; empty for anything else."""
        bound = self.definitions.get(expr) if is_var(expr) else None
        return name_of(bound) if bound is not None and is_call(bound) else ""

    def grid(self, call: Any) -> QuantGrid | None:
        """The grid of a quantize or dequantize; None for several scales, or a type outside ``HELD``."""
        scale, zero = (self.value(arg) for arg in call.args[1:3])
        declared = info_of(call if name_of(call) == QUANTIZE else call.args[0]).dtype
        if scale is None or zero is None or scale.size != 1 or zero.size != 1 or declared not in HELD:
            return None
        return declared_grid(float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0]), declared)

    def value(self, expr: Any) -> Array | None:
        """The value of an expression that depends on constants alone; None where it is not known."""
        known = self._find(expr)
        return known.values if isinstance(known, KnownIntegers) else known

    def integers(self, expr: Any) -> KnownIntegers | None:
        """The integers of a quantised constant, also through transpositions and reshapes."""
        known = self._find(expr)
        return known if isinstance(known, KnownIntegers) else None

    def _find(self, expr: Any) -> KnownIntegers | Array | None:
        if not is_var(expr):
            return self._constant(expr)
        if expr not in self._known:
            bound = self.definitions.get(expr)
            self._known[expr] = self._computed(bound) if bound is not None and is_call(bound) else self._constant(bound)
        return self._known[expr]

    def _constant(self, expr: Any) -> Array | None:
        return np.asarray(expr.value.numpy()) if expr is not None and is_constant(expr) else None

    def _computed(self, call: Any) -> KnownIntegers | Array | None:
        name = name_of(call)
        if name == DEQUANTIZE:
            return self._dequantised(call)
        if name == QUANTIZE:
            return self._quantised(call)
        if name in BY_RELAX:
            return self._applied(call)
        if name not in (PERMUTE, *RESHAPING) or not call.args:
            return None
        known = self._find(call.args[0])
        if known is None:
            return None
        if isinstance(known, KnownIntegers):
            return _moved_integers(name, call, known)
        return _moved(name, call, known)

    def _applied(self, call: Any) -> Array | None:
        """An elementwise operator on constants, such as ONNX's definitions of operators have."""
        operands = [self.value(arg) for arg in call.args]
        compute = BY_RELAX[name_of(call)].compute
        if name_of(call) == "relax.astype":
            compute = np.asarray
        if compute is None or any(value is None for value in operands):
            return None
        with np.errstate(all="ignore"):
            return np.asarray(compute(*operands)).astype(info_of(call).dtype)

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


# Several reshapes and transpositions in a row, composed into one.
#
# The base's elements are seen with axes ("parts") so fine that every tensor on the way is the parts in some order, some
# of them joined. A transposition then only permutes ``order``; a reshape between two of them at most splits a part.

MOST_PARTS: Final = 6  # Loops of the move kernel (UACCEL_MOVE_LOOPS): more parts may have no kernel.


@dataclass(frozen=True)
class Trail:
    """Describes how moves made a tensor from ``base``: base.reshape(extents).transpose(order), reshaped.

    No extent is 1.
    """

    base: Any
    extents: Shape
    order: Layout

    @property
    def moves(self) -> bool:
        return self.order != identity(len(self.order))

    def permuted(self, shape: Shape, axes: Layout) -> Trail | None:
        """The trail of this tensor reshaped to ``shape`` and transposed by ``axes``; None where parts do not fit.

        Each axis of ``shape`` must be whole parts that follow each other. The walk fills axis after axis with the parts
        from ``place`` on: ``wanted`` is what the axis still lacks. A part that is larger is split, its outer half fills
        the axis and the inner one goes to the next. If neither divides the other, no finer parts can help.
        """
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
        """Splits a part in two neighbours, the outer one first; later parts get the next number."""
        inner = self.extents[part] // outer
        extents = (*self.extents[:part], outer, inner, *self.extents[part + 1 :])
        order: list[int] = []
        for number in self.order:
            order += [number, number + 1] if number == part else [number + (number > part)]
        return Trail(self.base, extents, tuple(order))

    @property
    def joined(self) -> Trail:
        """The same move with the fewest parts: those that follow each other before and after it are joined."""
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
    """Gives the trail of a tensor that nothing has moved yet."""
    extents = tuple(int(extent) for extent in shape if extent != 1)
    return Trail(base, extents, identity(len(extents)))
