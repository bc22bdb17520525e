"""Convolutions and matrix products of integers whose results stay real: exact sums, and one float output stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.islands.conv import CONVOLUTIONS, Window, need_layout, padded
from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import Graph, shape_of
from uaccel.islands.held import Grid
from uaccel.islands.matmul import MATMUL, rows_of
from uaccel.islands.moves import grid_of, image_of, integers_of, of_image
from uaccel.islands.sums import Weights, biased, channel_bias, read_twice, weights_of
from uaccel.model import Array
from uaccel.ops.base import constant, get, info_of
from uaccel.ops.conv2d_sums import NHWC, Conv2dSums, Conv2dSumsAttrs
from uaccel.ops.dequantize_sums import DequantizeSums, DequantizeSumsAttrs
from uaccel.ops.fully_connected_sums import FullyConnectedSums, FullyConnectedSumsAttrs
from uaccel.tvm_api import is_var, relax

MOST_UNITS: Final = 1 << 30
"""Of a bias, in products; a larger one is added as a real number."""

Real = Callable[[Emitter], Any]
"""Gives the variable of the float result."""


def real_sums(graph: Graph, var: Any) -> tuple[Any, Real] | None:
    """The variable of the operator proper, and what computes the real value; None for what integers do not."""
    found = biased(graph, var, *CONVOLUTIONS, MATMUL)
    if found is None or info_of(var).dtype != "float32":
        return None
    call = graph.definitions[found[0]]
    if graph.integers(call.args[1]) is None:
        return None
    try:
        return found[0], (_matmul if graph.name(found[0]) == MATMUL else _convolution)(graph, call, found[1])
    except ModelError:
        return None


@dataclass(frozen=True)
class _Layer:
    """``bias`` has a real number for each output channel."""

    grid: Grid
    weights: Weights
    bias: Array

    def dense(self, emitter: Emitter, rows: Any, values: Array) -> Any:
        expr = get(FullyConnectedSums)(rows, constant(values), attrs=FullyConnectedSumsAttrs())
        return self.real(emitter, emitter.bind(expr, suffix="_sums"), values)

    def real(self, emitter: Emitter, sums: Any, values: Array) -> Any:
        """Of sums of what is stored, whose zero point goes into the bias."""
        scales = np.float64(self.grid.scale) * self.weights.scales.astype(np.float64)
        units = np.rint(self.bias / scales)
        whole = np.where(np.abs(units) <= MOST_UNITS, units, 0)
        zeros = self.grid.zero_point * values.reshape(len(values), -1).astype(np.int64).sum(axis=1)
        rest = (self.bias - whole * scales).astype(np.float32)
        operands = ((whole - zeros).astype(np.int32), scales.astype(np.float32), rest)
        attrs = DequantizeSumsAttrs(len(shape_of(sums)) - 1)
        return emitter.bind(get(DequantizeSums)(sums, *map(constant, operands), attrs=attrs))


def _grid(graph: Graph, source: Any) -> Grid:
    grid = grid_of(graph, source)
    if grid is None or grid.dtype != "int8":
        raise ModelError("its input is not quantised to 8 bits")
    return grid


def _matmul(graph: Graph, call: Any, bias: Array | None) -> Real:
    known, shape = graph.integers(call.args[1]), shape_of(call)
    need(known is not None and len(known.shape) == 2 and len(shape_of(call.args[0])) >= 2, "its weights are no matrix")
    assert known is not None
    weights = weights_of(known.each(np.transpose), 0)
    biases = channel_bias(bias, len(shape) - 1, len(shape), len(weights.values))
    layer = _Layer(_grid(graph, call.args[0]), weights, biases)

    def emit(emitter: Emitter) -> Any:
        held = integers_of(emitter, call.args[0], layer.grid)
        real = layer.dense(emitter, *rows_of(emitter, held, weights))
        return real if len(shape) == 2 else emitter.bind(relax.op.reshape(real, shape), suffix="_real")

    return emit


def _convolution(graph: Graph, call: Any, bias: Array | None) -> Real:
    source, window = padded(graph, call)
    need_layout(call)
    weights, shape = weights_of(graph.integers(call.args[1]), 0), shape_of(call)
    layer = _Layer(_grid(graph, source), weights, channel_bias(bias, 1, len(shape), len(weights.values)))

    def emit(emitter: Emitter) -> Any:
        image = image_of(emitter, integers_of(emitter, source, layer.grid))
        rest = None if weights.rest is None else _filters(weights.rest)
        data, values = read_twice(emitter, image, layer.grid, _filters(weights.values), rest)
        real = of_image(emitter, _convolved(emitter, layer, data, values, window), shape)
        if not is_var(real):
            real = emitter.bind(real, suffix="_line")
        axes = (0, len(shape) - 1, *range(1, len(shape) - 1))
        return emitter.bind(relax.op.permute_dims(real, axes), suffix="_real")

    return emit


def _filters(weights: Array) -> Array:
    """Channels last, and with a height of 1 where there is no height."""
    return (weights if weights.ndim == 4 else weights[:, :, np.newaxis]).transpose(0, 2, 3, 1)


def _convolved(emitter: Emitter, layer: _Layer, data: Any, values: Array, window: Window) -> Any:
    """Channels last. Windows of a pixel are rows of a matrix."""
    batch, *extents, depth = shape_of(data)
    if values.shape[1:3] == window.strides == (1, 1) and not any(window.padding) and window.groups == 1:
        rows = emitter.bind(relax.op.reshape(data, (-1, depth)), suffix="_rows")
        real = layer.dense(emitter, rows, values.reshape(len(values), depth))
        return emitter.bind(relax.op.reshape(real, (batch, *extents, len(values))), suffix="_image")
    padding = window.padding
    if any(padding) and layer.grid.zero_point:
        top, left, bottom, right = padding
        widths = [0, 0, top, bottom, left, right, 0, 0]
        expr = relax.op.nn.pad(data, widths, "constant", float(layer.grid.zero_point))
        data, padding = emitter.bind(expr, suffix="_padded"), (0, 0, 0, 0)
    attrs = Conv2dSumsAttrs(window.strides, padding, window.dilation, window.groups, NHWC)
    sums = emitter.bind(get(Conv2dSums)(data, constant(values), attrs=attrs), suffix="_sums")
    return layer.real(emitter, sums, values)
