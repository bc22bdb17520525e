"""A factor and a summand for each channel, as a batch normalisation is that stands behind no convolution."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import Graph, shape_of
from uaccel.islands.held import CHANNELS_LAST, Integers
from uaccel.islands.moves import grid_of, image_of, integers_of, of_image
from uaccel.islands.rules import Emit, Island, rule
from uaccel.islands.sums import Weights, channel_bias, constants, ends
from uaccel.model import Array
from uaccel.ops.base import constant, get
from uaccel.ops.conv2d import Conv2dAttrs
from uaccel.ops.depthwise_conv2d import DepthwiseConv2d
from uaccel.ops.rounding import FLOAT32
from uaccel.tvm_api import relax

WEIGHT: Final = 64
"""Of every channel: a power of two, so that no scale loses a bit, and large, so that the summand keeps some."""


@rule("relax.add", "relax.subtract", "relax.multiply")
def affine(island: Island) -> Emit | None:
    source, summand = _one_constant(island.graph, island.core, "relax.add", "relax.subtract")
    data, factor = _one_constant(island.graph, source, "relax.multiply")
    shape = shape_of(island.core)
    if (summand is None and factor is None) or len(shape) not in (2, 3, 4) or shape_of(data) != shape:
        return None
    if all((part == part.flat[0]).all() for part in (summand, factor) if part is not None):
        return None  # a function of one variable, which a table holds
    channels = shape[1]
    ones = np.ones(channels, np.float32)
    gain = ones if factor is None else channel_bias(factor, 1, len(shape), channels)
    summands = channel_bias(summand, 1, len(shape), channels)
    joined = _joined(island.graph, data)
    if all(island.grid(part) is None for part in joined):
        return None  # another rule says why
    parts, first = [], 0
    for part in joined:
        some = slice(first, first + shape_of(part)[1])
        parts.append(_part(island, part, gain[some], summands[some]))
        first = some.stop

    def emit(emitter: Emitter) -> Integers:
        whole = [part(emitter) for part in parts]
        if len(whole) == 1:
            return whole[0]
        stored = relax.op.concat([emitter.channels_last(part) for part in whole], axis=len(shape) - 1)
        return emitter.held(stored, shape, island.output, CHANNELS_LAST[len(shape)])

    return emit


def _joined(graph: Graph, data: Any) -> list[Any]:
    """What is joined along the channels before it: each part has a grid of its own."""
    call = graph.call(data, "relax.concat")
    if call is None or int(call.attrs.axis) != 1 or grid_of(graph, data) is not None:
        return [data]
    return [part for field in call.args[0].fields for part in _joined(graph, field)]


def _part(island: Island, data: Any, gain: Array, summands: Array) -> Emit:
    """A depthwise convolution of one pixel."""
    grid, shape, channels = island.need_grid(data), shape_of(data), len(gain)
    island.need_one_type(grid)
    signs = np.where(gain < 0, -WEIGHT, WEIGHT).astype(np.int8)
    weights = Weights(signs.reshape(channels, 1), (np.abs(gain) / WEIGHT).astype(np.float32))
    operands = constants(island, grid, weights, 0, summands)
    attrs = Conv2dAttrs((1, 1), (0, 0, 0, 0), (1, 1), channels, **ends(island, grid), rounding=FLOAT32)

    def emit(emitter: Emitter) -> Integers:
        image = image_of(emitter, integers_of(emitter, data, grid))
        args = (image, constant(signs.reshape(1, 1, channels)), operands.bias, operands.multiplier, operands.shift)
        expr = get(DepthwiseConv2d)(*args, attrs=attrs)
        return emitter.held(of_image(emitter, expr, shape), shape, island.output, CHANNELS_LAST[len(shape)])

    return emit


def _one_constant(graph: Graph, var: Any, *operators: str) -> tuple[Any, Array | None]:
    """The operand that is computed and the one that is known; the variable itself where it is none of these."""
    call = graph.call(var, *operators)
    if call is None:
        return var, None
    first, second = (graph.value(arg) for arg in call.args)
    if first is None and second is not None:
        return call.args[0], -second if call.op.name == "relax.subtract" else second
    if second is None and first is not None and call.op.name != "relax.subtract":
        return call.args[1], first
    return var, None
