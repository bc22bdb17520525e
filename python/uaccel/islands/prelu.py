"""PReLU with several slopes: one for each channel, or one for each element of an image."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import Graph, shape_of
from uaccel.islands.held import Integers
from uaccel.islands.known import along_axis
from uaccel.islands.moves import in_place, integers_of
from uaccel.islands.rules import Emit, Island, rule
from uaccel.model import Array
from uaccel.ops.base import constant, get
from uaccel.ops.prelu_once import PreluOnce, prelu_once_operands

PRELU: Final = "relax.nn.prelu"


@rule(PRELU, "relax.where")
def prelu(island: Island) -> Emit | None:
    found = _sloped(island.graph, island.core)
    if found is None or (found[1] == found[1].flat[0]).all():
        return None  # a function of one variable, which a table holds
    data, slopes = found
    grid = island.need_grid(data)
    island.need_one_type(grid)
    clamp = (island.low, island.high)
    attrs, factors = prelu_once_operands(grid.quantisation, island.output.quantisation, grid.dtype, slopes, clamp)

    def emit(emitter: Emitter) -> Integers:
        held = in_place(emitter, integers_of(emitter, data, grid))
        laid = constant(np.ascontiguousarray(factors.transpose(held.layout)))
        return emitter.held(get(PreluOnce)(held.stored, laid, attrs=attrs), held.shape, island.output, held.layout)

    return emit


def _sloped(graph: Graph, var: Any) -> tuple[Any, Array] | None:
    """The tensor and its slopes, in as many axes; None for a choice of another kind."""
    call = graph.call(var, PRELU)
    if call is not None:
        slopes = graph.value(call.args[1])
        rank = len(shape_of(call))
        return None if slopes is None else (call.args[0], along_axis(slopes.reshape(-1), int(call.attrs.axis), rank))
    call = graph.definitions[var]
    below, scaled, data = (
        graph.call(call.args[0], "relax.less"),
        graph.call(call.args[1], "relax.multiply"),
        call.args[2],
    )
    if below is None or scaled is None or not (below.args[0].same_as(data) and scaled.args[0].same_as(data)):
        return None
    limit, slopes = graph.value(below.args[1]), graph.value(scaled.args[1])
    if limit is None or slopes is None or limit.any() or shape_of(data) != shape_of(call):
        return None
    return data, slopes.reshape((1,) * (len(shape_of(data)) - slopes.ndim) + slopes.shape)
