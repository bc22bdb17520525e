"""Holds the rules for matrix products, and integer sums with a float output stage for results that stay real."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend.qdq import rules
from uaccel.frontend.qdq.conv import CONVOLUTIONS, need_layout, padded
from uaccel.frontend.qdq.emitter import Emitter, image_of, integers_of, moved_grid, of_image
from uaccel.frontend.qdq.graph import OFFSETS, Integers, QdqGraph, QuantGrid, declared_grid, shape_of
from uaccel.frontend.qdq.rules import Emit, Island, QdqConstants, QdqWeights, rule
from uaccel.model import Array
from uaccel.ops import accumulators
from uaccel.ops.exact import FLOAT32, float32_scales
from uaccel.ops.matmul import BatchMatmul, BatchMatmulAttrs, FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import Attributes, constant, get, info_of
from uaccel.ops.storage import identity
from uaccel.ops.windows import Grouped
from uaccel.tvm_api import is_var, relax

# Matrix products: with constant weights, and of two tensors computed at run time.

MATMUL = "relax.matmul"
MOST_AXES = 5


@rule(MATMUL, "relax.add")
def product(island: Island) -> Emit | None:
    found = rules.add_bias(island.graph, island.core, MATMUL)
    if found is None:
        return None
    call = island.graph.definitions[found[0]]
    left, known = (island.graph.integers(arg) for arg in call.args)
    if known is None or left is not None or len(known.shape) != 2 or len(shape_of(call.args[0])) < 2:
        need(found[1] is None, "a bias behind a product of two tensors")
        return _of_two(island, call)
    grid = island.need_alike(call.args[0])
    weights = rules.weights_of(known.each(np.transpose), 0)
    shape = shape_of(call)
    bias = rules.channel_bias(found[1], len(shape) - 1, len(shape), weights.values.shape[0])
    operands = rules.constants(island, grid, weights, 0, bias)
    return lambda emitter: _emit(emitter, island, call, grid, weights, operands)


def _emit(
    emitter: Emitter, island: Island, call: Any, grid: QuantGrid, weights: QdqWeights, operands: QdqConstants
) -> Integers:
    data, values = rows_of(emitter, integers_of(emitter, call.args[0], grid), weights)
    shape = shape_of(call)
    attrs = FullyConnectedAttrs(**rules.ends(island, grid), rounding=FLOAT32, weight_bits=weights.bits)
    result = get(FullyConnected)(data, constant(values), *operands, attrs=attrs)
    if len(shape) != 2:
        result = relax.op.reshape(emitter.bind(result, suffix="_rows"), shape)
    return emitter.held(result, shape, island.output, identity(len(shape)))


def rows_of(emitter: Emitter, held: Integers, weights: QdqWeights) -> tuple[Any, Array]:
    """The input as a matrix, and the weights in the order of its rows.

    A flattened image whose transposition was put off is read as it lies, and the weights' columns are permuted instead:
    that costs nothing at run time.
    """
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
    return rules.read_twice(emitter, data, held.grid, values, rest)


def _order_of(source: Integers) -> Any:
    """Gives for each element of a stored row, its place in the row of the model."""
    places = np.arange(math.prod(source.shape[1:])).reshape(source.shape[1:])
    return places.transpose([axis - 1 for axis in source.layout[1:]]).reshape(-1)


@dataclass(frozen=True)
class _Factor:
    """One side of a product, with its integers if it is constant."""

    expr: Any
    grid: QuantGrid
    known: Array | None = None

    @staticmethod
    def of(island: Island, expr: Any, which: str) -> _Factor:
        known = island.graph.integers(expr)
        if known is None:
            return _Factor(expr, island.need_grid(expr, which))
        declared, scales, zeros = str(known.integers.dtype), np.unique(known.scales), np.unique(known.zero_points)
        need(declared in OFFSETS, f"{which} is a constant of {declared}")
        need(scales.size == zeros.size == 1, f"{which} is a constant with several scales, and no matrix of weights")
        grid = declared_grid(float(scales[0]), int(zeros[0]), declared)
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
    points = (grid.zero_point, other.zero_point, island.output.zero_point)
    scale = (int(multipliers[0]), int(shifts[0]))

    def emit(emitter: Emitter) -> Integers:
        (lhs, adj_x), (rhs, adj_y) = (_side(emitter, factor.held(emitter)) for factor in factors)
        attrs, shape = BatchMatmulAttrs(adj_x, adj_y, *points, *scale, rounding=FLOAT32), shape_of(call)
        return emitter.held(get(BatchMatmul)(lhs, rhs, attrs=attrs), shape, island.output, identity(len(shape)))

    return emit


def _side(emitter: Emitter, held: Integers) -> tuple[Any, bool]:
    """One side for ``BatchMatmul``, and whether its matrices are transposed: such a layout is read as it lies."""
    *batch, rows, columns = identity(held.rank)
    swapped = (*batch, columns, rows)
    if held.stored is not None and held.layout == swapped:
        return held.stored, True
    return emitter.plain(held), False


# Convolutions and matrix products whose results stay real: exact integer sums, then one float output stage.
#
# The bias is split: whole products are added to the int32 sum, what is left is added in float32 after scaling.

# The largest integer part of a bias, in products: half of int32's range, the other half is for the zero point's share.
# A larger bias is added as a real number.
MOST_UNITS: Final = 1 << 30

Real = Callable[[Emitter], Any]  # Gives the variable of the float result.


def real_sums(graph: QdqGraph, var: Any) -> tuple[Any, Real] | None:
    """Finds a layer with quantised weights and a float result, and plans it; None for anything else."""
    found = rules.add_bias(graph, var, *CONVOLUTIONS, MATMUL)
    if found is None or info_of(var).dtype != "float32":
        return None
    call = graph.definitions[found[0]]
    if graph.integers(call.args[1]) is None:
        return None
    try:
        return found[0], (_matmul if graph.name(found[0]) == MATMUL else _convolution)(graph, call, found[1])
    except ModelError:
        return None


@dataclass(frozen=True)
class _Layer:
    """A layer with integer weights; ``bias`` has a real number for each output channel."""

    grid: QuantGrid
    weights: QdqWeights
    bias: Array

    def dense(self, emitter: Emitter, rows: Any, values: Array) -> Any:
        expr = get(accumulators.FullyConnectedSums)(rows, constant(values), attrs=Attributes())
        return self.real(emitter, emitter.bind(expr, suffix="_sums"), values)

    def real(self, emitter: Emitter, sums: Any, values: Array) -> Any:
        """Emits the output stage of sums over stored inputs, whose zero point is taken off in the integer bias."""
        scales = np.float64(self.grid.scale) * self.weights.scales.astype(np.float64)
        units = np.rint(self.bias / scales)
        whole = np.where(np.abs(units) <= MOST_UNITS, units, 0)
        zeros = self.grid.zero_point * values.reshape(len(values), -1).astype(np.int64).sum(axis=1)
        rest = (self.bias - whole * scales).astype(np.float32)
        operands = ((whole - zeros).astype(np.int32), scales.astype(np.float32), rest)
        attrs = accumulators.DequantizeSumsAttrs(len(shape_of(sums)) - 1)
        return emitter.bind(get(accumulators.DequantizeSums)(sums, *map(constant, operands), attrs=attrs))


def _grid(graph: QdqGraph, source: Any) -> QuantGrid:
    grid = moved_grid(graph, source)
    if grid is None or grid.dtype != "int8":
        raise ModelError("its input is not quantised to 8 bits")
    return grid


def _matmul(graph: QdqGraph, call: Any, bias: Array | None) -> Real:
    known, shape = graph.integers(call.args[1]), shape_of(call)
    need(known is not None and len(known.shape) == 2 and len(shape_of(call.args[0])) >= 2, "its weights are no matrix")
    assert known is not None
    weights = rules.weights_of(known.each(np.transpose), 0)
    biases = rules.channel_bias(bias, len(shape) - 1, len(shape), len(weights.values))
    layer = _Layer(_grid(graph, call.args[0]), weights, biases)

    def emit(emitter: Emitter) -> Any:
        held = integers_of(emitter, call.args[0], layer.grid)
        real = layer.dense(emitter, *rows_of(emitter, held, weights))
        return real if len(shape) == 2 else emitter.bind(relax.op.reshape(real, shape), suffix="_real")

    return emit


def _convolution(graph: QdqGraph, call: Any, bias: Array | None) -> Real:
    source, window = padded(graph, call)
    need_layout(call)
    weights, shape = rules.weights_of(graph.integers(call.args[1]), 0), shape_of(call)
    layer = _Layer(_grid(graph, source), weights, rules.channel_bias(bias, 1, len(shape), len(weights.values)))

    def emit(emitter: Emitter) -> Any:
        image = image_of(emitter, integers_of(emitter, source, layer.grid))
        rest = None if weights.rest is None else _filters(weights.rest)
        data, values = rules.read_twice(emitter, image, layer.grid, _filters(weights.values), rest)
        real = of_image(emitter, _convolved(emitter, layer, data, values, window), shape)
        if not is_var(real):
            real = emitter.bind(real, suffix="_line")
        axes = (0, len(shape) - 1, *range(1, len(shape) - 1))
        return emitter.bind(relax.op.permute_dims(real, axes), suffix="_real")

    return emit


def _filters(weights: Array) -> Array:
    """Weights as OHWI, with a height of 1 where there is none."""
    return (weights if weights.ndim == 4 else weights[:, :, np.newaxis]).transpose(0, 2, 3, 1)


def _convolved(emitter: Emitter, layer: _Layer, data: Any, values: Array, window: Grouped) -> Any:
    """Emits the convolution of an NHWC image; windows of one pixel make it a matrix product."""
    batch, *extents, depth = shape_of(data)
    if values.shape[1:3] == window.strides == (1, 1) and not any(window.padding) and window.groups == 1:
        rows = emitter.bind(relax.op.reshape(data, (-1, depth)), suffix="_rows")
        real = layer.dense(emitter, rows, values.reshape(len(values), depth))
        return emitter.bind(relax.op.reshape(real, (batch, *extents, len(values))), suffix="_image")
    padding = window.padding
    if any(padding) and layer.grid.zero_point:
        top, left, bottom, right = padding
        widths = [0, 0, top, bottom, left, right, 0, 0]
        expr = relax.op.nn.pad(data, widths, "constant", float(layer.grid.zero_point))
        data, padding = emitter.bind(expr, suffix="_padded"), (0, 0, 0, 0)
    attrs = accumulators.Conv2dSumsAttrs(window.strides, padding, window.dilation, window.groups, accumulators.NHWC)
    sums = emitter.bind(get(accumulators.Conv2dSums)(data, constant(values), attrs=attrs), suffix="_sums")
    return layer.real(emitter, sums, values)
