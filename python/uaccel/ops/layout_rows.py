"""Relax's own operators that can be computed some rows at a time: a frame around an image, channels side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops.base import Attributes, Elementwise, Operand, Site
from uaccel.ops.kernel import Kernel
from uaccel.ops.layout_move import Move, axes, fill_call, move_kernels, row_major, sources

IMAGE: Final = 4
"""Axes of batch, rows, columns, channels."""


@dataclass(frozen=True)
class FrameAttrs(Attributes):
    """``padding``: top, left, bottom, right; ``channels``: before and after."""

    padding: tuple[int, ...]
    channels: tuple[int, ...]
    value: float


@dataclass(frozen=True)
class BesideAttrs(Attributes):
    """Nothing but the operands."""


class Frame:
    """Elements of one value around an image."""

    name: str = "pad"
    full_name: str = "relax.nn.pad"
    elementwise: Elementwise | None = None

    def macs(self, site: Site[Any]) -> int:
        return 0

    def kernels(self, site: Site[Any]) -> Sequence[Kernel]:
        info, output, attrs = site.operands[0].info, site.output, site.attrs
        strides = row_major(output.shape)
        before = (0, *attrs.padding[:2], attrs.channels[0])
        start = sum(width * stride for width, stride in zip(before, strides, strict=True))
        move = Move(sources(site.operands)[0], axes(info.shape, row_major(info.shape), strides), 0, start)
        value = np.array(attrs.value, output.dtype)
        first = [fill_call(value, output.elements)] if output.elements != info.elements else []
        return move_kernels([move], output.itemsize, first=first)


class Beside:
    """Several images, the channels of one behind those of another."""

    name: str = "concat"
    full_name: str = "relax.concat"
    elementwise: Elementwise | None = None

    def macs(self, site: Site[Any]) -> int:
        return 0

    def kernels(self, site: Site[Any]) -> Sequence[Kernel]:
        strides, moves, start = row_major(site.output.shape), [], 0
        for source, operand in zip(sources(site.operands), site.operands, strict=True):
            shape = operand.info.shape
            moves.append(Move(source, axes(shape, row_major(shape), strides), 0, start))
            start += shape[-1]
        return move_kernels(moves, site.output.itemsize)


FRAME: Final = Frame()
BESIDE: Final = Beside()


def by_rows(call: Any, operands: tuple[Operand, ...], output: TensorInfo) -> tuple[Frame | Beside, Site[Any]] | None:
    """What computes some rows of a call, with its site; None where the call is of no such kind."""
    infos = [*(operand.info for operand in operands), output]
    if any(len(info.shape) != IMAGE for info in infos) or any(one.constant is not None for one in operands):
        return None
    if call.op.name == FRAME.full_name and call.attrs.pad_mode == "constant":
        widths = [int(width) for width in call.attrs.pad_width]
        if widths[0] or widths[1] or min(widths) < 0:
            return None
        padding = (widths[2], widths[4], widths[3], widths[5])
        attrs = FrameAttrs(padding, (widths[6], widths[7]), float(call.attrs.pad_value))
        return FRAME, Site(attrs, operands, (output,))
    if call.op.name == BESIDE.full_name and int(call.attrs.axis or 0) % IMAGE == IMAGE - 1:
        return BESIDE, Site(BesideAttrs(), operands, (output,))
    return None
