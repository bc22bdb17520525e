"""Offers kernels for Arm's DSP extension that take little flash, where a user favours size.

Code is small, and a channel's constants take 9 bytes, or 4 where all channels share a scale: the offset is made at run
time, of zero point and shift. TFLite's rounding alone is offered.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from uaccel.kernels.arm_dsp_conv import REQUIRES, arm_dsp
from uaccel.kernels.conv_forms import rows_as_pixels
from uaccel.kernels.output_stage import OutputStage, output_stage_of, pad_axis
from uaccel.kernels.registry import offers
from uaccel.kernels.weight_packing import concat_words, pack_int16_pairs
from uaccel.model import Array
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d, differ
from uaccel.ops.kernel import UNUSED, Argument, Constant, Input, Kernel, Output, ParameterValue, Scratch
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import Site
from uaccel.ops.storage import overwrite_distance
from uaccel.ops.windows import image_fields, plane_fields, window_fields
from uaccel.util.favour import Favour

BLOCK: Final = 8  # Output channels that are computed together.
FEW: Final = 4  # Units that are not worth a block.
WORD: Final = 4  # Bytes that are read at once, and bytes of an address.


def _kernel(
    name: str,
    parameters: dict[str, ParameterValue],
    weights: Array,
    stage: OutputStage,
    site: Site[Any],
    scratch: int,
    *,
    shared: int | None = None,
    copied: bool = False,
) -> Kernel:
    """Makes a kernel; ``shared`` is 1 where the first channel's scale is that of all, else None."""
    arguments: tuple[Argument, ...] = (
        Input(0),
        Constant("weights", weights),
        Constant("bias", stage.bias.astype(np.int32)),
        Constant("multiplier", stage.multiplier[:shared].astype(np.int32)),
        Constant("shift", stage.shift[:shared].astype(np.int8)),
        Output(0),
        Scratch() if scratch else UNUSED,
    )
    behind = overwrite_distance(site, copied=copied)
    return arm_dsp(f"uaccel_{name}_s8", f"uaccel_{name}", parameters, arguments, scratch=scratch, behind=behind)


@offers(Conv2d, REQUIRES, favour=Favour.size, rank=230)
def conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Computes eight channels of one pixel at a time, packed in pairs; biases are added behind the loop."""
    attrs, weights = site.attrs, site.operands[1].value
    out_channels, height, width, depth = weights.shape
    flat = weights.reshape(out_channels, -1)
    if attrs.groups > 1 or attrs.dilation != (1, 1):
        return None
    stage = output_stage_of(site, flat)
    if stage.single:
        return None
    flat, stage = stage.computed(flat)
    window = pad_axis(flat.reshape(out_channels, height, width * depth), 2, WORD).reshape(out_channels, -1)
    rows = pad_axis(window, 0, BLOCK)
    words = pack_int16_pairs(rows, np.zeros(len(rows), np.int64), BLOCK)
    shared = 1 if not differ(stage.multiplier, stage.shift) else None
    direct = height == width == 1 and depth % WORD == 0 and not any(attrs.padding)
    parameters: dict[str, ParameterValue] = {
        **image_fields(site.operands[0].info.shape, site.output.shape),
        **window_fields(attrs, (height, width), dilated=False),
        "input_zero_point": attrs.input_zero_point,
        "direct": int(direct),
        "block_words": words.shape[1],
        "finish.zero_point": attrs.output_zero_point,
        "finish.clamp_min": attrs.clamp_min,
        "finish.clamp_max": attrs.clamp_max,
        "finish.scale_step": 0 if shared else 1,
    }
    scratch = 0 if direct else window.shape[1]
    return _kernel("small_dsp", parameters, concat_words(words), stage, site, scratch, shared=shared, copied=not direct)


@offers(FullyConnected, REQUIRES, favour=Favour.size, rank=250)
def fully_connected(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    return conv2d(rows_as_pixels(site)) if site.output.shape[1] > FEW else None


@offers(DepthwiseConv2d, REQUIRES, favour=Favour.size, rank=260)
def depthwise_conv2d(site: Site[Any]) -> Kernel | None:
    """Computes a pixel after the other, four channels at a time, with the model's weights as they are."""
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    height, width, channels = weights.shape[-3:]
    rows = weights.reshape(height * width, channels).T
    if channels != data.shape[3] or channels % WORD:
        return None
    stage = output_stage_of(site, rows)
    if stage.single:
        return None
    rows, stage = stage.computed(rows)
    parameters: dict[str, ParameterValue] = {
        **plane_fields(data.shape, site.output.shape),
        **window_fields(attrs, (height, width)),
        "input_zero_point": attrs.input_zero_point,
        "offset": 2 * attrs.output_zero_point + 1,
        "lowest": (attrs.clamp_min & 0xFF) * 0x01010101,
        "highest": (attrs.clamp_max & 0xFF) * 0x01010101,
    }
    scratch = channels + height * width * WORD
    return _kernel("depthwise_small_dsp", parameters, np.ascontiguousarray(rows.T), stage, site, scratch)
