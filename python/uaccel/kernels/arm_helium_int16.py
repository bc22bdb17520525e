"""Offers layers with weights on int16 activations for Arm Helium: convolutions, rows and depthwise ones."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels import conv_forms
from uaccel.kernels.arm_helium_conv import REQUIRES, arm_helium
from uaccel.kernels.output_stage import pad_axis
from uaccel.kernels.registry import offers
from uaccel.kernels.weight_packing import concat_words
from uaccel.model import Array
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.kernel import Constant, Input, Kernel, Output, Scratch, same
from uaccel.ops.matmul import FullyConnected
from uaccel.ops.operator import Site
from uaccel.ops.storage import overwrite_distance
from uaccel.util.text import round_up

HEADER: Final = "uaccel_int16_helium.h"
VECTOR: Final = 8  # Elements of a vector.
ITEM: Final = 2  # Bytes of an element.
IN_TURN: Final = (0, 2, 4, 6, 1, 3, 5, 7)  # Eight channels, even ones first.

_kernel: Final = partial(arm_helium, header=HEADER)


def _one_row(site: Site[Any], weights: Array, stage: conv_forms.WideStage) -> Kernel:
    depth, length = weights.shape[1], round_up(weights.shape[1], VECTOR)
    parameters = conv_forms.one_row_fields(site, weights, length)
    arguments = (Input(0), Constant("stream", run_stream(weights, stage, 8)), Output(0), Scratch())
    function, struct = "uaccel_fully_connected_helium_s16", "uaccel_fully_connected_helium16"
    return _kernel(function, struct, parameters, arguments, scratch=ITEM * (length if length > depth else VECTOR))


def _convolution(site: Site[Any], weights: Array, stage: conv_forms.WideStage, pixels: conv_forms.ConvPixels) -> Kernel:
    length = round_up(weights.shape[1], VECTOR)
    parameters = pixels.parameters() | {"length": length, **same(site.attrs, "clamp_min", "clamp_max")}
    arguments = (Input(0), Constant("stream", run_stream(weights, stage, 4)), Output(0), Scratch())
    function, struct, scratch = "uaccel_conv2d_helium_s16", "uaccel_conv2d_helium16", 2 * ITEM * length
    return _kernel(function, struct, parameters, arguments, scratch=scratch, behind=overwrite_distance(site, 2))


_int16: Final = conv_forms.Int16(_one_row, _convolution)
fully_connected: Final = offers(FullyConnected, REQUIRES, rank=120)(_int16.fully_connected)
offers(Conv2d, REQUIRES, rank=110)(_int16.conv2d)
conv_forms.offer_rewritten(_int16.conv2d, REQUIRES, transposed=110, depthwise=130)


def run_stream(weights: Array, stage: conv_forms.WideStage, block: int) -> NDArray[np.int32]:
    """Packs each ``block`` channels: biases, the weights of each eight inputs by channel, multipliers, shifts. Shifts
    are negated: a vector shift to the right is one by a negative number to the left."""
    rows = pad_axis(pad_axis(weights, 0, block), 1, VECTOR)
    stage = stage.filled(len(rows))
    vectors = rows.reshape(-1, block, rows.shape[1] // VECTOR, VECTOR).transpose(0, 2, 1, 3)
    ends = (array.reshape(-1, block) for array in (stage.multiplier, -stage.shift))
    return concat_words(stage.bias.reshape(-1, block), _words(vectors), *ends)


def _words(weights: Array) -> NDArray[np.int64]:
    """Returns the weights' bytes as words, a row a block."""
    return np.ascontiguousarray(weights).reshape(len(weights), -1).view("<i4").astype(np.int64)


@offers(DepthwiseConv2d, REQUIRES, rank=120)
def depthwise_conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Computes eight channels at a time, whose constants come even ones first, as the products do."""
    weights = site.operands[1].value
    channels = weights.shape[2]
    rows = weights.reshape(-1, channels).T
    stage = conv_forms.wide_stage_of(site, rows)
    if not conv_forms.is_depthwise(site):
        return None
    filled = pad_axis(rows, 0, VECTOR)
    taps = filled.reshape(-1, VECTOR, filled.shape[1]).transpose(0, 2, 1)
    stage = stage.filled(len(filled))
    bias, multiplier, shift = (
        array.reshape(-1, VECTOR)[:, IN_TURN] for array in (stage.bias, stage.multiplier, -stage.shift)
    )
    stream = concat_words(bias, _words(taps), multiplier, shift)
    arguments = (Input(0), Constant("stream", stream), Output(0))
    parameters, behind = conv_forms.depthwise_parameters(site), overwrite_distance(site)
    return _kernel("uaccel_depthwise_conv2d_helium_s16", "uaccel_depthwise16", parameters, arguments, behind=behind)
