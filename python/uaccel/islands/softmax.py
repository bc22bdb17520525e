"""Softmax along any one axis."""

from __future__ import annotations

from uaccel.errors import need
from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import shape_of
from uaccel.islands.held import Integers
from uaccel.islands.moves import integers_of
from uaccel.islands.rules import Emit, Island, rule
from uaccel.ops.base import constant, get
from uaccel.ops.softmax_once import SoftmaxOnce, softmax_once_operands


@rule("relax.nn.softmax")
def softmax(island: Island) -> Emit | None:
    call, grid = island.call, island.need_grid(island.call.args[0])
    island.need_one_type(grid)
    need((island.low, island.high) == island.output.limits, "an activation behind a softmax")
    shape = shape_of(call)
    axis = int(call.attrs.axis) % len(shape)
    layout = (*(place for place in range(len(shape)) if place != axis), axis)
    attrs, table = softmax_once_operands(grid.quantisation, island.output.quantisation, island.output.dtype, grid.dtype)

    def emit(emitter: Emitter) -> Integers:
        data = emitter.stored(integers_of(emitter, call.args[0], grid), layout)
        return emitter.held(get(SoftmaxOnce)(data, constant(table), attrs=attrs), shape, island.output, layout)

    return emit
