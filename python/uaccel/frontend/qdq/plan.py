"""What computes a quantised value with integers: a rule, a table, or either of them before what only moves elements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from uaccel.errors import ModelError
from uaccel.frontend.qdq.emitter import Emitter, move_integers, movement_source
from uaccel.frontend.qdq.graph import Integers, QdqGraph, QuantGrid
from uaccel.frontend.qdq.lookup_table import requantize_by_table, table_island
from uaccel.frontend.qdq.rules import RULES, Emit, Island, island_of
from uaccel.ops.operator import PAD, short_name

Bounds = tuple[int, int]
Plan = tuple[Any, Emit]  # The variable that the layer is named after, and what computes it.


def choose_rule(graph: QdqGraph, value: Any, grid: QuantGrid, bounds: Bounds | None = None) -> Plan | str:
    """How a float value is computed on a grid, within bounds; or why it is not."""
    island = island_of(graph, value, grid, bounds)
    found = _ruled(island)
    if isinstance(found, tuple):
        return found
    try:
        plan = _clamped(island) or table_island(graph, value, grid, bounds or grid.limits)
    except ModelError as error:
        plan, found = None, found or str(error)
    if plan is not None:
        return value, plan
    through = _through(island)
    if not isinstance(through, str):
        return through
    reason = found or through or f"{_spoken(graph, island.core)} is no operator that integers can compute"
    return (_widened(island) if found else None) or reason


def _spoken(graph: QdqGraph, var: Any) -> str:
    """As the model calls the operator, where it is one of the model's."""
    origin = graph.origins.get(var.name) if var in graph.definitions else None
    return origin.op if origin is not None else short_name(graph.name(var)) or "an input"


def _ruled(island: Island) -> Plan | str:
    """By the rules of its operator; or the first reason that one of them gives, if any does."""
    reason = ""
    for ask in RULES.get(island.graph.name(island.core), ()):
        try:
            found = ask(island)
        except ModelError as error:
            reason = reason or str(error)
            continue
        if found is not None:
            return island.core, found
    return reason


def _clamped(island: Island) -> Emit | None:
    """A clamp alone, of what is too wide for a table."""
    grid = island.grid(island.core)
    if grid is None or grid.dtype == island.output.dtype == "int8":
        return None
    return lambda emitter: requantize_by_table(emitter, island.core, grid, island.output, (island.low, island.high))


def _widened(island: Island) -> Plan | None:
    """Where 8 and 16 bits meet: in 16, and the result in what it has."""
    wide = replace(island, output=replace(island.output, dtype="int16"), wide=True)
    plan = _ruled(wide)
    if isinstance(plan, str) or island.output.dtype == "int16":
        return plan if isinstance(plan, tuple) else None
    core, emit = plan
    return core, lambda emitter: emitter.narrowed(emit(emitter), island.output)


def apply_rule(emitter: Emitter, value: Any, plan: Plan, grid: QuantGrid, bounds: Bounds) -> Integers:
    """By a plan, once for all who want the same."""
    key = (value, grid, bounds)
    if key not in emitter.planned:
        before = emitter.layer
        emitter.layer, emit = plan
        emitter.planned[key] = emit(emitter)
        emitter.layer = before
    return emitter.planned[key]


def _through(island: Island) -> Plan | str:
    """What comes before a move is quantised, and then moved: rounding changes no order, and so no maximum."""
    step = movement_source(island.graph, island.core)
    bounds = island.low, island.high
    if step is None or (island.graph.name(island.core) == PAD and bounds != island.output.limits):
        return ""
    plan = choose_rule(island.graph, step[1], island.output, bounds)
    if isinstance(plan, str):
        return plan

    def emit(emitter: Emitter) -> Integers:
        return move_integers(emitter, island.core, apply_rule(emitter, step[1], plan, island.output, bounds))

    return island.core, emit
