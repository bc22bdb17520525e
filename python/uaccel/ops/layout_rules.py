"""Kernels for Relax's own operators that move bytes without looking at them: boxes of elements, seen in another order.

A tensor in another shape or order or a part of it, several in one, one repeated, one in a frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops import layout_gather
from uaccel.ops.base import Operand
from uaccel.ops.kernel import Kernel
from uaccel.ops.layout import RULES, layout
from uaccel.ops.layout_move import Axis, Move, axes, fill_call, move_kernels, rearranged, row_major, sources
from uaccel.ops.traits import permuted_axes

__all__ = ["layout_gather", "layout_kernels"]


def layout_kernels(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    """The kernels for a call of one of Relax's own operators, none where there is no rule or it does not fit."""
    rule = RULES.get(getattr(call.op, "name", ""))
    return rule(call, operands, outputs) if rule else ()


@layout("reshape", "expand_dims", "squeeze", "flatten")
def same_order(_call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info = operands[0].info
    move = Move(sources(operands)[0], axes([info.elements], [1], [1]))
    return rearranged(move, info.elements, outputs[0].itemsize)


@layout("permute_dims")
def permute_dims(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info, output = operands[0].info, outputs[0]
    strides = row_major(info.shape)
    loops = axes(output.shape, [strides[axis] for axis in permuted_axes(call)], row_major(output.shape))
    return rearranged(Move(sources(operands)[0], loops), info.elements, output.itemsize)


@layout("flip")
def flip(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info = operands[0].info
    axis = int(call.attrs.axis) % len(info.shape)
    strides = row_major(info.shape)
    start = (info.shape[axis] - 1) * strides[axis]
    target = row_major(info.shape)
    strides[axis] = -strides[axis]
    move = Move(sources(operands)[0], axes(info.shape, strides, target), start)
    return rearranged(move, info.elements, outputs[0].itemsize)


@layout("strided_slice")
def strided_slice(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info, output = operands[0].info, outputs[0]
    chosen = [int(axis) % len(info.shape) for axis in call.args[1]]
    begins = [int(begin) for begin in call.args[2]]
    steps = [int(step) for step in call.args[4]] if len(call.args) > 4 else [1] * len(chosen)
    strides = row_major(info.shape)
    start = 0
    for axis, begin, step in zip(chosen, begins, steps, strict=True):
        start += first_index(begin, step, info.shape[axis]) * strides[axis]
        strides[axis] *= step
    move = Move(sources(operands)[0], axes(output.shape, strides, row_major(output.shape)), start)
    return rearranged(move, info.elements, output.itemsize)


def first_index(begin: int, step: int, extent: int) -> int:
    """Relax counts a negative begin from the end and clamps what lies outside."""
    begin = begin + extent if begin < 0 else begin
    return min(max(begin, 0), extent) if step > 0 else min(max(begin, -1), extent - 1)


@layout("split")
def split(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info = operands[0].info
    axis = int(call.attrs.axis) % len(info.shape)
    source, strides = sources(operands)[0], row_major(info.shape)
    moves, start = [], 0
    for number, output in enumerate(outputs):
        loops = axes(output.shape, strides, row_major(output.shape))
        moves.append(Move(source, loops, start * strides[axis], output=number))
        start += output.shape[axis]
    return move_kernels(moves, info.itemsize)


@layout("concat")
def concat(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    output = outputs[0]
    axis = int(call.attrs.axis or 0) % len(output.shape)
    target = row_major(output.shape)
    moves, start = [], 0
    for source, operand in zip(sources(operands), operands, strict=True):
        shape = operand.info.shape
        moves.append(Move(source, axes(shape, row_major(shape), target), 0, start * target[axis]))
        start += shape[axis]
    return move_kernels(moves, output.itemsize)


@layout("stack")
def stack(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    output = outputs[0]
    axis = int(call.attrs.axis or 0) % len(output.shape)
    target = row_major(output.shape)
    step = target.pop(axis)
    moves = [
        Move(source, axes(operand.info.shape, row_major(operand.info.shape), target), 0, number * step)
        for number, (source, operand) in enumerate(zip(sources(operands), operands, strict=True))
    ]
    return move_kernels(moves, output.itemsize)


@layout("broadcast_to")
def broadcast_to(_call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info, output = operands[0].info, outputs[0]
    shape = (1,) * (len(output.shape) - len(info.shape)) + info.shape
    strides = [0 if extent == 1 else stride for extent, stride in zip(shape, row_major(shape), strict=True)]
    move = Move(sources(operands)[0], axes(output.shape, strides, row_major(output.shape)))
    return rearranged(move, info.elements, output.itemsize)


@layout("tile")
def tile(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info, output = operands[0].info, outputs[0]
    rank = len(output.shape)
    shape = (1,) * (rank - len(info.shape)) + info.shape
    loops: list[Axis] = []
    for extent, total, source, target in zip(
        shape, output.shape, row_major(shape), row_major(output.shape), strict=True
    ):
        loops += [Axis(total // extent, 0, extent * target), Axis(extent, source, target)]
    return rearranged(Move(sources(operands)[0], tuple(loops)), info.elements, output.itemsize)


@layout("nn.pad")
def pad(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    """Other modes than "constant", and widths that cut, are left to the fallback."""
    info, output = operands[0].info, outputs[0]
    before = [int(width) for width in call.attrs.pad_width[::2]]
    if call.attrs.pad_mode != "constant" or min((int(w) for w in call.attrs.pad_width), default=0) < 0:
        return ()
    strides = row_major(output.shape)
    start = sum(width * stride for width, stride in zip(before, strides, strict=True))
    move = Move(sources(operands)[0], axes(info.shape, row_major(info.shape), strides), 0, start)
    if output.elements == info.elements:
        return rearranged(move, info.elements, output.itemsize)
    value = np.array(float(call.attrs.pad_value), output.dtype)
    return move_kernels([move], output.itemsize, first=[fill_call(value, output.elements)])
