"""Holds the rules for layer, group and instance normalisation, and for softmax."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend.qdq.emitter import Emitter, integers_of
from uaccel.frontend.qdq.graph import Integers, attributes, shape_of
from uaccel.frontend.qdq.rules import Emit, Island, rule
from uaccel.model import Array, Shape
from uaccel.ops.normalize import LONGEST_ROW, LayerNorm, layer_norm_operands
from uaccel.ops.operator import constant, get, name_of
from uaccel.ops.softmax import SoftmaxOnce, softmax_once_operands
from uaccel.ops.storage import identity
from uaccel.tvm_api import relax

# Layer normalisation over the last axis, and group and instance normalisation of images.

LAYER: Final = "relax.nn.layer_norm"
GROUP: Final = "relax.nn.group_norm"
INSTANCE: Final = "relax.nn.instance_norm"


@rule(LAYER, GROUP, INSTANCE)
def normalisation(island: Island) -> Emit | None:
    call, given = island.call, attributes(island.call)
    grid, shape = island.need_alike(call.args[0]), shape_of(call)
    groups, inner = _pattern(name_of(call), given, shape)
    depth = shape[-1] if name_of(call) == LAYER else math.prod(shape[1:]) // groups
    need(depth <= LONGEST_ROW[grid.dtype], f"a row of over {LONGEST_ROW[grid.dtype]} elements")
    count = groups * depth // inner
    slopes = _factors(island, call.args[1], count) if given.scale else np.ones(count, np.float32)
    offsets = _factors(island, call.args[2], count) if given.center else np.zeros(count, np.float32)
    attrs, *operands = layer_norm_operands(
        *(grid.quantisation, island.output.quantisation, slopes, offsets, float(given.epsilon)),
        groups=groups,
        inner=inner,
        dtype=grid.dtype,
        clamp=(island.low, island.high),
    )

    def emit(emitter: Emitter) -> Integers:
        data = emitter.plain(integers_of(emitter, call.args[0], grid))
        if name_of(call) == LAYER:
            expr = get(LayerNorm)(data, *map(constant, operands), attrs=attrs)
        else:
            rows = emitter.bind(relax.op.reshape(data, (-1, depth)), suffix="_rows")
            normal = get(LayerNorm)(rows, *map(constant, operands), attrs=attrs)
            expr = relax.op.reshape(emitter.bind(normal, suffix="_rows"), shape)
        return emitter.held(expr, shape, island.output, identity(len(shape)))

    return emit


def _pattern(name: str, given: SimpleNamespace, shape: Shape) -> tuple[int, int]:
    """How many rows have factors of their own, and how many neighbouring elements share a factor and a summand."""
    rank = len(shape)
    axes = [axis for axis in (int(axis) % rank for axis in given.axes) if axis or shape[0] > 1]
    if name == LAYER:
        need(axes == [rank - 1], "axes other than the last one")
        return 1, 1
    plain = int(given.channel_axis) % rank == 1 and axes == list(range(2, rank))
    need(plain, "channels along another axis than the second, or axes left out")
    return int(given.num_groups) if name == GROUP else shape[1], math.prod(shape[2:])


def _factors(island: Island, operand: Any, count: int) -> Array:
    known = island.graph.value(operand)
    if known is None:
        raise ModelError("its scale and shift are computed at run time")
    return np.broadcast_to(known.reshape(-1), (count,)).astype(np.float32)


# Softmax along any one axis.


@rule("relax.nn.softmax")
def softmax(island: Island) -> Emit | None:
    call, grid = island.call, island.need_alike(island.call.args[0])
    need((island.low, island.high) == island.output.limits, "an activation behind a softmax")
    shape = shape_of(call)
    axis = int(call.attrs.axis) % len(shape)
    layout = (*(place for place in range(len(shape)) if place != axis), axis)
    attrs, table = softmax_once_operands(grid.quantisation, island.output.quantisation, island.output.dtype, grid.dtype)

    def emit(emitter: Emitter) -> Integers:
        data = emitter.stored(integers_of(emitter, call.args[0], grid), layout)
        return emitter.held(get(SoftmaxOnce)(data, constant(table), attrs=attrs), shape, island.output, layout)

    return emit
