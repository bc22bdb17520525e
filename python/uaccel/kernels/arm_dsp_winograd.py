"""Winograd's convolution for Arm's DSP extension: fewer products for more flash, where speed is favoured."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels.arm_dsp_conv import REQUIRES, dsp_kernel
from uaccel.kernels.output_stage import OutputStage, output_stage_of
from uaccel.kernels.registry import offers
from uaccel.kernels.weight_packing import IN_HALVES, concat_words
from uaccel.model import Array
from uaccel.ops.conv import Conv2d, Conv2dAttrs
from uaccel.ops.operator import Constant, Input, Kernel, Output, ParameterValue, Scratch, Site, sides
from uaccel.util.favour import Favour

WINDOW: Final = (3, 3)
# Output channels that are computed together, and columns of the image; inputs are read as words of as many bytes.
BLOCK: Final = 4
PLACES: Final = 16
ROWS: Final = 2
STAGED: Final = 24  # Pixels of two tiles, which share some.
SUMS: Final = 512  # Bytes of the sums of a block.
# How weights are transformed, along either side.
TWICE: Final = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int64)
LIMIT: Final = 1 << 29  # Sums come four times as large, in 32 bits.


@offers(Conv2d, REQUIRES, favour=Favour.speed, rank=240)
def winograd(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Two tiles of 2x2 pixels at a time, four channels over them."""
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    out_channels, *window, depth = weights.shape
    dense = attrs.groups == 1 and attrs.strides == attrs.dilation == (1, 1)
    if not dense or tuple(window) != WINDOW or out_channels % BLOCK or depth % BLOCK:
        return None
    stage = output_stage_of(site, weights.reshape(out_channels, -1))
    if stage is None or stage.single or _reach(weights, stage) >= LIMIT:
        return None
    parameters: dict[str, ParameterValue] = {
        "batch": data.shape[0],
        **sides("in", data.shape[1:3]),
        "in_channels": depth,
        **sides("out", site.output.shape[1:3]),
        "out_channels": out_channels,
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
        "input_zero_point": attrs.input_zero_point,
    }
    whole = not any(attrs.padding) and site.output.shape[1] % ROWS == site.output.shape[2] % BLOCK == 0
    scratch = SUMS + depth * (4 * PLACES + (0 if whole else STAGED))
    arguments = (Input(0), Constant("stream", winograd_stream(weights, stage)), Output(0), Scratch())
    return dsp_kernel("winograd", parameters | stage.parameters(), arguments, scratch)


def _reach(weights: Array, stage: OutputStage) -> int:
    """How far from zero a sum can be."""
    sums = 128 * np.abs(weights.astype(np.int64)).sum(axis=(1, 2, 3)) + np.abs(stage.bias)
    return int(sums.max(initial=0))


def winograd_stream(weights: NDArray[np.int8], stage: OutputStage) -> NDArray[np.int32]:
    """Of each four channels: in each of sixteen places a word of each channel for each two inputs, and of each channel
    four times its bias and its output stage."""
    out_channels, _, _, depth = weights.shape
    placed = np.einsum("ik,okld,jl->oijd", TWICE, weights.astype(np.int64), TWICE).reshape(out_channels, PLACES, depth)
    pairs = placed.reshape(-1, BLOCK, PLACES, depth // 4, 4)[..., IN_HALVES].reshape(-1, BLOCK, PLACES, depth // 2, 2)
    words = (pairs[..., 0] & 0xFFFF) | (pairs[..., 1] << 16)
    blocks = words.transpose(0, 2, 3, 1).reshape(out_channels // BLOCK, -1)
    finish = np.stack([4 * stage.bias, stage.multiplier, stage.offset, stage.shift], axis=1)
    return concat_words(blocks, finish.reshape(len(blocks), -1))
