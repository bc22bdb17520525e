"""Holds the rules for elementwise operators that no lookup table covers, and for concatenation.

They cover sums, products, maxima and minima of two tensors, and gates such as x * sigmoid(y). PReLU with many slopes
and a factor and summand for each channel are here, too. Each rounds the real result once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import ModelError, need
from uaccel.frontend.qdq import emitter as emitting
from uaccel.frontend.qdq.emitter import Emitter, integers_of
from uaccel.frontend.qdq.graph import CHANNELS_LAST, Integers, QdqGraph, QuantGrid, along_axis, shape_of
from uaccel.frontend.qdq.lookup_table import evaluated, functions, reals_of, requantize_by_table, source_of
from uaccel.frontend.qdq.plan import Plan, apply_rule, choose_rule
from uaccel.frontend.qdq.rules import Emit, Island, QdqWeights, channel_bias, constants, ends, rule
from uaccel.model import Array, Shape
from uaccel.ops import binary as binaries
from uaccel.ops.activation import FunctionProduct, PreluOnce, function_product_operands, prelu_once_operands
from uaccel.ops.conv import Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.exact import FLOAT32
from uaccel.ops.lookup import stored_values
from uaccel.ops.operator import PERMUTE, RESHAPING, Attributes, constant, get, name_of
from uaccel.ops.storage import Layout, identity
from uaccel.tvm_api import is_constant, is_tuple, relax

# Sums, differences and products of two tensors, either of which may be a quantised constant.

SIGNS = {"relax.add": 1, "relax.subtract": -1}
MULTIPLY = "relax.multiply"
AVERAGES = ("relax.mean", "relax.nn.avg_pool1d", "relax.nn.avg_pool2d", "relax.nn.adaptive_avg_pool2d")


@dataclass(frozen=True)
class _Operand:
    """One side of a sum or product: a tensor, a constant (``values``), or a function with a ``plan`` of its own."""

    expr: Any
    grid: QuantGrid
    values: Any = None
    plan: Plan | None = None


@rule(*SIGNS, MULTIPLY)
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
    if name == MULTIPLY:
        product = binaries.product_attrs(one, other, output, island.output.dtype, clamp=clamp)
        return lambda emitter: _emit_binary(emitter, island, first, second, binaries.Product, product)
    total = binaries.weighted_sum_attrs(one, other, output, island.output.dtype, sign=SIGNS[name], clamp=clamp)
    return lambda emitter: _emit_binary(emitter, island, first, second, binaries.WeightedSum, total)


def _in_fine_steps(operand: _Operand) -> _Operand:
    """Counts a 16-bit constant of a sum in the finest steps that fit; the value stays exact.

    Both factors of a weighted sum share one power of two and the larger has the most bits. Beside a constant in coarse
    steps (1 - x, where a step of x is 2**-16) the other factor would keep few bits. The steps become finer by the
    largest power of two that leaves the constant an int16: such a power loses no bit of scale or value.
    """
    if operand.values is None or operand.grid.dtype != "int16":
        return operand
    numbers = operand.values.astype(np.int64) - operand.grid.zero_point
    room = np.iinfo("int16").max // max(1, int(np.abs(numbers).max(initial=0)))
    finer = 1 << max(0, room.bit_length() - 1)
    if finer == 1:
        return operand
    grid = QuantGrid(operand.grid.scale / finer, 0, "int16")
    return _Operand(operand.expr, grid, (numbers * finer).astype(np.int16))


def _operand(island: Island, expr: Any) -> _Operand | None:
    """One side of a sum or product as integers; in 16 bits a number, function or mean may be planned here."""
    grid = island.grid(expr)
    if grid is not None:
        return _Operand(expr, grid)
    known = island.graph.integers(expr)
    if known is not None and known.scales.size == 1 and known.zero_points.size == 1:
        low, high = island.output.limits
        offset = 0 if low <= known.integers.min(initial=0) and known.integers.max(initial=0) <= high else high + 1
        scale, zero_point = (part.reshape(-1)[0] for part in (known.scales, known.zero_points))
        grid = QuantGrid(float(scale), int(zero_point) - offset, island.output.dtype)
        return _Operand(expr, grid, (known.integers.astype(np.int64) - offset).astype(grid.dtype))
    if island.output.dtype == "int8":
        return None  # a table is the better way
    return _number(island, expr) or _function(island, expr) or _average(island, expr)


def _function(island: Island, expr: Any) -> _Operand | None:
    """Plans a function of one tensor as a 16-bit operand, where operands depend on different tensors.

    The grid spans exactly the function's range, and zero, so that no step of the 16 bits is wasted.
    """
    alone = source_of(island.graph, island.core) is not None
    reals = None if alone else reals_of(island.graph, expr)
    lowest, highest = (0.0, 0.0) if reals is None else (min(float(reals.min()), 0.0), max(float(reals.max()), 0.0))
    if not 0 < highest - lowest < np.inf:
        return None
    least, most = np.iinfo("int16").min, np.iinfo("int16").max
    scale = float(np.float32((highest - lowest) / (most - least)))
    grid = QuantGrid(scale, least - round(lowest / scale), "int16")
    plan = choose_rule(island.graph, expr, grid)
    return None if isinstance(plan, str) else _Operand(expr, grid, plan=plan)


def _average(island: Island, expr: Any) -> _Operand | None:
    """Plans an unquantised mean as a 16-bit operand: it lies within its input's range, on the input's wide grid."""
    base = expr
    while (step := emitting.movement_source(island.graph, base)) is not None:
        base = step[1]
    call = island.graph.call(base, *AVERAGES)
    grid = island.grid(call.args[0]) if call is not None else None
    plan = choose_rule(island.graph, expr, grid.wide) if grid is not None else ""
    return None if grid is None or isinstance(plan, str) else _Operand(expr, grid.wide, plan=plan)


def _number(island: Island, expr: Any) -> _Operand | None:
    """A float constant of one number c as the integer 1 or -1 on a grid of scale abs(c), which loses nothing."""
    value = island.graph.value(expr)
    if value is None or value.size != 1 or value.dtype != np.float32 or not value.all() or not np.isfinite(value).all():
        return None
    sign = int(np.sign(value).reshape(-1)[0])
    grid = QuantGrid(float(np.abs(value).reshape(-1)[0]), 0, island.output.dtype)
    return _Operand(expr, grid, np.full(value.shape, sign, island.output.dtype))


def _emit_binary(
    emitter: Emitter, island: Island, first: _Operand, second: _Operand, operator: Any, attrs: Any
) -> Integers:
    shape = shape_of(island.call)
    held = [_held(emitter, operand) for operand in (first, second)]
    layout = layout_for(held, len(shape))
    args = [_laid(emitter, entry, operand, shape, layout) for entry, operand in zip(held, (first, second), strict=True)]
    return emitter.held(get(operator)(*args, attrs=attrs), shape, island.output, layout)


def _held(emitter: Emitter, operand: _Operand) -> Integers | None:
    if operand.plan is not None:
        return apply_rule(emitter, operand.expr, operand.plan, operand.grid, operand.grid.limits)
    return None if operand.values is not None else integers_of(emitter, operand.expr, operand.grid)


def layout_for(held: Sequence[Integers | None], rank: int) -> Layout:
    """The layout of the largest operand that has all axes, which then need not be transposed."""
    full = [entry for entry in held if entry is not None and entry.rank == rank and entry.stored is not None]
    best = max(full, key=lambda entry: int(np.prod(entry.shape)), default=None)
    return best.layout if best is not None else identity(rank)


def _laid(emitter: Emitter, held: Integers | None, operand: _Operand, shape: Shape, layout: Layout) -> Any:
    if held is None:
        values = operand.values.reshape((1,) * (len(shape) - operand.values.ndim) + operand.values.shape)
        return constant(np.ascontiguousarray(values.transpose(layout)))
    return stretched(emitter, held, shape, layout)


def stretched(emitter: Emitter, held: Integers, shape: Shape, layout: Layout) -> Any:
    """The tensor with as many axes as ``shape``, in this layout; the reader broadcasts axes of one element."""
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


# Gates: products of functions of two tensors that the model does not quantise separately, such as x * sigmoid(y).
#
# The product is taken apart into factors, each a function of one tensor or a number. All factors of a tensor are
# evaluated for its 256 integers and become one table; the kernel multiplies the entries of both tables and rounds once.

PRODUCT, QUOTIENT = "relax.multiply", "relax.divide"
# Moves that commute with functions of each element: tables are made of the tensor before them.
AFTER_ALL: Final = frozenset({PERMUTE, *RESHAPING, "relax.split", "relax.strided_slice", "relax.take"})


@dataclass(frozen=True)
class QdqTensor:
    """Names a quantised variable, and the moves of its elements before the product, the last first."""

    source: Any
    moves: tuple[Any, ...] = ()

    def held(self, emitter: Emitter, grid: Any) -> Integers:
        held = integers_of(emitter, self.source, grid)
        for var in reversed(self.moves):
            held = emitting.move_integers(emitter, var, held)
        return held


@dataclass(frozen=True)
class Factor:
    """Describes a factor: a function of a tensor, or a number where there is none. Power -1 makes it a divisor."""

    expr: Any
    power: int
    tensor: QdqTensor | None = None

    def values(self, graph: QdqGraph) -> NDArray[np.float64]:
        """The factor for all 256 integers of the tensor, indexed by their bits, in double precision."""
        if self.tensor is None:
            return np.asarray(graph.value(self.expr), np.float64).reshape(-1) ** self.power
        grid = emitting.moved_grid(graph, self.tensor.source)
        assert grid is not None
        reals = (stored_values("int8") - grid.zero_point) * np.float64(grid.scale)
        return np.asarray(evaluated(graph, self.expr, self.tensor.source, reals) ** self.power, np.float64)


@rule(PRODUCT, QUOTIENT)
def product_of_functions(island: Island) -> Emit | None:
    """Plans a gate. A tensor that is a factor as it is comes first: it needs no table, and its scale joins the other's.

    The second table also divides by the output's scale, so that the product counts steps of the output.
    """
    graph, output = island.graph, island.output
    factors = _factors(graph, island.core)
    tensors = list(dict.fromkeys(factor.tensor for factor in factors or () if factor.tensor))
    if factors is None or len(tensors) != 2:
        return None
    first, second = sorted(tensors, key=lambda tensor: _alone(factors, tensor) is None)
    grids = island.need_grid(first.source), island.need_grid(second.source)
    island.need_8_bits(*grids)
    zero_point = grids[0].zero_point if _alone(factors, first) else None
    one = _product(graph, (factor for factor in factors if factor.tensor == first))
    other = _product(graph, (factor for factor in factors if factor.tensor != first)) / np.float64(output.scale)
    attrs, *tables = function_product_operands(
        one if zero_point is None else zero_point,
        other if zero_point is None else other * np.float64(grids[0].scale),
        *(output.zero_point, (island.low, island.high)),
        "_".join(_names(graph, factors)),
    )

    def emit(emitter: Emitter) -> Integers:
        shape = shape_of(island.call)
        held = [tensor.held(emitter, grid) for tensor, grid in zip((first, second), grids, strict=True)]
        layout = layout_for(held, len(shape))
        args = [stretched(emitter, entry, shape, layout) for entry in held]
        return emitter.held(get(FunctionProduct)(*args, *map(constant, tables), attrs=attrs), shape, output, layout)

    return emit


def _multiplied(graph: QdqGraph, expr: Any, power: int = 1) -> list[tuple[Any, int]]:
    """Takes a product apart into factors and their powers, down to functions of one tensor."""
    call = graph.call(expr, PRODUCT, QUOTIENT)
    if call is None or source_of(graph, expr) is not None:
        return [(expr, power)]
    second = -power if call.op.name == QUOTIENT else power
    return [*_multiplied(graph, call.args[0], power), *_multiplied(graph, call.args[1], second)]


def _factors(graph: QdqGraph, expr: Any) -> list[Factor] | None:
    """The factors of a product; None where one is neither a function of one quantised tensor nor a number."""
    found = [_factor(graph, *part) for part in _multiplied(graph, expr)]
    known = [factor for factor in found if factor is not None]
    return known if len(known) == len(found) else None


def _factor(graph: QdqGraph, expr: Any, power: int) -> Factor | None:
    known = graph.value(expr)
    if known is not None:
        return Factor(expr, power) if known.size == 1 else None
    moves: list[Any] = []
    while (source := source_of(graph, expr)) is None:
        step = emitting.movement_source(graph, expr)
        if step is None or step[0].op.name not in AFTER_ALL:
            return None
        moves.append(expr)
        expr = step[1]
    return Factor(expr, power, QdqTensor(source, tuple(moves)))


def _alone(factors: Iterable[Factor], tensor: QdqTensor) -> Factor | None:
    """The factor of a tensor, if there is one alone and it is the tensor itself."""
    its = [factor for factor in factors if factor.tensor == tensor]
    return its[0] if len(its) == 1 and its[0].expr.same_as(tensor.source) and its[0].power == 1 else None


def _product(graph: QdqGraph, factors: Iterable[Factor]) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):
        return np.asarray(np.prod(np.broadcast_arrays(*(factor.values(graph) for factor in factors)), axis=0))


def _names(graph: QdqGraph, factors: Iterable[Factor]) -> list[str]:
    """The names of the functions, for reports."""
    found = ((factor.expr, factor.tensor.source) for factor in factors if factor.tensor is not None)
    return list(dict.fromkeys(name for expr, source in found for name in functions(graph, expr, source)))


# PReLU with several slopes: one for each channel, or one for each element of an image.

PRELU: Final = "relax.nn.prelu"


@rule(PRELU, "relax.where")
def prelu(island: Island) -> Emit | None:
    found = _sloped(island.graph, island.core)
    if found is None or (found[1] == found[1].flat[0]).all():
        return None  # a function of one variable, which a table holds
    data, slopes = found
    grid = island.need_alike(data)
    clamp = (island.low, island.high)
    attrs, factors = prelu_once_operands(grid.quantisation, island.output.quantisation, grid.dtype, slopes, clamp)

    def emit(emitter: Emitter) -> Integers:
        held = emitting.in_place(emitter, integers_of(emitter, data, grid))
        laid = constant(np.ascontiguousarray(factors.transpose(held.layout)))
        return emitter.held(get(PreluOnce)(held.stored, laid, attrs=attrs), held.shape, island.output, held.layout)

    return emit


def _sloped(graph: QdqGraph, var: Any) -> tuple[Any, Array] | None:
    """The tensor and its slopes, of the same rank; None for a ``where`` that is no PReLU."""
    call = graph.call(var, PRELU)
    if call is not None:
        slopes = graph.value(call.args[1])
        rank = len(shape_of(call))
        return None if slopes is None else (call.args[0], along_axis(slopes.reshape(-1), int(call.attrs.axis), rank))
    call = graph.definitions[var]
    below, scaled = graph.call(call.args[0], "relax.less"), graph.call(call.args[1], "relax.multiply")
    data = call.args[2]
    if below is None or scaled is None or not (below.args[0].same_as(data) and scaled.args[0].same_as(data)):
        return None
    limit, slopes = graph.value(below.args[1]), graph.value(scaled.args[1])
    if limit is None or slopes is None or limit.any() or shape_of(data) != shape_of(call):
        return None
    return data, slopes.reshape((1,) * (len(shape_of(data)) - slopes.ndim) + slopes.shape)


# A factor and a summand for each channel, such as a batch normalisation that follows no convolution.
#
# It is a depthwise convolution of one pixel. Every weight is 64 or -64, and each channel's real factor is in its scale.

# The summand becomes a bias in units of input scale * factor / weight: a larger weight makes finer units. 64 is the
# largest power of two that an int8 has with both signs, and dividing by a power of two costs a scale no bit.
WEIGHT: Final = 64


@rule("relax.add", "relax.subtract", "relax.multiply")
def affine(island: Island) -> Emit | None:
    """Plans a factor and a summand for each channel; parts of a concatenation before it are computed one by one."""
    source, summand = _one_constant(island.graph, island.core, "relax.add", "relax.subtract")
    data, factor = _one_constant(island.graph, source, "relax.multiply")
    shape = shape_of(island.core)
    if (summand is None and factor is None) or len(shape) not in (2, 3, 4) or shape_of(data) != shape:
        return None
    if all((part == part.flat[0]).all() for part in (summand, factor) if part is not None):
        return None  # a function of one variable, which a table holds
    channels = shape[1]
    ones = np.ones(channels, np.float32)
    gain = ones if factor is None else channel_bias(factor, 1, len(shape), channels)
    summands = channel_bias(summand, 1, len(shape), channels)
    joined = _joined(island.graph, data)
    if all(island.grid(part) is None for part in joined):
        return None  # another rule says why
    parts, first = [], 0
    for part in joined:
        some = slice(first, first + shape_of(part)[1])
        parts.append(_affine_part(island, part, gain[some], summands[some]))
        first = some.stop

    def emit(emitter: Emitter) -> Integers:
        whole = [part(emitter) for part in parts]
        if len(whole) == 1:
            return whole[0]
        stored = relax.op.concat([emitter.channels_last(part) for part in whole], axis=len(shape) - 1)
        return emitter.held(stored, shape, island.output, CHANNELS_LAST[len(shape)])

    return emit


def _joined(graph: QdqGraph, data: Any) -> list[Any]:
    """The parts of an unquantised concatenation along the channels: each has a grid of its own."""
    call = graph.call(data, "relax.concat")
    if call is None or int(call.attrs.axis) != 1 or emitting.moved_grid(graph, data) is not None:
        return [data]
    return [part for field in call.args[0].fields for part in _joined(graph, field)]


def _affine_part(island: Island, data: Any, gain: Array, summands: Array) -> Emit:
    """Plans a depthwise convolution of one pixel."""
    grid, shape, channels = island.need_alike(data), shape_of(data), len(gain)
    signs = np.where(gain < 0, -WEIGHT, WEIGHT).astype(np.int8)
    weights = QdqWeights(signs.reshape(channels, 1), (np.abs(gain) / WEIGHT).astype(np.float32))
    operands = constants(island, grid, weights, 0, summands)
    attrs = Conv2dAttrs((1, 1), (0, 0, 0, 0), (1, 1), channels, **ends(island, grid), rounding=FLOAT32)

    def emit(emitter: Emitter) -> Integers:
        image = emitting.image_of(emitter, integers_of(emitter, data, grid))
        expr = get(DepthwiseConv2d)(image, constant(signs.reshape(1, 1, channels)), *operands, attrs=attrs)
        return emitter.held(emitting.of_image(emitter, expr, shape), shape, island.output, CHANNELS_LAST[len(shape)])

    return emit


def _one_constant(graph: QdqGraph, var: Any, *operators: str) -> tuple[Any, Array | None]:
    """The computed and the constant operand of a call; the variable and None where it is no such call."""
    call = graph.call(var, *operators)
    if call is None:
        return var, None
    first, second = (graph.value(arg) for arg in call.args)
    if first is None and second is not None:
        return call.args[0], -second if call.op.name == "relax.subtract" else second
    if second is None and first is not None and call.op.name != "relax.subtract":
        return call.args[1], first
    return var, None


# Concatenation, and maximum or minimum of two tensors: every input is brought to the output's grid first.
#
# A constant is quantised to it at compile time.

STACK: Final = "relax.stack"


@rule("relax.concat", STACK)
def concatenation(island: Island) -> Emit | None:
    fields = island.call.args[0]
    need(is_tuple(fields), "its inputs are no list")
    parts = [_part(island, expr) for expr in fields.fields]
    return lambda emitter: _emit(emitter, island, parts)


CHOICES: Final[dict[str, Any]] = {"relax.maximum": binaries.Maximum, "relax.minimum": binaries.Minimum}


@rule(*CHOICES)
def choice(island: Island) -> Emit | None:
    """Plans a maximum or minimum of inputs on the output's grid: rounding first keeps their order."""
    if source_of(island.graph, island.core) is not None:
        return None  # a function of one tensor, which a table holds
    parts = [_part(island, expr) for expr in island.call.args]

    def emit(emitter: Emitter) -> Integers:
        shape, held = shape_of(island.call), [_regridded(emitter, island, part) for part in parts]
        layout = layout_for(held, len(shape))
        args = [stretched(emitter, entry, shape, layout) for entry in held]
        expr = get(CHOICES[name_of(island.call)])(*args, attrs=Attributes())
        return emitter.held(expr, shape, island.output, layout)

    return emit


