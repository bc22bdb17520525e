"""What models that round in single precision mean, in numpy alone: sums, one float32 factor, half to even."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def rounded(sums: Array, scale: Array | float, zero_point: int, low: int, high: int, dtype: str = "int8") -> Array:
    """``scale`` is a float32, or one a channel of the last axis. Sums that are no whole numbers are float32 already."""
    product = sums.astype(np.float32) * np.asarray(scale, np.float32)
    return np.asarray(np.clip(np.rint(product).astype(np.float64) + zero_point, low, high).astype(dtype))


def convolved(data: Array, weights: Array, attrs: Any) -> Array:
    """Sums of a convolution: NHWC, weights OHWI with the channels of one group."""
    top, left, bottom, right = attrs.padding
    centred = np.pad(data.astype(np.int64) - attrs.input_zero_point, ((0, 0), (top, bottom), (left, right), (0, 0)))
    (count, rows, columns, depth), (dy, dx), (sy, sx) = weights.shape, attrs.dilation, attrs.strides
    height = (centred.shape[1] - dy * (rows - 1) - 1) // sy + 1
    width = (centred.shape[2] - dx * (columns - 1) - 1) // sx + 1
    sums = np.zeros((data.shape[0], height, width, count), np.int64)
    groups = data.shape[3] // depth
    for o in range(count):
        first = o // (count // groups) * depth
        for y in range(rows):
            for x in range(columns):
                seen = centred[:, y * dy :: sy, x * dx :: sx, first : first + depth][:, :height, :width]
                sums[..., o] += seen @ weights[o, y, x].astype(np.int64)
    return sums


def transposed(data: Array, weights: Array, attrs: Any) -> Array:
    """Sums of a transposed convolution: every input pixel adds a window, and the padding is cut off."""
    (batch, height, width, _), (count, rows, columns, _) = data.shape, weights.shape
    (sy, sx), (top, left) = attrs.strides, attrs.padding
    room = ((height - 1) * sy + rows + attrs.size[0], (width - 1) * sx + columns + attrs.size[1])
    sums = np.zeros((batch, *room, count), np.int64)
    products = np.einsum("nyxi,opqi->nyxpqo", data.astype(np.int64) - attrs.input_zero_point, weights.astype(np.int64))
    for y in range(height):
        for x in range(width):
            sums[:, y * sy : y * sy + rows, x * sx : x * sx + columns] += products[:, y, x]
    return sums[:, top : top + attrs.size[0], left : left + attrs.size[1]]
