"""Random layers as in drawn_layers.py, of kinds that have no stored figures of CMSIS-NN.

Transposed convolutions double an image of 4 to 12 rows and columns, by windows of 2x2, 3x3 or 4x4. Matrices have 4 to
64 rows and columns, and one to four of them are multiplied at once; every second right side lies transposed. What only
moves bytes has images of 4 to 24 rows and columns.
"""

from __future__ import annotations

import numpy as np

from support.models.drawn_layers import Draw, Kind, Options, depthwise_multiplied, elementwise, grouped
from support.models.tflite_writer import Tensor


def transposed(draw: Draw) -> None:
    size = draw.one_of(2, 3, 4)
    side, into, out = draw.integer(4, 12), draw.channels(8, 48), draw.channels(8, 48)
    x = draw.input(1, side, side, into)
    w = draw.weights(draw.bytes(out, size, size, into), 0)
    terms = max(1, size * size // 4) * into
    y = draw.result((1, 2 * side, 2 * side, out), x, w, terms)
    shape = draw.model.constant(f"n{draw.number}", np.array(y.shape, np.int32))
    options: Options = {"padding": "SAME", "stride_w": 2, "stride_h": 2, "fused_activation": draw.activation()}
    draw.add("TRANSPOSE_CONV", [shape, w, x, draw.bias(x, w, terms)], y, options)


def matrices(draw: Draw, rows: int = 0) -> None:
    """``rows``: of the left side, if not drawn."""
    batch, rows, depth, columns = (
        draw.integer(1, 4),
        rows or draw.channels(4, 64),
        draw.channels(4, 64),
        draw.channels(4, 64),
    )
    flipped = bool(draw.integer(0, 1))
    other = draw.model.input(
        f"z{draw.number}", (batch, columns, depth) if flipped else (batch, depth, columns), draw.dtype, **draw.grid
    )
    x = draw.input(batch, rows, depth)
    spread = x.scales[0] * other.scales[0] * (73 * 73 if draw.dtype == "int8" else 18000**2) * depth**0.5
    scale = spread / (64 if draw.dtype == "int8" else 9000)
    zero_point = draw.integer(-20, 20) if draw.dtype == "int8" else 0
    y = draw.model.tensor(f"y{draw.number}", (batch, rows, columns), draw.dtype, scale=scale, zero_point=zero_point)
    draw.add("BATCH_MATMUL", [x, other], y, {"adj_x": False, "adj_y": flipped})


def few_rows(draw: Draw) -> None:
    matrices(draw, draw.integer(1, 7))


def mean(draw: Draw) -> None:
    """Over rows and columns, or over rows alone."""
    shape = (1, draw.integer(4, 24), draw.integer(4, 24), draw.channels(4, 96))
    axes = draw.one_of((1, 2), (1, 2), (1,))
    x = draw.input(*shape)
    kept = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    y = draw.model.tensor(f"y{draw.number}", kept, draw.dtype, scale=x.scales[0] / 2, zero_point=x.zero_points[0])
    where = draw.model.constant(f"a{draw.number}", np.array(axes, np.int32))
    draw.add("MEAN", [x, where], y, {"keep_dims": True})


def subtraction(draw: Draw) -> None:
    elementwise(draw, "SUB")


def broadcast_addition(draw: Draw) -> None:
    """Of an image and a number for each channel, or for each pixel."""
    shape = (1, draw.integer(4, 24), draw.integer(4, 24), draw.channels(4, 64))
    own = draw.one_of((1, 1, 1, shape[3]), (1, *shape[1:3], 1))
    other = draw.model.input(f"z{draw.number}", own, draw.dtype, **draw.grid)
    x = draw.input(*shape)
    scale = 1.4 * max(x.scales[0], other.scales[0])
    y = draw.model.tensor(f"y{draw.number}", shape, draw.dtype, scale=scale)
    draw.add("ADD", [x, other], y, {"fused_activation": draw.activation(), "pot_scale_int16": False})


def same_grid(draw: Draw, shape: tuple[int, ...], x: Tensor, name: str = "y") -> Tensor:
    zero_point = x.zero_points[0] if draw.dtype == "int8" else 0
    return draw.model.tensor(f"{name}{draw.number}", shape, draw.dtype, scale=x.scales[0], zero_point=zero_point)


def padded_and_joined(draw: Draw) -> None:
    """An image in a frame, and two such frames side by side."""
    height, width, channels = draw.integer(4, 24), draw.integer(4, 24), draw.channels(4, 64)
    x = draw.input(1, height, width, channels)
    frame = [(0, 0), (1, draw.integer(0, 1)), (1, draw.integer(0, 1)), (0, 0)]
    around = draw.model.constant(f"p{draw.number}", np.array(frame, np.int32))
    wide = (1, height + sum(frame[1]), width + sum(frame[2]), channels)
    middle = same_grid(draw, wide, x, "m")
    draw.model.op("PAD", [x, around], [middle], {})
    other = draw.model.input(f"z{draw.number}", (*wide[:3], draw.channels(4, 32)), draw.dtype, scale=x.scales[0])
    other = draw.model.requantised(other, x.scales[0], x.zero_points[0] if x.zero_points else 0)
    y = same_grid(draw, (*wide[:3], channels + other.shape[3]), x)
    draw.add("CONCATENATION", [middle, other], y, {"axis": 3, "fused_activation": "NONE"})


def resized(draw: Draw, name: str) -> None:
    height, width, channels = draw.integer(4, 12), draw.integer(4, 12), draw.channels(4, 48)
    x = draw.input(1, height, width, channels)
    size = draw.model.constant(f"n{draw.number}", np.array((2 * height, 2 * width), np.int32))
    options: Options = {"align_corners": False, "half_pixel_centers": bool(draw.integer(0, 1))}
    draw.add(name, [x, size], same_grid(draw, (1, 2 * height, 2 * width, channels), x), options)


def bilinear(draw: Draw) -> None:
    resized(draw, "RESIZE_BILINEAR")


def nearest(draw: Draw) -> None:
    resized(draw, "RESIZE_NEAREST_NEIGHBOR")


def moved(draw: Draw) -> None:
    """Channels to the front, blocks of pixels to channels, or a part of an image."""
    height, width, channels = 2 * draw.integer(2, 12), 2 * draw.integer(2, 12), draw.channels(4, 32)
    x = draw.input(1, height, width, channels)
    kind = draw.one_of("TRANSPOSE", "SPACE_TO_DEPTH", "SLICE")
    number = draw.number
    if kind == "TRANSPOSE":
        order = draw.model.constant(f"o{number}", np.array((0, 3, 1, 2), np.int32))
        draw.add(kind, [x, order], same_grid(draw, (1, channels, height, width), x))
    elif kind == "SPACE_TO_DEPTH":
        y = same_grid(draw, (1, height // 2, width // 2, 4 * channels), x)
        draw.add(kind, [x], y, {"block_size": 2})
    else:
        size = (1, height - 2, width - 2, channels)
        begin = draw.model.constant(f"b{number}", np.array((0, 1, 1, 0), np.int32))
        extent = draw.model.constant(f"e{number}", np.array(size, np.int32))
        draw.add(kind, [x, begin, extent], same_grid(draw, size, x))


def curve(draw: Draw) -> None:
    name = draw.one_of("LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU")
    x = draw.input(1, draw.integer(4, 16), draw.integer(4, 16), draw.channels(4, 64))
    scale, zero_point = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}.get(name, (x.scales[0], -7))
    y = draw.model.tensor(f"y{draw.number}", x.shape, draw.dtype, scale=scale, zero_point=zero_point)
    draw.add(name, [x], y, {"alpha": 0.1} if name == "LEAKY_RELU" else {})


OTHERS: dict[str, Kind] = {
    "transposed convolution": (transposed, "int8"),
    "matrices": (matrices, "int8"),
    "matrices of few rows": (few_rows, "int8"),
    "mean": (mean, "int8"),
    "sub": (subtraction, "int8"),
    "add, broadcast": (broadcast_addition, "int8"),
    "pad and concatenate": (padded_and_joined, "int8"),
    "resize, bilinear": (bilinear, "int8"),
    "resize, nearest": (nearest, "int8"),
    "transpose, blocks and slices": (moved, "int8"),
    "curves": (curve, "int8"),
    "int16 transposed convolution": (transposed, "int16"),
    "int16 matrices": (matrices, "int16"),
    "int16 mean": (mean, "int16"),
    "int16 convolution, groups": (grouped, "int16"),
    "int16 depthwise, multiplied": (depthwise_multiplied, "int16"),
}
