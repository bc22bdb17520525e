"""Concatenation and the larger or smaller of two: every input comes to the output's grid first. A constant is there."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.islands.elementwise import layout_for, stretched
from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import shape_of
from uaccel.islands.held import Grid, Integers
from uaccel.islands.moves import reshaped
from uaccel.islands.plan import Plan, computed, planned
from uaccel.islands.rules import Emit, Island, rule
from uaccel.islands.table import requantized, source_of
from uaccel.model import Array
from uaccel.ops.axes import identity
from uaccel.ops.base import constant, get
from uaccel.ops.minimum_maximum import Maximum, Minimum, MinimumMaximumAttrs
from uaccel.ops.traits import name_of
from uaccel.tvm_api import is_constant, is_tuple, relax

STACK: Final = "relax.stack"


@rule("relax.concat", STACK)
def concatenation(island: Island) -> Emit | None:
    fields = island.call.args[0]
    need(is_tuple(fields), "its inputs are no list")
    parts = [_part(island, expr) for expr in fields.fields]
    return lambda emitter: _emit(emitter, island, parts)


CHOICES: Final[dict[str, Any]] = {"relax.maximum": Maximum, "relax.minimum": Minimum}


@rule(*CHOICES)
def choice(island: Island) -> Emit | None:
    """Rounding changes no order."""
    if source_of(island.graph, island.core) is not None:
        return None  # a function of one tensor, which a table holds
    parts = [_part(island, expr) for expr in island.call.args]

    def emit(emitter: Emitter) -> Integers:
        shape, held = shape_of(island.call), [_regridded(emitter, island, part) for part in parts]
        layout = layout_for(held, len(shape))
        args = [stretched(emitter, entry, shape, layout) for entry in held]
        expr = get(CHOICES[name_of(island.call)])(*args, attrs=MinimumMaximumAttrs())
        return emitter.held(expr, shape, island.output, layout)

    return emit


Part = tuple[Any, "Grid | Plan"]


def _part(island: Island, expr: Any) -> Part:
    """What the model does not quantise by itself comes to the output's grid at once."""
    grid = island.grid(expr)
    if grid is not None:
        return expr, grid
    known = island.graph.value(expr)
    if known is not None:
        return expr, (expr, lambda emitter: _known(island, known))
    plan = planned(island.graph, expr, island.output, (island.low, island.high))
    if isinstance(plan, str):
        raise ModelError(f"one of its inputs is not quantised: {plan}")
    return expr, plan


def _regridded(emitter: Emitter, island: Island, part: Part) -> Integers:
    expr, found = part
    bounds = (island.low, island.high)
    if isinstance(found, Grid):
        return requantized(emitter, expr, found, island.output, bounds)
    return computed(emitter, expr, found, island.output, bounds)


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
        held = [reshaped(emitter, entry, (*entry.shape[:axis], 1, *entry.shape[axis:])) for entry in held]
    there = (entry for entry in held if entry.stored is not None and not is_constant(entry.stored))
    layout = next((entry.layout for entry in there), identity(rank))
    expr = relax.op.concat([emitter.stored(entry, layout) for entry in held], axis=layout.index(axis))
    return emitter.held(expr, shape, island.output, layout)
