"""Writes the new module: what each variable of the float model has become, as integers or as floats."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uaccel.islands.graph import Graph, shape_of
from uaccel.islands.held import OFFSETS, WIDER, Grid, Integers
from uaccel.islands.trails import MOST_PARTS, Trail, beginning
from uaccel.model import Origin, Quantisation, Shape, TensorSpec, UniqueNames, layer_name
from uaccel.ops import exact
from uaccel.ops.axes import Layout, bytes_order, compose, identity, layout_name
from uaccel.ops.base import constant, get, info_of
from uaccel.ops.quantize import Dequantize, DequantizeAttrs, Quantize, QuantizeAttrs
from uaccel.ops.requantize import UNITY, Requantize, RequantizeAttrs
from uaccel.ops.rounding import FLOAT32, float32_scale
from uaccel.tvm_api import is_call, is_constant, is_tuple, is_tuple_get_item, is_var, relax


@dataclass
class Emitter:
    """``layer`` is the variable of the float model that is at work: new bindings are named after it. ``makers`` says
    for each new variable which that was. ``planned`` has values that were computed before they are moved."""

    graph: Graph
    block: Any
    tensors: dict[str, TensorSpec] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    layer: Any = None
    names: UniqueNames = field(default_factory=UniqueNames)
    integers: dict[Any, Integers] = field(default_factory=dict)
    reals: dict[Any, Any] = field(default_factory=dict)
    laid: dict[tuple[Any, Layout], Any] = field(default_factory=dict)
    makers: dict[Any, Any] = field(default_factory=dict)
    planned: dict[Any, Integers] = field(default_factory=dict)
    wide: dict[Integers, Integers] = field(default_factory=dict)
    trails: dict[Any, Trail] = field(default_factory=dict)

    def bind(self, expr: Any, *, quantisation: Quantisation | None = None, suffix: str = "", tensor: str = "") -> Any:
        """A variable for an expression, with what reports say of it."""
        origin = self.graph.origins.get(self.layer.name)
        name = self.names.take((layer_name(origin.op, origin.index) if origin else self.layer.name) + suffix)
        var = self.block.emit(expr, name)
        self.makers[var] = self.layer
        if origin is not None:
            self.origins[var.name] = origin
        if not hasattr(var.ty, "fields"):
            known = tensor or (origin.tensor if origin else name)
            self.tensors[var.name] = TensorSpec(known, info_of(var), quantisation)
        return var

    def held(self, expr: Any, shape: Shape, grid: Grid, layout: Layout) -> Integers:
        """Integers newly computed; ``shape`` in the model's order of axes."""
        return Integers(shape, grid, layout, self.bind(expr, quantisation=grid.quantisation))

    def stored(self, held: Integers, layout: Layout) -> Any:
        """The integers with their axes in this order; permuted where they are wanted so for the first time."""
        if held.stored is None:
            return self._flat(held)
        if layout == held.layout:
            return held.stored
        key = (held.stored, tuple(held.layout.index(axis) for axis in layout))
        if key not in self.laid:
            self.laid[key] = self._permuted(held, layout, key[1])
        return self.laid[key]

    def _permuted(self, held: Integers, layout: Layout, axes: Layout) -> Any:
        if is_constant(held.stored):
            return constant(np.asarray(held.stored.value.numpy()).transpose(axes))
        shape = compose(held.shape, layout)
        same = bytes_order(held.shape, held.layout) == bytes_order(held.shape, layout)
        before, self.layer = self.layer, self.makers.get(held.stored, held.stored)
        trail = self.trail(held.stored)
        then = trail.permuted(shape_of(held.stored), axes)
        if then is not None and trail.moves and not same and len(then.joined.extents) <= MOST_PARTS:
            expr = relax.op.reshape(self._at_once(held, then.joined), shape)
        else:
            expr = relax.op.reshape(held.stored, shape) if same else relax.op.permute_dims(held.stored, axes)
        moved = self.bind(expr, quantisation=held.grid.quantisation, suffix=f"_{layout_name(layout)}")
        if then is not None:
            self.trails[moved] = then
        self.layer = before
        return moved

    def trail(self, stored: Any) -> Trail:
        """How a variable came of another one by moves."""
        return self.trails[stored] if stored in self.trails else beginning(stored, shape_of(stored))

    def _at_once(self, held: Integers, trail: Trail) -> Any:
        """What several moves come to."""
        if not trail.moves:
            return trail.base
        parts = relax.op.reshape(trail.base, trail.extents)
        parts = self.bind(parts, quantisation=held.grid.quantisation, suffix="_parts")
        moved = relax.op.permute_dims(parts, trail.order)
        return self.bind(moved, quantisation=held.grid.quantisation, suffix="_moved")

    def _flat(self, held: Integers) -> Any:
        """The reshape that was put off."""
        source = held.flat_of
        assert source is not None
        key = (source, held.shape)
        if key not in self.laid:
            plain = self.stored(source, identity(source.rank))
            self.laid[key] = self.bind(
                relax.op.reshape(plain, held.shape), quantisation=held.grid.quantisation, suffix="_flat"
            )
        return self.laid[key]

    def plain(self, held: Integers) -> Any:
        """In the model's own order of axes."""
        return self.stored(held, identity(held.rank))

    def channels_last(self, held: Integers) -> Any:
        return self.stored(held, (0, *range(2, held.rank), 1))

    def quantized(self, real: Any, grid: Grid) -> Integers:
        """Floats on a grid."""
        attrs = QuantizeAttrs(grid.scale, grid.zero_point, grid.dtype, rounding=FLOAT32)
        shape = shape_of(real)
        if info_of(real).dtype != "float32":
            real = self.bind(relax.op.astype(real, "float32"), suffix="_float")
        return self.held(get(Quantize)(real, attrs=attrs), shape, grid, identity(len(shape)))

    def dequantized(self, held: Integers) -> Any:
        plain = self.plain(held)
        attrs = DequantizeAttrs(held.grid.scale, held.grid.zero_point)
        return self.bind(get(Dequantize)(plain, attrs=attrs), suffix="_float")

    def as_declared(self, held: Integers, declared: str) -> Any:
        """In the model's own type and order of axes."""
        plain = self.plain(held)
        if declared == held.grid.dtype:
            return plain
        return self.bind(shifted(plain, OFFSETS[declared], declared), suffix=f"_{declared}")

    def from_declared(self, expr: Any, grid: Grid, declared: str) -> Integers:
        """Integers that the model has as such: an input, or what integer operators gave."""
        shape = shape_of(expr)
        if declared == grid.dtype:
            return Integers(shape, grid, identity(len(shape)), expr)
        return self.held(shifted(expr, -OFFSETS[declared], grid.dtype), shape, grid, identity(len(shape)))

    def widened(self, held: Integers, grid: Grid) -> Integers:
        """The same numbers in 16 bits."""
        if held not in self.wide:
            multiplier, shift = float32_scale(WIDER)
            attrs = RequantizeAttrs(held.grid.zero_point, 0, multiplier, shift, *grid.limits, grid.dtype, FLOAT32)
            layout = identity(held.rank) if held.stored is None else held.layout
            expr = get(Requantize)(self.stored(held, layout), attrs=attrs)
            stored = self.bind(expr, quantisation=grid.quantisation, suffix="_wide")
            self.wide[held] = Integers(held.shape, grid, layout, stored)
        return self.wide[held]

    def narrowed(self, held: Integers, grid: Grid) -> Integers:
        """Numbers that 8 bits have, in 8 bits."""
        stored = self.bind(shifted(held.stored, 0, grid.dtype), quantisation=grid.quantisation, suffix="_narrow")
        return Integers(held.shape, grid, held.layout, stored)

    def real(self, expr: Any) -> Any:
        """What a variable of the float model is called now; a whole expression with its variables replaced."""
        if is_var(expr):
            return self.reals[expr]
        if is_tuple(expr):
            return relax.Tuple([self.real(entry) for entry in expr.fields])
        return expr

    def again(self, expr: Any) -> Any:
        """A call of the float model over what its arguments have become."""
        if is_tuple_get_item(expr):
            return relax.TupleGetItem(self.real(expr.tuple_value), expr.index)
        if not is_call(expr):
            return self.real(expr)
        return relax.Call(expr.op, [self.real(arg) for arg in expr.args], expr.attrs, expr.ty_args)


def shifted(expr: Any, by: int, dtype: str) -> Any:
    """The same numbers in another type of as many bits: what uint8 calls 128, int8 calls 0."""
    low, high = exact.limits(dtype)
    attrs = RequantizeAttrs(0, by, *UNITY, low, high, dtype)
    return get(Requantize)(expr, attrs=attrs)
