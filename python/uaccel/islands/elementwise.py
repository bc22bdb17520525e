"""Sums, differences and products of two tensors, either of which may be a quantised constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import shape_of
from uaccel.islands.held import Grid, Integers
from uaccel.islands.moves import integers_of, moved_from
from uaccel.islands.plan import Plan, computed, planned
from uaccel.islands.rules import Emit, Island, rule
from uaccel.islands.table import reals_of, source_of
from uaccel.model import Shape
from uaccel.ops.axes import Layout, identity
from uaccel.ops.base import constant, get
from uaccel.ops.product import Product, product_attrs
from uaccel.ops.traits import name_of
from uaccel.ops.weighted_sum import WeightedSum, weighted_sum_attrs
from uaccel.tvm_api import relax

SIGNS = {"relax.add": 1, "relax.subtract": -1}
PRODUCT = "relax.multiply"
AVERAGES = ("relax.mean", "relax.nn.avg_pool1d", "relax.nn.avg_pool2d", "relax.nn.adaptive_avg_pool2d")


@dataclass(frozen=True)
class _Operand:
    """``values``: of a constant, as held. ``plan``: of a function that the model does not quantise by itself."""

    expr: Any
    grid: Grid
    values: Any = None
    plan: Plan | None = None


@rule(*SIGNS, PRODUCT)
def binary(island: Island) -> Emit | None:
    call = island.call
    operands = [_operand(island, arg) for arg in call.args]
    first, second = operands
    if first is None and second is None:
        return None
    if first is None or second is None or (first.values is not None and second.values is not None):
        raise ModelError("one of its inputs is not quantised")
    name = name_of(call)
    if name in SIGNS:
        first, second = _in_fine_steps(first), _in_fine_steps(second)
    dtypes = {first.grid.dtype, second.grid.dtype, island.output.dtype}
    need(len(dtypes) == 1, f"its inputs and output are of {' and '.join(sorted(dtypes))}")
    one, other, output = (grid.quantisation for grid in (first.grid, second.grid, island.output))
    clamp = (island.low, island.high)
    if name == PRODUCT:
        product = product_attrs(one, other, output, island.output.dtype, clamp=clamp)
        return lambda emitter: _emit(emitter, island, first, second, Product, product)
    total = weighted_sum_attrs(one, other, output, island.output.dtype, sign=SIGNS[name], clamp=clamp)
    return lambda emitter: _emit(emitter, island, first, second, WeightedSum, total)


def _in_fine_steps(operand: _Operand) -> _Operand:
    """A constant of a sum, counted in steps as fine as 16 bits have room for: beside coarse ones the other operand's
    factor would have few bits (1 - x, where a step of x is 2^-16)."""
    if operand.values is None or operand.grid.dtype != "int16":
        return operand
    numbers = operand.values.astype(np.int64) - operand.grid.zero_point
    room = np.iinfo("int16").max // max(1, int(np.abs(numbers).max(initial=0)))
    finer = 1 << max(0, room.bit_length() - 1)
    if finer == 1:
        return operand
    grid = Grid(operand.grid.scale / finer, 0, "int16")
    return _Operand(operand.expr, grid, (numbers * finer).astype(np.int16))


def _operand(island: Island, expr: Any) -> _Operand | None:
    grid = island.grid(expr)
    if grid is not None:
        return _Operand(expr, grid)
    known = island.graph.integers(expr)
    if known is not None and known.scales.size == 1 and known.zero_points.size == 1:
        low, high = island.output.limits
        offset = 0 if low <= known.integers.min(initial=0) and known.integers.max(initial=0) <= high else high + 1
        scale, zero_point = (part.reshape(-1)[0] for part in (known.scales, known.zero_points))
        grid = Grid(float(scale), int(zero_point) - offset, island.output.dtype)
        return _Operand(expr, grid, (known.integers.astype(np.int64) - offset).astype(grid.dtype))
    if island.output.dtype == "int8":
        return None  # a table is the better way
    return _number(island, expr) or _function(island, expr) or _average(island, expr)


def _function(island: Island, expr: Any) -> _Operand | None:
    """A function of another tensor than the first operand's, in 16 bits, of which none is lost."""
    alone = source_of(island.graph, island.core) is not None
    reals = None if alone else reals_of(island.graph, expr)
    lowest, highest = (0.0, 0.0) if reals is None else (min(float(reals.min()), 0.0), max(float(reals.max()), 0.0))
    if not 0 < highest - lowest < np.inf:
        return None
    least, most = np.iinfo("int16").min, np.iinfo("int16").max
    scale = float(np.float32((highest - lowest) / (most - least)))
    grid = Grid(scale, least - round(lowest / scale), "int16")
    plan = planned(island.graph, expr, grid)
    return None if isinstance(plan, str) else _Operand(expr, grid, plan=plan)


