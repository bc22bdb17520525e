"""One tensor seen in another order, or a part of it: reshape, transpose, slices, reversal, splitting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops.base import Operand
from uaccel.ops.kernel import Kernel
from uaccel.ops.layout import layout
from uaccel.ops.layout_move import Move, axes, move_kernels, rearranged, row_major, sources


@layout("reshape", "expand_dims", "squeeze", "flatten")
def same_order(_call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info = operands[0].info
    move = Move(sources(operands)[0], axes([info.elements], [1], [1]))
    return rearranged(move, info.elements, outputs[0].itemsize)


@layout("permute_dims")
def permute_dims(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info, output = operands[0].info, outputs[0]
    rank = len(info.shape)
    order = [int(a) % rank for a in call.attrs.axes] if call.attrs.axes is not None else list(reversed(range(rank)))
    strides = row_major(info.shape)
    loops = axes(output.shape, [strides[a] for a in order], row_major(output.shape))
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
