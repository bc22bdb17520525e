"""Padding with a constant: the whole output is filled, then the input is put where it belongs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops.base import Operand
from uaccel.ops.kernel import Kernel
from uaccel.ops.layout import layout
from uaccel.ops.layout_move import Move, axes, fill_call, move_kernels, rearranged, row_major, sources


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
