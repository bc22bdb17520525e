"""Holds the rules for convolutions of one and two dimensions, transposed ones too, and for bilinear resizing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.frontend.qdq import rules
from uaccel.frontend.qdq.emitter import Emitter, image_of, integers_of, of_image
from uaccel.frontend.qdq.graph import CHANNELS_LAST, Integers, KnownIntegers, QdqGraph, QuantGrid, attributes, shape_of
from uaccel.frontend.qdq.rules import Emit, Island, QdqConstants, QdqWeights, rule
from uaccel.model import Array
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d, TransposeConv2d, TransposeConv2dAttrs
from uaccel.ops.exact import FLOAT32
from uaccel.ops.operator import constant, get
from uaccel.ops.resize import ResizeOnce, positions, resize_once_operands
from uaccel.ops.windows import Grouped
from uaccel.tvm_api import relax

# Convolutions of one and two dimensions, depthwise and grouped.

CONVOLUTIONS = ("relax.nn.conv1d", "relax.nn.conv2d")


@rule(*CONVOLUTIONS, "relax.add")
def convolution(island: Island) -> Emit | None:
    found = rules.add_bias(island.graph, island.core, *CONVOLUTIONS)
    if found is None:
        return None
    call = island.graph.definitions[found[0]]
    source, window = padded(island.graph, call)
    grid = island.need_alike(source)
    need_layout(call)
    weights = rules.weights_of(island.graph.integers(call.args[1]), 0)
    bias = rules.channel_bias(found[1], 1, len(shape_of(call)), weights.values.shape[0])
    operands = rules.constants(island, grid, weights, 0, bias)

    def emit(emitter: Emitter) -> Integers:
        data = image_of(emitter, integers_of(emitter, source, grid))
        return convolved(emitter, island, call, data, grid, window, weights, operands)

    return emit


def need_layout(call: Any) -> None:
    given = attributes(call)
    plain = given.data_layout in ("NCHW", "NCW") and given.kernel_layout in ("OIHW", "OIW")
    need(plain and given.out_layout in ("", given.data_layout), f"its layout is {given.data_layout}")


def _window(call: Any) -> Grouped:
    """A convolution's attributes for two dimensions; one of one dimension has a height of 1."""
    given = attributes(call)
    strides, dilation, padding = (tuple(map(int, part)) for part in (given.strides, given.dilation, given.padding))
    if len(strides) == 1:
        before, after = padding
        return Grouped((1, *strides), (0, before, 0, after), (1, *dilation), int(given.groups))
    return Grouped(strides, padding, dilation, int(given.groups))


def padded(graph: QdqGraph, call: Any) -> tuple[Any, Grouped]:
    """The input and the window's attributes; a spatial pad with zeros before it joins the convolution's padding."""
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
    return pad.args[0], replace(window, padding=padding)


def convolved(
    emitter: Emitter,
    island: Island,
    call: Any,
    data: Any,
    grid: QuantGrid,
    window: Grouped,
    weights: QdqWeights,
    operands: QdqConstants,
) -> Integers:
    """Emits the convolution of an NHWC image: depthwise where each channel has filters of its own."""
    attrs = Conv2dAttrs(**vars(window), **rules.ends(island, grid), rounding=FLOAT32, weight_bits=weights.bits)
    values = weights.values if weights.values.ndim == 4 else weights.values[:, :, np.newaxis, :]
    if values.shape[1] == 1 and window.groups == shape_of(data)[3] > 1 and weights.rest is None:
        kernel = constant(values[:, 0].transpose(1, 2, 0))
        expr = get(DepthwiseConv2d)(data, kernel, *operands, attrs=attrs)
    else:
        rest = None if weights.rest is None else weights.rest.reshape(values.shape).transpose(0, 2, 3, 1)
        data, kernel = rules.read_twice(emitter, data, grid, values.transpose(0, 2, 3, 1), rest)
        expr = get(Conv2d)(data, constant(kernel), *operands, attrs=attrs)
    shape = shape_of(call)
    return emitter.held(of_image(emitter, expr, shape), shape, island.output, CHANNELS_LAST[len(shape)])


# Transposed convolutions of one and two dimensions.
#
# One with groups or dilation becomes an ordinary convolution of its input with zeros between the pixels.

TRANSPOSED = ("relax.nn.conv1d_transpose", "relax.nn.conv2d_transpose")


@rule(*TRANSPOSED, "relax.add")
def transposed(island: Island) -> Emit | None:
    found = rules.add_bias(island.graph, island.core, *TRANSPOSED)
    if found is None:
        return None
    call = island.graph.definitions[found[0]]
    given, grid = attributes(call), island.need_alike(call.args[0])
    plain = given.data_layout in ("NCHW", "NCW") and given.kernel_layout in ("IOHW", "IOW")
    need(plain, f"its layout is {given.data_layout}")
    if int(given.groups) > 1 or any(int(step) > 1 for step in given.dilation):
        return _spread_out(island, call, found[1], grid)
    weights = rules.weights_of(island.graph.integers(call.args[1]), 1)
    need(weights.rest is None, "its weights need 9 bits once their zero point is taken off")
    shape = shape_of(call)
    operands = rules.constants(
        island, grid, weights, 1, rules.channel_bias(found[1], 1, len(shape), shape[1]), narrow=False
    )
    attrs = TransposeConv2dAttrs(
        size=_of_image(shape[2:], 1),
        strides=_of_image(given.strides, 1),
        padding=_of_image(given.padding[: len(given.strides)], 0),
        **rules.ends(island, grid),
        rounding=FLOAT32,
    )
    values = weights.values if weights.values.ndim == 4 else weights.values[:, :, np.newaxis, :]
    kernel = constant(values.transpose(1, 2, 3, 0))

    def emit(emitter: Emitter) -> Integers:
        data = image_of(emitter, integers_of(emitter, call.args[0], grid))
        image = of_image(emitter, get(TransposeConv2d)(data, kernel, *operands, attrs=attrs), shape)
        return emitter.held(image, shape, island.output, CHANNELS_LAST[len(shape)])

    return emit


