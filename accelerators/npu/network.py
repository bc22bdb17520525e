"""Turns operator calls into the machine's layers: additions join the convolution before them, views vanish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from math import prod
from typing import Any, Final

import numpy as np

from uaccel.accelerator import FLOAT32, OpCall, Region
from uaccel.streams import Layer, Network, Shape, Window, window_of

from .layers import Addition, Clamp, Convolution, Depthwise, Pool, Table, Weighted
from .machine import Npu
from .means import Mean, image_of, mean_of
from .products import Product

VIEW: Final = "relax.reshape"
ADD: Final = "uaccel.add"
WEIGHTED_SUM: Final = "uaccel.weighted_sum"
BATCH_MATMUL: Final = "uaccel.batch_matmul"
LOOKUP: Final = "uaccel.lookup"
DEPTHWISE: Final = "uaccel.depthwise_conv2d"
FULLY_CONNECTED: Final = "uaccel.fully_connected"
MEANS: Final = ("uaccel.mean", "uaccel.scaled_sum", "uaccel.window_mean")
PAD: Final = "relax.nn.pad"
MAX_POOLS: Final = ("uaccel.max_pool2d", "uaccel.window_max")
AVERAGE_POOL: Final = "uaccel.average_pool2d"


def network_of(region: Region, npu: Npu) -> Network:
    """Its layers in an order in which they can run."""
    known: dict[str, bytes] = {}
    views = {call.results[0]: str(call.sources[0]) for call in region.calls if call.op == VIEW}
    pads = {call.results[0]: call for call in region.calls if call.op == PAD}
    calls = [call for call in region.calls if call.op not in (VIEW, PAD)]
    layers = [_resolved(layer_of(call, npu, known, pads.get(call.sources[0] or "")), views) for call in calls]
    outputs = tuple(tensor.name for tensor in region.outputs)
    fused = _fuse(layers, {_root(name, views) for name in outputs})
    return Network(tuple(fused), tuple(tensor.name for tensor in region.inputs), outputs, known)


def layer_of(call: OpCall, npu: Npu, known: dict[str, bytes], pad: OpCall | None = None) -> Layer:
    """Makes a layer; constants go to ``known``, and the zero points of ``pad`` become padding of its own."""
    if call.op in (ADD, WEIGHTED_SUM):
        return _addition(call, npu, known)
    if call.op == BATCH_MATMUL:
        return _product(call, npu, known)
    source, result = str(call.sources[0]), call.results[0]
    if call.op in MEANS:
        found = mean_of(call)
        assert isinstance(found, Mean)  # the check holds it
        return _mean(call, found, npu)
    if call.op == LOOKUP:
        shape = _in_rows(call.output.shape)
        return Table(call.name, (source,), (shape,), result, shape, 1, 1, npu, call.operands[1].value.tobytes())
    if call.op in (*MAX_POOLS, AVERAGE_POOL):
        attrs = call.attrs
        window = window_of(attrs, attrs.window)
        shape, channels = _shape(call.output.shape), call.output.shape[3]
        clamp = Clamp(clamp_min=attrs.clamp_min, clamp_max=attrs.clamp_max)
        blocks = -(-channels // npu.columns)
        tensors = (call.name, (source,), (_shape(call.operands[0].info.shape),), result, shape, blocks, 1)
        return Pool(*tensors, npu, window, clamp, channels, average=call.op == AVERAGE_POOL)
    if pad is None:
        return _weighted(call, npu, source, call.operands[0].info.shape, (0, 0))
    return _weighted(call, npu, str(pad.sources[0]), pad.operands[0].info.shape, padding_of(pad)[0])


def padding_of(pad: OpCall) -> tuple[tuple[int, int], bool]:
    """Rows above and columns to the left; and whether there is padding in rows and columns alone."""
    widths = [int(width) for width in pad.attrs.pad_width]
    return (widths[2], widths[4]), len(widths) == 8 and not any((*widths[:2], *widths[6:])) and min(widths) >= 0


def _weighted(call: OpCall, npu: Npu, source: str, data: tuple[int, ...], more: tuple[int, int]) -> Layer:
    """``more``: padding before what its attributes say."""
    attrs, weights, result = call.attrs, call.operands[1].value, call.results[0]
    single = attrs.rounding == FLOAT32
    clamp = Clamp(attrs.input_zero_point, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, single)
    if call.op == FULLY_CONNECTED:
        inputs, output = Shape(1, 1, data[0], data[1]), Shape(1, 1, data[0], call.output.shape[1])
        weights, window = weights[:, None, None, :], Window()
    else:
        inputs, output = _shape(data), _shape(call.output.shape)
        kernel = weights.shape[:2] if call.op == DEPTHWISE else weights.shape[1:3]
        padding = (attrs.padding[0] + more[0], attrs.padding[1] + more[1])
        window = replace(window_of(attrs, kernel), padding=padding)
    if call.op == DEPTHWISE:
        if inputs.columns == output.columns == window.kernel[1] == 1 and window.padding[1] == 0:
            inputs, output, window, weights = _lying(inputs), _lying(output), _across(window), weights.swapaxes(0, 1)
        multiplier = output.channels // inputs.channels
        if multiplier <= npu.columns:
            whole = npu.columns // multiplier * multiplier  # output channels of as many input channels as fill a block
            blocks = -(-output.channels // whole)
            tensors = (call.name, (source,), (inputs,), result, output, blocks, 1)
            parameters = _parameters(call, weights.reshape(-1, output.channels).T)
            group = output.channels if whole == npu.columns else whole
            return Depthwise(*tensors, npu, window, clamp, group, parameters, filters=weights, multiplier=multiplier)
        weights = np.ascontiguousarray(weights.transpose(2, 0, 1)[..., None])
    group_channels = output.channels * weights.shape[3] // inputs.channels
    blocks = output.channels // group_channels * -(-group_channels // npu.columns)
    steps = -(-window.taps * weights.shape[3] // npu.rows)
    tensors = (call.name, (source,), (inputs,), result, output, blocks, steps)
    return Convolution(*tensors, npu, window, clamp, group_channels, _parameters(call, weights), filters=weights)


def _lying(column: Shape) -> Shape:
    """A single column as a row, along which windows slide."""
    return Shape(column.images, 1, column.rows, column.channels)


def _across(window: Window) -> Window:
    """Turns a window to slide along such a row; what is beside a column has no part in it."""
    kernel, strides, dilation = ((1, pair[0]) for pair in (window.kernel, window.strides, window.dilation))
    return Window(kernel, strides, dilation, (0, window.padding[0]))


def _mean(call: OpCall, mean: Mean, npu: Npu) -> Layer:
    """A depthwise convolution with weights of 1; along the last axis a fully connected layer of one channel."""
    inputs = image_of(call)
    assert inputs is not None  # the check holds it
    output = Shape(inputs.images, 1, 1, inputs.channels)
    source, parameters = (str(call.sources[0]),), np.tile(np.array(mean.parameters, "<i4"), (inputs.channels, 1))
    if call.op == "uaccel.window_mean":
        output = _shape(call.output.shape)
    elif inputs.channels == 1:
        rows, depth = inputs.images, mean.window.taps
        flat = (call.name, source, (Shape(1, 1, rows, depth),), call.results[0], Shape(1, 1, rows, 1), 1)
        ones = np.ones((1, 1, 1, depth), np.int8)
        return Convolution(*flat, -(-depth // npu.rows), npu, Window(), mean.clamp, 1, parameters, filters=ones)
    tensors = (call.name, source, (inputs,), call.results[0], output)
    return Depthwise(
        *(*tensors, -(-inputs.channels // npu.columns), 1, npu, mean.window, mean.clamp),
        inputs.channels,
        parameters,
        filters=np.ones((*mean.window.kernel, inputs.channels), np.int8),
    )


def _parameters(call: OpCall, filters: Any) -> Any:
    """Bias, multiplier and shift by output channel; ``filters`` one after the other."""
    bias, multiplier, shift = (operand.value.astype(np.int64) for operand in call.operands[2:5])
    sums = filters.reshape(len(filters), -1).astype(np.int64).sum(axis=1)
    corrected = bias - call.attrs.input_zero_point * sums
    columns = np.stack(np.broadcast_arrays(corrected, multiplier, shift), axis=1)
    return (columns & 0xFFFFFFFF).astype("<u4").view("<i4")


def _addition(call: OpCall, npu: Npu, known: dict[str, bytes]) -> Layer:
    """A constant is repeated ahead of time until it has the result's shape."""
    names, shape = _names(call, known, call.output.shape), _in_rows(call.output.shape)
    once, a = call.op == WEIGHTED_SUM, call.attrs
    numbers = once_numbers(a) if once else astuple(a)
    return Addition(call.name, names, (shape, shape), call.results[0], shape, 1, 1, npu, numbers, once)


