"""A tensor repeated along its axes: tile and broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops.base import Operand
from uaccel.ops.kernel import Kernel
from uaccel.ops.layout import layout
from uaccel.ops.layout_move import Axis, Move, axes, rearranged, row_major, sources


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