def _of_image(numbers: Iterable[Any], above: int) -> tuple[int, int]:
    """Numbers for rows and columns; one dimension has no rows, and ``above`` stands for theirs."""
    *rows, columns = map(int, numbers)
    return (rows or [above])[0], columns


def _spread_out(island: Island, call: Any, bias: Array | None, grid: QuantGrid) -> Emit:
    """Plans a transposed convolution as an ordinary one with stride 1 and the kernel turned.

    Pixel i of the input goes to i * stride of a zero-filled image. A kernel that spans ``reach`` + 1 pixels needs an
    image of wanted + reach for ``wanted`` results. Padding of a transposed convolution cuts its result, so the image
    begins with ``reach - padding`` zeros; the others follow the last pixel. A negative edge cuts pixels off.
    """
    given, shape, known = attributes(call), shape_of(call), island.graph.integers(call.args[1])
    weights = rules.weights_of(known and _turned(known, int(given.groups)), 0)
    operands = rules.constants(island, grid, weights, 0, rules.channel_bias(bias, 1, len(shape), shape[1]))
    strides, dilation = _of_image(given.strides, 1), _of_image(given.dilation, 1)
    kernel, cut = _of_image(weights.values.shape[2:], 1), _of_image(given.padding[: len(given.strides)], 0)
    edges = []
    for axis, (before, wanted) in enumerate(zip(shape_of(call.args[0])[2:], shape[2:], strict=True), 4 - len(shape)):
        reach = dilation[axis] * (kernel[axis] - 1)
        front = reach - cut[axis]
        need(before * strides[axis] <= 2 * (wanted + reach), "a transposed convolution that is cut to less than half")
        edges.append((front, wanted + reach - before * strides[axis] - front))
    (top, bottom), (left, right) = (*[(0, 0)] * (4 - len(shape)), *edges)

    def emit(emitter: Emitter) -> Integers:
        image = image_of(emitter, integers_of(emitter, call.args[0], grid))
        spread = _cut(emitter, _zeros_between(emitter, image, strides, grid), (top, bottom), (left, right), grid)
        padding = tuple(max(0, edge) for edge in (top, left, bottom, right))
        window = Grouped((1, 1), padding, dilation, int(given.groups))
        return convolved(emitter, island, call, spread, grid, window, weights, operands)

    return emit


def _turned(known: KnownIntegers, groups: int) -> KnownIntegers:
    """The weights with output channels first in each group, and each window turned by 180 degrees."""
    inputs, outputs, *kernel = known.shape
    apart = known.reshaped((groups, inputs // groups, outputs, *kernel))
    turned = apart.each(lambda part: np.flip(part.swapaxes(1, 2), tuple(range(3, part.ndim))))
    return turned.reshaped((groups * outputs, inputs // groups, *kernel))


def _zeros_between(emitter: Emitter, image: Any, strides: tuple[int, int], grid: QuantGrid) -> Any:
    """Spreads pixels ``strides`` apart, with zero points between them and as many after the last."""
    if strides == (1, 1):
        return image
    batch, height, width, channels = shape_of(image)
    (down, right), bind = strides, partial(emitter.bind, quantisation=grid.quantisation)
    apart = bind(relax.op.reshape(image, (batch, height, 1, width, 1, channels)), suffix="_pixels")
    widths = [0, 0, 0, 0, 0, down - 1, 0, 0, 0, right - 1, 0, 0]
    spread = bind(relax.op.nn.pad(apart, widths, "constant", float(grid.zero_point)), suffix="_spread")
    return bind(relax.op.reshape(spread, (batch, height * down, width * right, channels)), suffix="_image")


def _cut(emitter: Emitter, image: Any, rows: tuple[int, int], columns: tuple[int, int], grid: QuantGrid) -> Any:
    """Cuts off what negative edges leave outside."""
    _, height, width, _ = shape_of(image)
    begin = [max(0, -rows[0]), max(0, -columns[0])]
    end = [height + min(0, rows[1]), width + min(0, columns[1])]
    if (begin, end) == ([0, 0], [height, width]):
        return image
    cut = relax.op.strided_slice(image, [1, 2], begin, end)
    return emitter.bind(cut, quantisation=grid.quantisation, suffix="_cut")


# Bilinear resizing; nearest-neighbour resizing only moves elements (``emitter``).


@rule("relax.image.resize2d")
def bilinear(island: Island) -> Emit | None:
    call, given = island.call, attributes(island.call)
    plain = given.method == "linear" and given.layout == "NCHW" and not any(map(float, given.roi or ()))
    need(plain, f"resizing of the method {given.method}, or of a part of the image")
    grid, shape = island.need_alike(call.args[0]), shape_of(call)
    mode = str(given.coordinate_transformation_mode)
    extents = zip(shape_of(call.args[0])[2:], shape[2:], strict=True)
    places = [positions(mode, before, after) for before, after in extents]
    numbers = grid.quantisation, island.output.quantisation, grid.dtype, (island.low, island.high)
    attrs, tables = resize_once_operands(places, *numbers)

    def emit(emitter: Emitter) -> Integers:
        data = emitter.channels_last(integers_of(emitter, call.args[0], grid))
        expr = get(ResizeOnce)(data, *map(constant, tables), attrs=attrs)
        return emitter.held(expr, shape, island.output, CHANNELS_LAST[4])

    return emit
