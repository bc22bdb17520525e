"""Float meaning of the layers, on batches in NHWC order: what calibration sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Pair = tuple[int, int]


def padding_before(size: int, kernel: int, stride: int, dilation: int, padding: str) -> tuple[int, int, int]:
    """Output size, and zeros before and after, along one dimension as TFLite counts them."""
    extent = (kernel - 1) * dilation + 1
    if padding == "VALID":
        return (size - extent) // stride + 1, 0, 0
    out = -(-size // stride)
    total = max((out - 1) * stride + extent - size, 0)
    return out, total // 2, total - total // 2


def windows(x: Array, kernel: Pair, stride: Pair, dilation: Pair, padding: str, fill: float = 0.0) -> list[list[Array]]:
    """For each kernel position the strided view of the padded input that the position sees."""
    rows, top, bottom = padding_before(x.shape[1], kernel[0], stride[0], dilation[0], padding)
    columns, left, right = padding_before(x.shape[2], kernel[1], stride[1], dilation[1], padding)
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)

    def seen(row: int, column: int) -> Array:
        y, z = row * dilation[0], column * dilation[1]
        return padded[:, y : y + (rows - 1) * stride[0] + 1 : stride[0]][
            :, :, z : z + (columns - 1) * stride[1] + 1 : stride[1]
        ]

    return [[seen(row, column) for column in range(kernel[1])] for row in range(kernel[0])]


def conv2d(x: Array, weights: Array, bias: Array, stride: Pair, dilation: Pair, padding: str) -> Array:
    """Weights are [out, rows, columns, in]; fewer in-channels than the input has mean groups."""
    groups = x.shape[3] // weights.shape[3]
    seen = windows(x, (weights.shape[1], weights.shape[2]), stride, dilation, padding)
    parts = [
        _product(seen, slice(group * weights.shape[3], (group + 1) * weights.shape[3]), filters)
        for group, filters in enumerate(np.split(weights, groups))
    ]
    return np.concatenate(parts, axis=3) + bias


def _product(seen: list[list[Array]], channels: slice, filters: Array) -> Array:
    """A matrix product for each place of the window, of all pixels at once: libraries are slow on many small ones."""
    total: Array = np.zeros((*seen[0][0].shape[:3], len(filters)), filters.dtype)
    for row, columns in enumerate(seen):
        for column, view in enumerate(columns):
            pixels = view[..., channels].reshape(-1, filters.shape[3])
            total += (pixels @ filters[:, row, column].T).reshape(total.shape)
    return total


def depthwise_conv2d(x: Array, weights: Array, bias: Array, stride: Pair, dilation: Pair, padding: str) -> Array:
    """Weights are [1, rows, columns, in * multiplier]."""
    multiplier = weights.shape[3] // x.shape[3]
    seen = windows(np.repeat(x, multiplier, axis=3), weights.shape[1:3], stride, dilation, padding)
    terms = [
        seen[row][column] * weights[0, row, column]
        for row in range(weights.shape[1])
        for column in range(weights.shape[2])
    ]
    total: Array = sum(terms[1:], terms[0]) + bias
    return total


def transpose_conv2d(x: Array, weights: Array, bias: Array, stride: Pair, padding: str) -> Array:
    """Weights are [out, rows, columns, in]; each pixel becomes a window, and where windows overlap they add up."""
    batch, rows, columns, _ = x.shape
    out, height, width, _ = weights.shape
    windows = np.einsum("brci,ohwi->brhcwo", x, weights, optimize=True)
    full = (rows - 1) * stride[0] + height, (columns - 1) * stride[1] + width
    placed = np.zeros((batch, *full, out)) + bias
    for row in range(rows):
        for column in range(columns):
            top, left = row * stride[0], column * stride[1]
            placed[:, top : top + height, left : left + width] += windows[:, row, :, column]
    if padding == "VALID":
        return placed
    size = rows * stride[0], columns * stride[1]
    cut = [max(0, whole - part) // 2 for whole, part in zip(full, size, strict=True)]
    wider = np.pad(
        placed, [(0, 0), *((0, max(0, part - whole)) for whole, part in zip(full, size, strict=True)), (0, 0)]
    )
    return wider[:, cut[0] : cut[0] + size[0], cut[1] : cut[1] + size[1]]


def max_pool(x: Array, size: Pair, stride: Pair, padding: str) -> Array:
    seen = windows(x, size, stride, (1, 1), padding, fill=-np.inf)
    largest: Array = np.max([view for row in seen for view in row], axis=0)
    return largest


def average_pool(x: Array, size: Pair, stride: Pair, padding: str) -> Array:
    """Zeros of the padding do not count."""
    total = np.sum([view for row in windows(x, size, stride, (1, 1), padding) for view in row], axis=0)
    ones = windows(np.ones_like(x), size, stride, (1, 1), padding)
    mean: Array = total / np.sum([view for row in ones for view in row], axis=0)
    return mean


def resize_nearest(x: Array, size: Pair) -> Array:
    rows = np.arange(size[0]) * x.shape[1] // size[0]
    columns = np.arange(size[1]) * x.shape[2] // size[1]
    return x[:, rows][:, :, columns]


def resize_bilinear(x: Array, size: Pair) -> Array:
    """Corners neither aligned nor at half pixels."""
    for axis, out in ((1, size[0]), (2, size[1])):
        position = np.arange(out) * (x.shape[axis] / out)
        low = np.floor(position).astype(int)
        high = np.minimum(low + 1, x.shape[axis] - 1)
        share = (position - low).reshape([-1 if k == axis else 1 for k in range(4)])
        x = np.take(x, low, axis) * (1 - share) + np.take(x, high, axis) * share
    return x


def logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def hard_swish(x: Array) -> Array:
    result: Array = x * np.clip(x + 3, 0, 6) / 6
    return result


def leaky_relu(x: Array, alpha: float) -> Array:
    return np.where(x < 0, alpha * x, x)


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    shares: Array = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def activate(x: Array, activation: str) -> Array:
    """An activation that is fused into the layer before it."""
    low, high = {"NONE": (-np.inf, np.inf), "RELU": (0.0, np.inf), "RELU6": (0.0, 6.0)}[activation]
    return np.clip(x, low, high)
