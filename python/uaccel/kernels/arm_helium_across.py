"""Offers depthwise convolutions for Arm Helium with sixteen channels side by side, which copy no input.

The kernel of `arm_helium_depthwise` copies channels to planes and computes eight windows of one at a time. Where a
layer has few pixels, as one frame of a streaming network has, most of its time is copying and windows that nobody asked
for. Here each window is read where it lies, so that it must not reach beyond the image.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels.arm_helium_conv import REQUIRES, finish_parameters, helium_kernel
from uaccel.kernels.output_stage import output_stage_of
from uaccel.kernels.registry import DeclinedError, offers
from uaccel.kernels.weight_packing import VECTOR, Channels, channels_of
from uaccel.ops.conv import Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.kernel import Constant, Input, Kernel, Output, ParameterValue
from uaccel.ops.operator import Site
from uaccel.ops.storage import overwrite_distance
from uaccel.ops.windows import plane_fields, sides

# Where widening puts sixteen channels: even and odd ones to halves, the halves of these to words.
ORDER: Final = (0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15)
LOWEST: Final = -128  # Two products with it can be 2**15, one more than 16 bits hold.


@offers(DepthwiseConv2d, REQUIRES, rank=105)
def depthwise_across(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Computes sixteen channels of a pixel at a time."""
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    height, width, results = weights.shape
    in_width, count = data.shape[2:]
    if results != count or count < VECTOR or any(attrs.padding):
        return None
    rows = weights.reshape(-1, results).T
    stage = output_stage_of(site, rows)
    channels = channels_of(rows, stage, attrs.output_zero_point)
    lines, steps = (height, width), (attrs.dilation[0] * in_width * count, attrs.dilation[1] * count)
    if width == 1:  # one column of taps is one line
        lines, steps = lines[::-1], steps[::-1]
    lowest = channels.weights.reshape(count, *lines) == LOWEST
    if (lowest[..., 0 : lines[1] - 1 : 2] & lowest[..., 1::2]).any():
        raise DeclinedError("it has weights of -128 side by side", "quantise weights to -127..127")
    parameters: dict[str, ParameterValue] = {
        **plane_fields(data.shape, site.output.shape),
        **sides("stride", attrs.strides),
        **sides("kernel", lines),
        "line_step": steps[0],
        "tap_step": steps[1],
        **finish_parameters(attrs.output_zero_point, stage.way, attrs.clamp_min, attrs.clamp_max),
    }
    blocks = channels[np.minimum(np.arange(0, count, VECTOR), count - VECTOR)[:, None] + np.arange(VECTOR)]
    held = Constant("weights", _by_taps(blocks.weights)), Constant("constants", _constants(blocks))
    # The last sixteen may be read once more, when results of the first of them are written already.
    again = VECTOR if count % VECTOR else 0
    behind = {number: most + again for number, most in overwrite_distance(site).items()}
    return helium_kernel("depthwise_across", parameters, (Input(0), *held, Output(0)), behind=behind)


def _by_taps(blocks: NDArray[np.int8]) -> NDArray[np.int8]:
    """Returns the weights of sixteen channels tap by tap, then those of the next sixteen."""
    return np.ascontiguousarray(blocks.transpose(0, 2, 1)).ravel()


def _constants(blocks: Channels) -> NDArray[np.int32]:
    """Returns the biases, multipliers and shifts of each sixteen channels, in the order of `ORDER`."""
    by_kind: Any = np.stack([blocks.bias, blocks.multiplier, -blocks.right], axis=1)
    return np.ascontiguousarray(by_kind[:, :, ORDER]).astype(np.int32).ravel()