Part = tuple[Any, "QuantGrid | Plan"]


def _part(island: Island, expr: Any) -> Part:
    """An input and its grid; one that the model does not quantise gets a plan to the output's grid instead."""
    grid = island.grid(expr)
    if grid is not None:
        return expr, grid
    known = island.graph.value(expr)
    if known is not None:
        return expr, (expr, lambda emitter: _known(island, known))
    plan = choose_rule(island.graph, expr, island.output, (island.low, island.high))
    if isinstance(plan, str):
        raise ModelError(f"one of its inputs is not quantised: {plan}")
    return expr, plan


def _regridded(emitter: Emitter, island: Island, part: Part) -> Integers:
    expr, found = part
    bounds = (island.low, island.high)
    if isinstance(found, QuantGrid):
        return requantize_by_table(emitter, expr, found, island.output, bounds)
    return apply_rule(emitter, expr, found, island.output, bounds)


def _known(island: Island, values: Array) -> Integers:
    output = island.output
    steps = np.rint(values.astype(np.float64) / np.float64(output.scale)) + output.zero_point
    stored = constant(np.clip(steps, island.low, island.high).astype(output.dtype))
    return Integers(values.shape, output, identity(values.ndim), stored)


def _emit(emitter: Emitter, island: Island, parts: list[Part]) -> Integers:
    shape = shape_of(island.call)
    rank = len(shape)
    given = island.call.attrs.axis
    axis = int(given) % rank if given is not None else 0
    held = [_regridded(emitter, island, part) for part in parts]
    if name_of(island.call) == STACK:
        held = [emitting.reshaped(emitter, entry, (*entry.shape[:axis], 1, *entry.shape[axis:])) for entry in held]
    there = (entry for entry in held if entry.stored is not None and not is_constant(entry.stored))
    layout = next((entry.layout for entry in there), identity(rank))
    expr = relax.op.concat([emitter.stored(entry, layout) for entry in held], axis=layout.index(axis))
    return emitter.held(expr, shape, island.output, layout)
