"""Matrix products: with constant weights, and of two tensors computed at run time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import shape_of
from uaccel.islands.held import OFFSETS, Grid, Integers, grid_of
from uaccel.islands.moves import integers_of
from uaccel.islands.rules import Emit, Island, rule
from uaccel.islands.sums import (
    Constants,
    Weights,
    biased,
    channel_bias,
    constants,
    ends,
    read_twice,
    weights_of,
)
from uaccel.model import Array
from uaccel.ops.axes import identity
from uaccel.ops.base import constant, get
from uaccel.ops.batch_matmul import BatchMatmul, BatchMatmulAttrs
from uaccel.ops.fully_connected import FullyConnected, FullyConnectedAttrs
from uaccel.ops.rounding import FLOAT32, float32_scales
from uaccel.tvm_api import relax

MATMUL = "relax.matmul"
MOST_AXES = 5


@rule(MATMUL, "relax.add")
def product(island: Island) -> Emit | None:
    found = biased(island.graph, island.core, MATMUL)
    if found is None:
        return None
    call = island.graph.definitions[found[0]]
    left, known = (island.graph.integers(arg) for arg in call.args)
    if known is None or left is not None or len(known.shape) != 2 or len(shape_of(call.args[0])) < 2:
        need(found[1] is None, "a bias behind a product of two tensors")
        return _of_two(island, call)
    grid = island.need_grid(call.args[0])
    island.need_one_type(grid)
    weights = weights_of(known.each(np.transpose), 0)
    shape = shape_of(call)
    bias = channel_bias(found[1], len(shape) - 1, len(shape), weights.values.shape[0])
    operands = constants(island, grid, weights, 0, bias)
    return lambda emitter: _emit(emitter, island, call, grid, weights, operands)


def _emit(emitter: Emitter, island: Island, call: Any, grid: Grid, weights: Weights, operands: Constants) -> Integers:
    data, values = rows_of(emitter, integers_of(emitter, call.args[0], grid), weights)
    shape = shape_of(call)
    attrs = FullyConnectedAttrs(**ends(island, grid), rounding=FLOAT32, weight_bits=weights.bits)
    args = (data, constant(values), operands.bias, operands.multiplier, operands.shift)
    result = get(FullyConnected)(*args, attrs=attrs)
    if len(shape) != 2:
        result = relax.op.reshape(emitter.bind(result, suffix="_rows"), shape)
    return emitter.held(result, shape, island.output, identity(len(shape)))


def rows_of(emitter: Emitter, held: Integers, weights: Weights) -> tuple[Any, Array]:
    """The input as a matrix, and the weights as they read its rows."""
    values, rest, depth = weights.values, weights.rest, weights.values.shape[1]
    if held.flat_of is not None and held.stored is None:
        order = _order_of(held.flat_of)
        values, rest = values[:, order], rest[:, order] if rest is not None else None
        data = held.flat_of.stored
    else:
        data = emitter.plain(held)
    rows = math.prod(held.shape) // depth
    if shape_of(data) != (rows, depth):
        expr = relax.op.reshape(data, (rows, depth))
        data = emitter.bind(expr, quantisation=held.grid.quantisation, suffix="_rows")
    return read_twice(emitter, data, held.grid, values, rest)


def _order_of(source: Integers) -> Any:
    """For each element of a row as it is stored its place in the row that the model means."""
    places = np.arange(math.prod(source.shape[1:])).reshape(source.shape[1:])
    return places.transpose([axis - 1 for axis in source.layout[1:]]).reshape(-1)


@dataclass(frozen=True)
class _Factor:
    """One of two tensors, with its integers if it is constant."""

    expr: Any
    grid: Grid
    known: Array | None = None

    @staticmethod
    def of(island: Island, expr: Any, which: str) -> _Factor:
        known = island.graph.integers(expr)
        if known is None:
            return _Factor(expr, island.need_grid(expr, which))
        declared, scales, zeros = str(known.integers.dtype), np.unique(known.scales), np.unique(known.zero_points)
        need(declared in OFFSETS, f"{which} is a constant of {declared}")
        need(scales.size == zeros.size == 1, f"{which} is a constant with several scales, and no matrix of weights")
        grid = grid_of(float(scales[0]), int(zeros[0]), declared)
        held = known.integers.astype(np.int64) - OFFSETS[declared]
        return _Factor(expr, grid, held.astype(grid.dtype))

    def held(self, emitter: Emitter) -> Integers:
        if self.known is None:
            return integers_of(emitter, self.expr, self.grid)
        return Integers(self.known.shape, self.grid, identity(self.known.ndim), constant(self.known))


def _of_two(island: Island, call: Any) -> Emit:
    pairs = zip(call.args, ("its input", "its second input"), strict=True)
    factors = [_Factor.of(island, expr, which) for expr, which in pairs]
    grid, other = (factor.grid for factor in factors)
    for side in (grid, other):
        island.need_one_type(side)
    ranks = [len(shape_of(arg)) for arg in call.args]
    possible = all(2 <= rank <= MOST_AXES for rank in ranks)
    need(possible, f"its inputs have ranks {ranks[0]} and {ranks[1]}, possible are 2 to {MOST_AXES}")
    need((island.low, island.high) == island.output.limits, "an activation behind a product of two tensors")
    factor = np.float32(grid.scale) * np.float32(other.scale) / np.float32(island.output.scale)
    multipliers, shifts = float32_scales(np.array([factor], np.float32), grid.dtype == "int16")
    attrs = BatchMatmulAttrs(
        adj_x=False,
        adj_y=False,
        lhs_zero_point=grid.zero_point,
        rhs_zero_point=other.zero_point,
        output_zero_point=island.output.zero_point,
        multiplier=int(multipliers[0]),
        shift=int(shifts[0]),
        rounding=FLOAT32,
    )

    def emit(emitter: Emitter) -> Integers:
        (lhs, adj_x), (rhs, adj_y) = (_side(emitter, factor.held(emitter)) for factor in factors)
        changed = BatchMatmulAttrs(**{**vars(attrs), "adj_x": adj_x, "adj_y": adj_y})
        shape = shape_of(call)
        return emitter.held(get(BatchMatmul)(lhs, rhs, attrs=changed), shape, island.output, identity(len(shape)))

    return emit


def _side(emitter: Emitter, held: Integers) -> tuple[Any, bool]:
    """One side as it is stored, and whether its matrices lie transposed."""
    *batch, rows, columns = identity(held.rank)
    swapped = (*batch, columns, rows)
    if held.stored is not None and held.layout == swapped:
        return held.stored, True
    return emitter.plain(held), False
