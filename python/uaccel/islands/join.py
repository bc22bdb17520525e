"""Concatenation: every input comes to the output's grid, then they are joined."""

from __future__ import annotations

from typing import Any

from uaccel.errors import need
from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import shape_of
from uaccel.islands.held import Grid, Integers
from uaccel.islands.moves import integers_of
from uaccel.islands.rules import Emit, Island, rule
from uaccel.islands.table import regridded
from uaccel.ops.axes import identity
from uaccel.tvm_api import is_tuple, relax


@rule("relax.concat")
def concatenation(island: Island) -> Emit | None:
    fields = island.call.args[0]
    need(is_tuple(fields), "its inputs are no list")
    parts = [(expr, island.need_grid(expr, "one of its inputs")) for expr in fields.fields]
    alike = all(grid.dtype == island.output.dtype for _, grid in parts)
    need(alike, "its inputs and output have several types")
    return lambda emitter: _emit(emitter, island, parts)


def _emit(emitter: Emitter, island: Island, parts: list[tuple[Any, Grid]]) -> Integers:
    shape = shape_of(island.call)
    rank = len(shape)
    given = island.call.attrs.axis
    axis = int(given) % rank if given is not None else 0
    held = [integers_of(emitter, expr, grid) for expr, grid in parts]
    layout = next((entry.layout for entry in held if entry.stored is not None), identity(rank))
    bounds = (island.low, island.high)
    laid = [regridded(emitter, emitter.stored(entry, layout), entry.grid, island.output, bounds) for entry in held]
    expr = relax.op.concat(laid, axis=layout.index(axis))
    return emitter.held(expr, shape, island.output, layout)