def _names(call: OpCall, known: dict[str, bytes], shape: tuple[int, ...] | None = None) -> tuple[str, ...]:
    """Its operands; constants go to ``known``, repeated until they have a shape."""
    names = []
    for index, operand in enumerate(call.operands):
        name = call.sources[index]
        if name is None:
            name = f"{call.name} constant {index}"
            known[name] = np.broadcast_to(operand.value, shape or operand.info.shape).astype(np.int8).tobytes()
        names.append(name)
    return tuple(names)


def _product(call: OpCall, npu: Npu, known: dict[str, bytes]) -> Layer:
    """The left side's matrices are images of one row; if they lie transposed, of one channel."""
    attrs, (left, right), (*_, rows, columns) = call.attrs, (o.info.shape for o in call.operands), call.output.shape
    images, depth = prod(call.output.shape[:-2]), left[-2 if attrs.adj_x else -1]
    batches = [prod(side[:-2]) for side in (left, right)]
    if batches[1] == 1 and not attrs.adj_x:
        batches[0], images, rows = 1, 1, rows * images
    window = Window((depth, 1)) if attrs.adj_x else Window()
    shapes = (
        Shape(batches[0], depth, rows, 1) if attrs.adj_x else Shape(batches[0], 1, rows, depth),
        Shape(batches[1], 1, *right[-2:]),
    )
    tensors = (call.name, _names(call, known), shapes, call.results[0], Shape(images, 1, rows, columns))
    return Product(
        *(*tensors, -(-columns // npu.columns), -(-depth // npu.rows), npu, window),
        Clamp(0, attrs.output_zero_point, single=attrs.rounding == FLOAT32),
        columns,
        np.tile(np.array((0, attrs.multiplier, attrs.shift), "<i4"), (columns, 1)),
        filters=np.empty((0, *window.kernel, shapes[0].channels), np.int8),
        turned=not attrs.adj_y,
        zero_points=(attrs.lhs_zero_point, attrs.rhs_zero_point),
    )


def once_numbers(a: Any) -> tuple[int, ...]:
    """An addition's parameters where it rounds once, in the places of those where it does not."""
    operands = (a.zero_point1, a.multiplier1, 0, a.zero_point2, a.multiplier2, 0)
    return (a.shift, *operands, a.output_zero_point, a.tolerance, 0, a.clamp_min, a.clamp_max)


@dataclass(frozen=True)
class _Pair:
    """A convolution whose result goes to an addition and nowhere else; ``swapped``: as its second operand."""

    convolution: int
    addition: int
    residual: str
    swapped: bool


def _fuse(layers: list[Layer], outputs: set[str]) -> list[Layer]:
    """Each addition into the later one of the layers that it adds, where that can do it."""
    uses = Counter(name for layer in layers for name in layer.inputs)
    made = {layer.output: number for number, layer in enumerate(layers)}
    gone: set[int] = set()
    for number, layer in enumerate(layers):
        pair = _fusible(layers, number, made, uses, outputs) if isinstance(layer, Addition) else None
        if pair is not None:
            layers[pair.convolution] = _with_residual(layers[pair.convolution], layer, pair)
            made[layer.output] = pair.convolution
            gone.add(number)
    return [layer for number, layer in enumerate(layers) if number not in gone]


def _fusible(
    layers: list[Layer], addition: int, made: Mapping[str, int], uses: Mapping[str, int], outputs: set[str]
) -> _Pair | None:
    names = layers[addition].inputs
    number, swapped = max((made.get(name, -1), index == 1) for index, name in enumerate(names))
    name, residual = (names[1], names[0]) if swapped else (names[0], names[1])
    layer = layers[number]
    if number < 0 or not isinstance(layer, Weighted) or layer.addition or name in outputs or uses[name] != 1:
        return None
    return _Pair(number, addition, residual, swapped) if made.get(residual, -1) < number else None


def _with_residual(layer: Layer, addition: Layer, pair: _Pair) -> Layer:
    assert isinstance(layer, Weighted)
    assert isinstance(addition, Addition)
    left_shift, *rest = addition.addition
    first, second, finish = rest[0:3], rest[3:6], rest[6:]
    operands = (*second, *first) if pair.swapped else (*first, *second)
    inputs, shapes = (layer.inputs[0], pair.residual), (layer.shapes[0], layer.shape)
    name = f"{layer.name}+{addition.name}"
    added = (left_shift, *operands, *finish)
    return replace(
        layer, name=name, inputs=inputs, shapes=shapes, output=addition.output, addition=added, once=addition.once
    )


def _resolved(layer: Layer, views: Mapping[str, str]) -> Layer:
    return replace(layer, inputs=tuple(_root(name, views) for name in layer.inputs))


def _root(name: str, views: Mapping[str, str]) -> str:
    """The tensor whose bytes these are."""
    while name in views:
        name = views[name]
    return name


def _in_rows(extents: tuple[int, ...]) -> Shape:
    columns = prod(extents[-2:])
    return Shape(1, prod(extents) // columns, columns, 1)


def _shape(extents: tuple[int, ...]) -> Shape:
    return Shape(*extents)
