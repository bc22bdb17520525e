"""Concatenation: every input comes to the output's grid, then they are joined. A constant is there already."""

from __future__ import annotations

from typing import Any

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import shape_of
from uaccel.islands.held import Grid, Integers
from uaccel.islands.moves import integers_of
from uaccel.islands.plan import Plan, computed, planned
from uaccel.islands.rules import Emit, Island, rule
from uaccel.islands.table import regridded
from uaccel.model import Array
from uaccel.ops.axes import identity
from uaccel.ops.base import constant
from uaccel.tvm_api import is_constant, is_tuple, relax


@rule("relax.concat")
def concatenation(island: Island) -> Emit | None:
    fields = island.call.args[0]
    need(is_tuple(fields), "its inputs are no list")
    parts = [(expr, island.grid(expr) or _part(island, expr)) for expr in fields.fields]
    return lambda emitter: _emit(emitter, island, parts)


def _part(island: Island, expr: Any) -> Plan:
    """One of the inputs that the model does not quantise by itself: on the output's grid at once."""
    known = island.graph.value(expr)
    if known is not None:
        return expr, lambda emitter: _known(island, known)
    plan = planned(island.graph, expr, island.output, (island.low, island.high))
    if isinstance(plan, str):
        raise ModelError(f"one of its inputs is not quantised, and {plan}")
    return plan


def _known(island: Island, values: Array) -> Integers:
    output = island.output
    steps = np.rint(values.astype(np.float64) / np.float64(output.scale)) + output.zero_point
    stored = constant(np.clip(steps, island.low, island.high).astype(output.dtype))
    return Integers(values.shape, output, identity(values.ndim), stored)


def _emit(emitter: Emitter, island: Island, parts: list[tuple[Any, Grid | Plan]]) -> Integers:
    shape = shape_of(island.call)
    rank = len(shape)
    given = island.call.attrs.axis
    axis = int(given) % rank if given is not None else 0
    bounds = (island.low, island.high)
    held = [
        integers_of(emitter, expr, found)
        if isinstance(found, Grid)
        else computed(emitter, expr, found, island.output, bounds)
        for expr, found in parts
    ]
    there = (entry for entry in held if entry.stored is not None and not is_constant(entry.stored))
    layout = next((entry.layout for entry in there), identity(rank))
    laid = [
        regridded(emitter, emitter.stored(entry, layout), entry.grid, island.output, bounds)
        if isinstance(found, Grid)
        else emitter.stored(entry, layout)
        for entry, (_, found) in zip(held, parts, strict=True)
    ]
    expr = relax.op.concat(laid, axis=layout.index(axis))
    return emitter.held(expr, shape, island.output, layout)
