"""Chooses what computes a quantised value with integers: a rule, a lookup table, or either of them before a move."""

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
    """Plans how a float value is computed on a grid, within bounds; gives the reason in words where nothing can.

    It tries, in this order:
    1. the rules of the operator before the activations, which become the operator's clamp;
    2. a clamp alone, or a table, which holds any chain of elementwise functions of one tensor;
    3. for an operator that only moves elements, a plan for its input, whose result is then moved;
    4. the rules again with 8-bit operands read as 16, if some rule knew the operator and refused.
    """
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
    """The name of an operator for messages: the model's own where it has one."""
    origin = graph.origins.get(var.name) if var in graph.definitions else None
    return origin.op if origin is not None else short_name(graph.name(var)) or "an input"


def _ruled(island: Island) -> Plan | str:
    """Asks the rules of the operator; gives the first plan, or else the first reason (empty if none speaks)."""
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
    """Plans a clamp or change of grid alone, where 16 bits are too wide for a table of 256 entries."""
    grid = island.grid(island.core)
    if grid is None or grid.dtype == island.output.dtype == "int8":
        return None
    return lambda emitter: requantize_by_table(emitter, island.core, grid, island.output, (island.low, island.high))


def _widened(island: Island) -> Plan | None:
    """Plans an operator where 8 and 16 bits meet: all of it in 16 bits, an 8-bit result narrowed at the end.

    The grid of the output stays the same, and so does the clamp: the result fits the narrow type.
    """
    wide = replace(island, output=replace(island.output, dtype="int16"), wide=True)
    plan = _ruled(wide)
    if isinstance(plan, str) or island.output.dtype == "int16":
        return plan if isinstance(plan, tuple) else None
    core, emit = plan
    return core, lambda emitter: emitter.narrowed(emit(emitter), island.output)


def apply_rule(emitter: Emitter, value: Any, plan: Plan, grid: QuantGrid, bounds: Bounds) -> Integers:
    """Carries a plan out once for all readers that want the same value, grid and bounds."""
    key = (value, grid, bounds)
    if key not in emitter.planned:
        before = emitter.layer
        emitter.layer, emit = plan
        emitter.planned[key] = emit(emitter)
        emitter.layer = before
    return emitter.planned[key]


def _through(island: Island) -> Plan | str:
    """Plans a move of elements: its input is quantised, and the integers are moved.

    Rounding keeps the order of numbers, so a maximum of rounded numbers is the rounded maximum. A pad inserts a number
    of its own, which the input's clamp would miss: a pad whose result is clamped gets no such plan.
    """
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
