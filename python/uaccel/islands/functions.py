"""Products of functions of two tensors, which the model does not quantise by themselves: x * sigmoid(y), any gate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.islands.elementwise import layout_for, stretched
from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import Graph, shape_of
from uaccel.islands.held import Integers
from uaccel.islands.moves import grid_of, integers_of, moved, moved_from
from uaccel.islands.rules import Emit, Island, rule
from uaccel.islands.table import evaluated, functions, source_of
from uaccel.ops.base import constant, get
from uaccel.ops.function_product import FunctionProduct, function_product_operands
from uaccel.ops.lookup import stored_values
from uaccel.ops.traits import PERMUTE, RESHAPING

PRODUCT, QUOTIENT = "relax.multiply", "relax.divide"
AFTER_ALL: Final = frozenset({PERMUTE, *RESHAPING, "relax.split", "relax.strided_slice", "relax.take"})
"""Moves that may as well come before a function of each element."""


@dataclass(frozen=True)
class Tensor:
    """A quantised variable whose elements are moved by what these others are bound to, the last first."""

    source: Any
    moves: tuple[Any, ...] = ()

    def held(self, emitter: Emitter, grid: Any) -> Integers:
        held = integers_of(emitter, self.source, grid)
        for var in reversed(self.moves):
            held = moved(emitter, var, held)
        return held


@dataclass(frozen=True)
class Factor:
    """A function of a tensor, or a number where there is none; divided by where ``power`` is -1."""

    expr: Any
    power: int
    tensor: Tensor | None = None

    def values(self, graph: Graph) -> NDArray[np.float64]:
        """Of all 256 integers of the tensor, by their bits, in double precision."""
        if self.tensor is None:
            return np.asarray(graph.value(self.expr), np.float64).reshape(-1) ** self.power
        grid = grid_of(graph, self.tensor.source)
        assert grid is not None
        reals = (stored_values("int8") - grid.zero_point) * np.float64(grid.scale)
        return np.asarray(evaluated(graph, self.expr, self.tensor.source, reals) ** self.power, np.float64)


@rule(PRODUCT, QUOTIENT)
def product_of_functions(island: Island) -> Emit | None:
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


def _multiplied(graph: Graph, expr: Any, power: int = 1) -> list[tuple[Any, int]]:
    """What is multiplied, through products of products, as far as each is no function of one tensor."""
    call = graph.call(expr, PRODUCT, QUOTIENT)
    if call is None or source_of(graph, expr) is not None:
        return [(expr, power)]
    second = -power if call.op.name == QUOTIENT else power
    return [*_multiplied(graph, call.args[0], power), *_multiplied(graph, call.args[1], second)]


def _factors(graph: Graph, expr: Any) -> list[Factor] | None:
    """None where one of them is no function of one quantised tensor, nor a number."""
    found = [_factor(graph, *part) for part in _multiplied(graph, expr)]
    known = [factor for factor in found if factor is not None]
    return known if len(known) == len(found) else None


def _factor(graph: Graph, expr: Any, power: int) -> Factor | None:
    known = graph.value(expr)
    if known is not None:
        return Factor(expr, power) if known.size == 1 else None
    moves: list[Any] = []
    while (source := source_of(graph, expr)) is None:
        step = moved_from(graph, expr)
        if step is None or step[0].op.name not in AFTER_ALL:
            return None
        moves.append(expr)
        expr = step[1]
    return Factor(expr, power, Tensor(source, tuple(moves)))


def _alone(factors: Iterable[Factor], tensor: Tensor) -> Factor | None:
    """The one factor of a tensor that is this tensor itself."""
    its = [factor for factor in factors if factor.tensor == tensor]
    return its[0] if len(its) == 1 and its[0].expr.same_as(tensor.source) and its[0].power == 1 else None


def _product(graph: Graph, factors: Iterable[Factor]) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):
        return np.asarray(np.prod(np.broadcast_arrays(*(factor.values(graph) for factor in factors)), axis=0))


def _names(graph: Graph, factors: Iterable[Factor]) -> list[str]:
    """The names of the functions, for reports."""
    found = ((factor.expr, factor.tensor.source) for factor in factors if factor.tensor is not None)
    return list(dict.fromkeys(name for expr, source in found for name in functions(graph, expr, source)))
