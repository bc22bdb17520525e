"""Offers Winograd's convolution F(2x2, 3x3) for Arm's DSP extension, where a user favours speed over flash.

A tile of 4x4 inputs gives 2x2 outputs by 16 products an input channel instead of 36; weights take 16 halves of words
instead of 9 bytes. All is in integers and exact: the usual transform of weights, G g G', has entries of one half, so
``TWICE`` is 2 * G, and sums come four times as large. Four times a sum must fit 32 bits (``LIMIT``); on the way there
registers may wrap around. A transformed weight is 9 * 128 at most, and a transformed input 4 * 128: both fit 16 bits.
"""

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
from uaccel.ops.kernel import Constant, Input, Kernel, Output, ParameterValue, Scratch
from uaccel.ops.operator import Site
from uaccel.ops.windows import image_fields
from uaccel.util.favour import Favour

WINDOW: Final = (3, 3)
# Output channels that are computed together, output columns of two tiles, and input channels that are read as a word.
BLOCK: Final = 4
PLACES: Final = 16  # Elements of a transformed tile.
ROWS: Final = 2  # Output rows of a tile.
STAGED: Final = 24  # Input pixels of two tiles side by side, which share two columns: 4 rows of 6.
SUMS: Final = 512  # Bytes of a block's sums: 16 places of four channels and two tiles, a word each.
# 2 * G: transforms the weights along rows and along columns.
TWICE: Final = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int64)
LIMIT: Final = 1 << 29  # Four times a sum below it fits 32 bits.


@offers(Conv2d, REQUIRES, favour=Favour.speed, rank=240)
def winograd(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Computes two tiles of 2x2 pixels at a time, four channels over them. Scratch memory holds sums, two transformed
    tiles (a word of each for two channels: 64 bytes a channel), and the inputs of both where they have borders or the
    image is no multiple of two tiles."""
    attrs, weights = site.attrs, site.operands[1].value
    out_channels, *window, depth = weights.shape
    dense = attrs.groups == 1 and attrs.strides == attrs.dilation == (1, 1)
    if not dense or tuple(window) != WINDOW or out_channels % BLOCK or depth % BLOCK:
        return None
    stage = output_stage_of(site, weights.reshape(out_channels, -1))
    if stage.single or _reach(weights, stage) >= LIMIT:
        return None
    parameters: dict[str, ParameterValue] = {
        **image_fields(site.operands[0].info.shape, site.output.shape),
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
        "input_zero_point": attrs.input_zero_point,
    }
    whole = not any(attrs.padding) and site.output.shape[1] % ROWS == site.output.shape[2] % BLOCK == 0
    scratch = SUMS + depth * (4 * PLACES + (0 if whole else STAGED))
    arguments = (Input(0), Constant("stream", winograd_stream(weights, stage)), Output(0), Scratch())
    return dsp_kernel("winograd", parameters | stage.parameters(), arguments, scratch)


def _reach(weights: Array, stage: OutputStage) -> int:
    """Bounds how far from zero a sum can be."""
    sums = 128 * np.abs(weights.astype(np.int64)).sum(axis=(1, 2, 3)) + np.abs(stage.bias)
    return int(sums.max(initial=0))


def winograd_stream(weights: NDArray[np.int8], stage: OutputStage) -> NDArray[np.int32]:
    """Packs each four channels: place by place and for each two inputs a word of each channel, then their constants.
    These are four times the bias, as sums are, and the output stage."""
    out_channels, _, _, depth = weights.shape
    placed = np.einsum("ik,okld,jl->oijd", TWICE, weights.astype(np.int64), TWICE).reshape(out_channels, PLACES, depth)
    pairs = placed.reshape(-1, BLOCK, PLACES, depth // 4, 4)[..., IN_HALVES].reshape(-1, BLOCK, PLACES, depth // 2, 2)
    words = (pairs[..., 0] & 0xFFFF) | (pairs[..., 1] << 16)
    blocks = words.transpose(0, 2, 3, 1).reshape(out_channels // BLOCK, -1)
    finish = np.stack([4 * stage.bias, stage.multiplier, stage.offset, stage.shift], axis=1)
    return concat_words(blocks, finish.reshape(len(blocks), -1))