def _average(island: Island, expr: Any) -> _Operand | None:
    """A mean that the model does not quantise by itself lies within its input's range: in 16 bits, in finer steps."""
    base = expr
    while (step := moved_from(island.graph, base)) is not None:
        base = step[1]
    call = island.graph.call(base, *AVERAGES)
    grid = island.grid(call.args[0]) if call is not None else None
    plan = planned(island.graph, expr, grid.wide) if grid is not None else ""
    return None if grid is None or isinstance(plan, str) else _Operand(expr, grid.wide, plan=plan)


def _number(island: Island, expr: Any) -> _Operand | None:
    """One number for all elements is an integer times itself."""
    value = island.graph.value(expr)
    if value is None or value.size != 1 or value.dtype != np.float32 or not value.all() or not np.isfinite(value).all():
        return None
    sign = int(np.sign(value).reshape(-1)[0])
    grid = Grid(float(np.abs(value).reshape(-1)[0]), 0, island.output.dtype)
    return _Operand(expr, grid, np.full(value.shape, sign, island.output.dtype))


def _emit(emitter: Emitter, island: Island, first: _Operand, second: _Operand, operator: Any, attrs: Any) -> Integers:
    shape = shape_of(island.call)
    held = [_held(emitter, operand) for operand in (first, second)]
    layout = layout_for(held, len(shape))
    args = [_laid(emitter, entry, operand, shape, layout) for entry, operand in zip(held, (first, second), strict=True)]
    return emitter.held(get(operator)(*args, attrs=attrs), shape, island.output, layout)


def _held(emitter: Emitter, operand: _Operand) -> Integers | None:
    if operand.plan is not None:
        return computed(emitter, operand.expr, operand.plan, operand.grid, operand.grid.limits)
    return None if operand.values is not None else integers_of(emitter, operand.expr, operand.grid)


def layout_for(held: Sequence[Integers | None], rank: int) -> Layout:
    """The layout of the largest operand that has all axes."""
    full = [entry for entry in held if entry is not None and entry.rank == rank and entry.stored is not None]
    best = max(full, key=lambda entry: int(np.prod(entry.shape)), default=None)
    return best.layout if best is not None else identity(rank)


def _laid(emitter: Emitter, held: Integers | None, operand: _Operand, shape: Shape, layout: Layout) -> Any:
    if held is None:
        values = operand.values.reshape((1,) * (len(shape) - operand.values.ndim) + operand.values.shape)
        return constant(np.ascontiguousarray(values.transpose(layout)))
    return stretched(emitter, held, shape, layout)


def stretched(emitter: Emitter, held: Integers, shape: Shape, layout: Layout) -> Any:
    """With as many axes as ``shape`` has, in this order; those of one element are repeated by who reads it."""
    if held.rank == len(shape):
        return emitter.stored(held, layout)
    full = (1,) * (len(shape) - held.rank) + held.shape
    stored = tuple(full[axis] for axis in layout)
    plain = emitter.plain(held)
    moved = relax.op.reshape(plain, full)
    if layout != identity(len(shape)):
        moved = relax.op.permute_dims(emitter.bind(moved, suffix="_wide"), layout)
    var = emitter.bind(moved, quantisation=held.grid.quantisation, suffix="_wide")
    assert shape_of(var) == stored
    return var
