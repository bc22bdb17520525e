"""The frame of the rules: how an operator between dequantize and quantize is computed with integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import Graph
from uaccel.islands.held import Grid, Integers
from uaccel.islands.moves import grid_of
from uaccel.ops.traits import name_of
from uaccel.tvm_api import is_call


@dataclass(frozen=True)
class Island:
    """One float value that is quantised, seen from its end.

    ``core`` is the variable of the operator proper, ``value`` that of the activations behind it. ``low`` and ``high``
    are the integers between which the result lies. ``wide``: operands of 8 bits are taken as 16.
    """

    graph: Graph
    core: Any
    value: Any
    output: Grid
    low: int
    high: int
    wide: bool = False

    @property
    def call(self) -> Any:
        return self.graph.definitions[self.core]

    def grid(self, expr: Any) -> Grid | None:
        grid = grid_of(self.graph, expr)
        return grid.wide if self.wide and grid is not None else grid

    def need_grid(self, expr: Any, which: str = "its input") -> Grid:
        """Of an operand that must be quantised."""
        grid = self.grid(expr)
        if grid is None:
            raise ModelError(f"{which} is not quantised")
        return grid

    def need_one_type(self, grid: Grid) -> None:
        """Of the input and the output."""
        mixed = f"its input has {grid.dtype}, its output {self.output.dtype}"
        need(grid.dtype == self.output.dtype, mixed)

    def need_8_bits(self, *grids: Grid) -> None:
        need(all(grid.dtype == "int8" for grid in (*grids, self.output)), "16-bit activations")


Emit = Callable[[Emitter], Integers]
Rule = Callable[[Island], "Emit | None"]
"""What computes the island; None where the rule is about something else; ModelError says why nothing does."""

RULES: dict[str, list[Rule]] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for islands around these operators; those registered first are asked first."""

    def add(function: Rule) -> Rule:
        for name in names:
            RULES.setdefault(name, []).append(function)
        return function

    return add


@dataclass(frozen=True)
class _Clamp:
    source: Any
    low: float | None = None
    high: float | None = None


def island_of(graph: Graph, value: Any, output: Grid, bounds: tuple[int, int] | None = None) -> Island:
    """The operator behind the activations that a clamp of the result, within ``bounds``, can stand for."""
    low, high = bounds or output.limits
    core = value
    while (clamp := _clamp(graph, core)) is not None and grid_of(graph, core) is None:
        # an activation that comes later holds whatever an earlier one says
        low, high = (
            low if clamp.low is None else min(max(low, output.held(clamp.low)), high),
            high if clamp.high is None else max(min(high, output.held(clamp.high)), low),
        )
        core = clamp.source
    return Island(graph, core, value, output, low, high)


def _clamp(graph: Graph, var: Any) -> _Clamp | None:
    """What a variable is bound to, if it is an activation that only cuts off."""
    bound = graph.definitions.get(var)
    if bound is None or not is_call(bound):
        return None
    name = name_of(bound)
    if name == "relax.nn.relu":
        return _Clamp(bound.args[0], low=0.0)
    if name == "relax.nn.relu6":
        return _Clamp(bound.args[0], 0.0, 6.0)
    if name == "relax.clip":
        low, high = (number(arg) for arg in bound.args[1:3])
        return None if low is None or high is None else _Clamp(bound.args[0], low, high)
    if name in ("relax.maximum", "relax.minimum"):
        for data, other in (bound.args, reversed(bound.args)):
            known = graph.value(other)
            if known is not None and known.size == 1 and graph.value(data) is None and same_shape(data, var):
                bound_at = float(known.reshape(-1)[0])
                return _Clamp(data, bound_at, None) if name == "relax.maximum" else _Clamp(data, None, bound_at)
    return None


def same_shape(one: Any, other: Any) -> bool:
    return [int(e) for e in one.ty.shape.values] == [int(e) for e in other.ty.shape.values]


def number(expr: Any) -> float | None:
    """A number that stands among a call's arguments."""
    value = getattr(getattr(expr, "value", expr), "value", getattr(expr, "value", None))
    try:
        return float(np.float32(value))
    except (TypeError, ValueError):
        return None
