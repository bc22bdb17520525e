"""Layer normalisation over the last axis."""

from __future__ import annotations

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import attributes, shape_of
from uaccel.islands.held import Integers
from uaccel.islands.moves import integers_of
from uaccel.islands.rules import Emit, Island, rule
from uaccel.ops.axes import identity
from uaccel.ops.base import constant, get
from uaccel.ops.layer_norm import LONGEST_ROW, LayerNorm, layer_norm_operands


@rule("relax.nn.layer_norm")
def layer_norm(island: Island) -> Emit | None:
    call, given = island.call, attributes(island.call)
    grid, shape = island.need_grid(call.args[0]), shape_of(call)
    gamma, beta = (island.graph.value(arg) for arg in call.args[1:3])
    if gamma is None or beta is None:
        raise ModelError("its scale and shift are computed at run time")
    plain = grid.dtype == island.output.dtype == "int8" and (island.low, island.high) == island.output.limits
    need(plain, "16-bit activations, or an activation behind it")
    last = [int(axis) % len(shape) for axis in given.axes] == [len(shape) - 1] and shape[-1] <= LONGEST_ROW
    need(last, f"axes other than the last one, or a row of over {LONGEST_ROW} elements")
    slopes, offsets = (np.broadcast_to(part.reshape(-1), shape[-1:]).astype(np.float32) for part in (gamma, beta))
    attrs, *operands = layer_norm_operands(
        grid.quantisation, island.output.quantisation, slopes, offsets, float(given.epsilon)
    )

    def emit(emitter: Emitter) -> Integers:
        data = emitter.plain(integers_of(emitter, call.args[0], grid))
        expr = get(LayerNorm)(data, *map(constant, operands), attrs=attrs)
        return emitter.held(expr, shape, island.output, identity(len(shape)))

    return emit
