"""Offers layers with weights on int16 activations for Arm's DSP extension: convolutions, rows and depthwise ones.

SMLAD takes two neighbouring inputs as they lie in a word. Weights stay bytes: SXTB16 widens bytes 0 and 2 of a word to
the weights of one channel for two inputs, and bytes 1 and 3 to those of another channel.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels import conv_forms
from uaccel.kernels.arm_dsp_conv import REQUIRES, arm_dsp
from uaccel.kernels.output_stage import pad_axis
from uaccel.kernels.registry import check_channels, offers
from uaccel.kernels.weight_packing import concat_words
from uaccel.model import Array
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.exact import limits
from uaccel.ops.kernel import Constant, Input, Kernel, Output, Scratch
from uaccel.ops.matmul import FullyConnected
from uaccel.ops.operator import Site
from uaccel.ops.storage import overwrite_distance

HEADER: Final = "uaccel_int16_dsp.h"
ADDRESS: Final = 4  # Bytes of scratch memory that a call is given where it uses none.

Ints = NDArray[np.int64]

_kernel: Final = partial(arm_dsp, header=HEADER)


def _one_row(site: Site[Any], weights: Array, stage: conv_forms.WideStage) -> Kernel:
    """Makes the kernel for one row; one of odd length is copied, and what follows it there has weights of zero."""
    filled, depth = pad_axis(weights, 1, 2), weights.shape[1]
    parameters = conv_forms.one_row_fields(site, weights, filled.shape[1])
    arguments = (Input(0), Constant("stream", _unit_stream(filled, stage)), Output(0), Scratch())
    scratch = 2 * filled.shape[1] if filled.shape[1] > depth else ADDRESS
    function, struct = "uaccel_fully_connected_dsp_s16", "uaccel_fully_connected_dsp16"
    return _kernel(function, struct, parameters, arguments, scratch=scratch)


def _convolution(site: Site[Any], weights: Array, stage: conv_forms.WideStage, pixels: conv_forms.ConvPixels) -> Kernel:
    stream = quad_stream(weights, stage)
    low, high = site.attrs.clamp_min, site.attrs.clamp_max
    parameters = pixels.parameters() | {
        "quad_words": stream.shape[1],
        "finish.clamp": int((low, high) != limits(site.output.dtype)),
        "finish.lowest": (low & 0xFFFF) * 0x00010001,
        "finish.highest": (high & 0xFFFF) * 0x00010001,
    }
    arguments = (Input(0), Constant("stream", stream), Output(0), Scratch())
    options: dict[str, Any] = {"scratch": 8 * weights.shape[1], "behind": overwrite_distance(site, 2, copied=True)}
    return _kernel("uaccel_conv2d_dsp_s16", "uaccel_conv2d_dsp16", parameters, arguments, **options)


_int16: Final = conv_forms.Int16(_one_row, _convolution, unit=2)
fully_connected: Final = offers(FullyConnected, REQUIRES, rank=240)(_int16.fully_connected)
offers(Conv2d, REQUIRES, rank=220)(_int16.conv2d)
conv_forms.offer_rewritten(_int16.conv2d, REQUIRES, transposed=210, depthwise=240)


def _unit_stream(weights: Array, stage: conv_forms.WideStage) -> NDArray[np.int32]:
    """Packs units by fours; one or two at the end as a pair, three as four."""
    fours = len(weights) - (len(weights) % 4) * (len(weights) % 4 < 3)
    parts = [quad_stream(weights[:fours], stage[:fours])] if fours else []
    parts += [quad_stream(weights[fours:], stage[fours:], block=2)] if fours < len(weights) else []
    return np.concatenate([part.ravel() for part in parts])


def quad_stream(weights: Array, stage: conv_forms.WideStage, block: int = 4) -> NDArray[np.int32]:
    """Packs each ``block`` channels: biases, for each two inputs a word of each two channels, and the output stage.
    ``weights`` has one row a channel, of even length."""
    rows = pad_axis(weights.astype(np.int64), 0, block)
    stage = stage.filled(len(rows))
    pairs = rows.reshape(-1, block // 2, 2, rows.shape[1] // 2, 2)
    # by blocks and pairs of inputs: a word of each pair of channels, with the bytes (a0, b0, a1, b1)
    in_order = pairs.transpose(0, 3, 1, 4, 2).reshape(len(pairs), -1, 4)
    return concat_words(stage.bias.reshape(-1, block), _words(in_order), finish_words(stage, block))


def _words(entries: Ints) -> Ints:
    """Joins four bytes, the last axis, in a word."""
    octets = entries & 0xFF
    return octets[..., 0] | octets[..., 1] << 8 | octets[..., 2] << 16 | octets[..., 3] << 24


def finish_words(stage: conv_forms.WideStage, block: int = 4) -> Ints:
    """Returns {multiplier, half, shift} of each channel, one row for each ``block`` channels."""
    return np.stack([stage.multiplier, 1 << stage.shift - 1, stage.shift], axis=1).reshape(-1, 3 * block)


@offers(DepthwiseConv2d, REQUIRES, rank=230)
def depthwise_conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Computes four channels at a time; the last four overlap those before where they are no multiple of four. Bytes of
    a tap's word are in the order 0, 2, 1, 3, so that SXTB16 gives channels 0 and 1, and rotated 2 and 3."""
    weights = site.operands[1].value
    channels = weights.shape[2]
    rows = weights.reshape(-1, channels).T
    stage = conv_forms.wide_stage_of(site, rows)
    if not conv_forms.is_depthwise(site):
        return None
    check_channels(channels, 4)
    starts = np.minimum(np.arange(0, channels, 4), channels - 4)
    order = (starts[:, None] + np.arange(4)).ravel()
    chosen, taps = stage[order], rows[order].astype(np.int64).reshape(len(starts), 4, -1)
    words = _words(taps.transpose(0, 2, 1)[..., (0, 2, 1, 3)])
    stream = concat_words(chosen.bias.reshape(-1, 4), words, finish_words(chosen))
    arguments = (Input(0), Constant("stream", stream), Output(0))
    parameters, behind = conv_forms.depthwise_parameters(site), overwrite_distance(site)
    return _kernel("uaccel_depthwise_conv2d_dsp_s16", "uaccel_depthwise16", parameters, arguments, behind=behind)
