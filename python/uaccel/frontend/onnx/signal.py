"""Converts Fourier transforms of known length to products with a constant matrix."""

from __future__ import annotations

import math

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.onnx.converter import Context, Expr, converts
from uaccel.frontend.onnx.graph import Node
from uaccel.model import Array
from uaccel.ops.operator import constant
from uaccel.tvm_api import relax


@converts("DFT")
def fourier(context: Context, node: Node) -> Expr:
    """DFT of real or complex numbers, whose parts are the last axis; ``onesided`` is a real signal's half spectrum."""
    name, one_sided = node.required_input(0), bool(node.attributes.get("onesided", 0))
    info, inverse = context.info(name), bool(node.attributes.get("inverse", 0))
    rank = len(info.shape)
    fits = rank >= 2 and info.shape[-1] in (1, 2)
    need(fits, f"its input is {info}, wanted real or complex numbers, last axis 1 or 2")
    given = node.optional_input(2)
    axis = int(context.need_number(given, "axis")) if given else int(node.attributes.get("axis", _usual_axis(context)))
    axis = need_axis(axis, rank)
    need(axis < rank - 1, "its axis is the one of real and imaginary parts")
    points, parts = info.shape[axis], info.shape[-1]
    real_result = inverse and one_sided
    length = 2 * (points - 1) if real_result else points
    if node.optional_input(1):
        length = int(context.need_number(node.inputs[1], "length"))
    need(length > 0, f"its length is {length}, wanted a positive number")
    count = length // 2 + 1 if one_sided and not inverse else length
    context.budget.array((points * parts, 2 * count), 16)
    matrix = _inverse_real(points, length) if real_result else _matrix(points, length, count, inverse)
    matrix = matrix[:, :parts].reshape(points * parts, -1).astype(info.dtype)
    order = [i for i in range(rank) if i not in (axis, rank - 1)]
    rows = relax.op.permute_dims(context.expr(name), [*order, axis, rank - 1])
    outer = [info.shape[i] for i in order]
    product = relax.op.matmul(relax.op.reshape(rows, (*outer, points * parts)), constant(matrix))
    made = relax.op.reshape(product, (*outer, count, 1 if real_result else 2))
    back = [*order, axis, rank - 1]
    return relax.op.permute_dims(made, [back.index(i) for i in range(rank)])


def _usual_axis(context: Context) -> int:
    return -2 if context.graph.opset >= 20 else 1


def _matrix(points: int, length: int, count: int, inverse: bool) -> Array:
    """[points, parts, count, parts]: the factor from each part of an input to each part of a result.

    (a + b i)(cos + i sin) has the parts a cos - b sin and a sin + b cos. Points behind ``length`` are cut off.
    """
    angle = _angles(points, length, count) * (1 if inverse else -1)
    cos, sin = np.cos(angle), np.sin(angle)
    whole = np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], 1)
    whole[length:] = 0
    return whole / length if inverse else whole


def _inverse_real(points: int, length: int) -> Array:
    """The matrix from half a spectrum to a real signal.

    Each value also stands for its conjugate in the other half, so its weight is 2. The first, and the middle one of an
    even length, are their own conjugates. Only the real part of each product is left.
    """
    angle = _angles(points, length, length)
    weight = np.full((points, 1), 2.0)
    weight[0] = 1
    weight[length // 2 + 1 :] = 0
    if length % 2 == 0 and length // 2 < points:
        weight[length // 2] = 1
    return np.stack([weight * np.cos(angle), -weight * np.sin(angle)], 1)[..., None] / length


def _angles(points: int, length: int, count: int) -> Array:
    """Angles of all pairs; products are reduced as integers first, so that large ones lose no precision."""
    return 2 * math.pi * (np.outer(np.arange(points), np.arange(count)) % length) / length


@converts("STFT")
def short_fourier(context: Context, node: Node) -> Expr:
    """STFT as a convolution of the signal with the windowed matrix, with the frame step as its stride."""
    name, window = node.required_input(0), node.optional_input(2)
    info = context.info(name)
    need(len(info.shape) < 3 or info.shape[2] == 1, f"its signal is {info}; only real signals can be compiled")
    step = int(context.need_number(node.required_input(1), "frame step"))
    shape = context.need_known(window, "window") if window else None
    given = node.optional_input(3)
    length = int(context.need_number(given, "frame length")) if given else len(shape) if shape is not None else 0
    need(step > 0 and 0 < length <= info.shape[1], f"it has frames of {length} samples every {step} of {info}")
    need(shape is None or shape.shape == (length,), f"its window is no list of {length} samples")
    count = length // 2 + 1 if node.attributes.get("onesided", 1) else length
    context.budget.array((length, 2 * count), 16)
    matrix = _matrix(length, length, count, inverse=False)[:, 0].reshape(length, 2 * count)
    windowed = matrix if shape is None else matrix * shape[:, None]
    weights = constant(np.ascontiguousarray(windowed.T[:, None]).astype(info.dtype))
    signal = relax.op.reshape(context.expr(name), (info.shape[0], 1, info.shape[1]))
    frames = (info.shape[1] - length) // step + 1
    made = relax.op.permute_dims(relax.op.nn.conv1d(signal, weights, step), [0, 2, 1])
    return relax.op.reshape(made, (info.shape[0], frames, count, 2))
