"""Convolutions of one and two dimensions, depthwise and grouped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import Graph, attributes, shape_of
from uaccel.islands.held import CHANNELS_LAST, Grid, Integers
from uaccel.islands.moves import image_of, integers_of, of_image
from uaccel.islands.rules import Emit, Island, rule
from uaccel.islands.sums import (
    Constants,
    Weights,
    biased,
    channel_bias,
    constants,
    ends,
    read_twice,
    weights_of,
)
from uaccel.model import Shape
from uaccel.ops.base import constant, get
from uaccel.ops.conv2d import Conv2d, Conv2dAttrs
from uaccel.ops.depthwise_conv2d import DepthwiseConv2d
from uaccel.ops.rounding import FLOAT32

CONVOLUTIONS = ("relax.nn.conv1d", "relax.nn.conv2d")


@dataclass(frozen=True)
class Window:
    """A convolution's attributes for two dimensions; one of one dimension has a height of 1."""

    strides: Shape
    padding: Shape
    dilation: Shape
    groups: int


@rule(*CONVOLUTIONS, "relax.add")
def convolution(island: Island) -> Emit | None:
    found = biased(island.graph, island.core, *CONVOLUTIONS)
    if found is None:
        return None
    call = island.graph.definitions[found[0]]
    source, window = padded(island.graph, call)
    grid = island.need_grid(source)
    island.need_one_type(grid)
    need_layout(call)
    weights = weights_of(island.graph.integers(call.args[1]), 0)
    bias = channel_bias(found[1], 1, len(shape_of(call)), weights.values.shape[0])
    operands = constants(island, grid, weights, 0, bias)

    def emit(emitter: Emitter) -> Integers:
        data = image_of(emitter, integers_of(emitter, source, grid))
        return convolved(emitter, island, call, data, grid, window, weights, operands)

    return emit


def need_layout(call: Any) -> None:
    given = attributes(call)
    plain = given.data_layout in ("NCHW", "NCW") and given.kernel_layout in ("OIHW", "OIW")
    need(plain and given.out_layout in ("", given.data_layout), f"its layout is {given.data_layout}")


def _window(call: Any) -> Window:
    given = attributes(call)
    strides, dilation, padding = (tuple(map(int, part)) for part in (given.strides, given.dilation, given.padding))
    if len(strides) == 1:
        before, after = padding
        return Window((1, *strides), (0, before, 0, after), (1, *dilation), int(given.groups))
    return Window(strides, padding, dilation, int(given.groups))


def padded(graph: Graph, call: Any) -> tuple[Any, Window]:
    """The input, and the window with the zeros of a pad before it, which need no work of their own."""
    window = _window(call)
    pad = graph.call(call.args[0], "relax.nn.pad")
    if pad is None or pad.attrs.pad_mode != "constant" or float(pad.attrs.pad_value) != 0.0:
        return call.args[0], window
    widths = [int(width) for width in pad.attrs.pad_width]
    if any(widths[:4]):
        return call.args[0], window
    spatial = widths[4:] if len(widths) == 8 else [0, 0, *widths[4:]]
    more = (spatial[0], spatial[2], spatial[1], spatial[3])
    padding = tuple(a + b for a, b in zip(window.padding, more, strict=True))
    return pad.args[0], Window(window.strides, padding, window.dilation, window.groups)


def convolved(
    emitter: Emitter,
    island: Island,
    call: Any,
    data: Any,
    grid: Grid,
    window: Window,
    weights: Weights,
    operands: Constants,
) -> Integers:
    """The result of ``call``, of an image with its channels last."""
    attrs = Conv2dAttrs(
        strides=window.strides,
        padding=window.padding,
        dilation=window.dilation,
        groups=window.groups,
        **ends(island, grid),
        rounding=FLOAT32,
        weight_bits=weights.bits,
    )
    values = weights.values if weights.values.ndim == 4 else weights.values[:, :, np.newaxis, :]
    if values.shape[1] == 1 and window.groups == shape_of(data)[3] > 1 and weights.rest is None:
        kernel = constant(values[:, 0].transpose(1, 2, 0))
        expr = get(DepthwiseConv2d)(data, kernel, operands.bias, operands.multiplier, operands.shift, attrs=attrs)
    else:
        rest = None if weights.rest is None else weights.rest.reshape(values.shape).transpose(0, 2, 3, 1)
        data, kernel = read_twice(emitter, data, grid, values.transpose(0, 2, 3, 1), rest)
        args = (data, constant(kernel), operands.bias, operands.multiplier, operands.shift)
        expr = get(Conv2d)(*args, attrs=attrs)
    shape = shape_of(call)
    return emitter.held(of_image(emitter, expr, shape), shape, island.output, CHANNELS_LAST[len(shape)])
