"""Several tensors in one: concatenation and stacking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops.base import Operand
from uaccel.ops.kernel import Kernel
from uaccel.ops.layout import layout
from uaccel.ops.layout_move import Move, axes, move_kernels, row_major, sources


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
