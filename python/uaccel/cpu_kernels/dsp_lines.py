"""Depthwise convolution with windows of one row or one column, with Arm's DSP extension."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.dsp import REQUIRES, dsp_kernel
from uaccel.cpu_kernels.dsp_pack import joined
from uaccel.cpu_kernels.output_stage import OutputStage, output_stage_of
from uaccel.cpu_kernels.registry import offers
from uaccel.model import Array
from uaccel.ops.base import Site
from uaccel.ops.behind import site_behind
from uaccel.ops.depthwise_conv2d import DepthwiseConv2d
from uaccel.ops.kernel import Constant, Input, Kernel, Output, ParameterValue, Scratch

QUAD: Final = 4
"""Channels, outputs and taps at a time."""
STEPS: Final = 8
"""Of two taps each, that the code has; one of them is half empty for outputs at odd places."""
LEAST_OUTPUTS: Final = 6
"""Of a line; for fewer it takes longer to make lines than to use them."""


@offers(DepthwiseConv2d, REQUIRES, rank=250)
def depthwise_lines(site: Site[Any]) -> Kernel | None:
    """Four channels at a time, line by line, of the whole height or width."""
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    batch, *_, channels = data.shape
    sizes, out_sizes, window = data.shape[1:3], site.output.shape[1:3], weights.shape[:2]
    along = 0 if window[1] == 1 else 1
    taps, across, least = window[along], 1 - along, max(LEAST_OUTPUTS, window[along] // 2)
    if (
        window[across] > 1
        or taps < 2
        or taps // 2 + 1 > STEPS
        or attrs.strides[along] != 1
        or attrs.dilation[along] != 1
    ):
        return None
    if channels != weights.shape[2] or channels < QUAD or attrs.padding[across] or out_sizes[along] < least:
        return None
    if (out_sizes[across] - 1) * attrs.strides[across] >= sizes[across]:
        return None
    stage = output_stage_of(site, weights.reshape(-1, channels).T)
    if stage is None or stage.clamps:
        return None
    steps, pad = taps // 2 + 1, attrs.padding[along]
    pitch = max((pad + sizes[along] + 1) // 2, 2 * (-(-out_sizes[along] // QUAD) - 1) + steps + 1)
    groups = -(-steps // 2)
    pixel, out_pixel = ((shape[2] * channels, channels) for shape in (data.shape, site.output.shape))
    parameters: dict[str, ParameterValue] = {
        "batch": batch,
        "channels": channels,
        "lines": out_sizes[across],
        "line": pixel[across] * attrs.strides[across],
        "out_line": out_pixel[across],
        "pixels": sizes[along],
        "pixel": pixel[along],
        "out_pixels": out_sizes[along],
        "out_pixel": out_pixel[along],
        "image": data.elements // batch,
        "out_image": site.output.elements // batch,
        "pad": pad,
        "pitch": pitch,
        "groups": groups,
        "skipped": STEPS - steps,
        "input_zero_point": attrs.input_zero_point,
        "sign": int(stage.sign),
        "offset": 2 * attrs.output_zero_point + 1,
    }
    stream = _stream(weights.reshape(taps, channels), stage, QUAD * groups)
    arguments = (Input(0), Constant("stream", stream), Output(0), Scratch())
    behind = site_behind(site, out_sizes[1] if along else out_sizes[0] * out_sizes[1])
    inplace = (0,) if _stays(site, along) else ()
    return dsp_kernel("depthwise_lines", parameters, arguments, 16 * (pitch + groups), inplace, behind=behind)


def _stays(site: Site[Any], along: int) -> bool:
    """Whether what four channels of a line become lies where they are."""
    data, output = site.operands[0].info.shape, site.output.shape
    alike = data[1:] == output[1:] or (data[0] == 1 and along == 0 and data[2] == output[2] and output[1] <= data[1])
    return alike and site.attrs.strides == (1, 1) and data[3] % QUAD == 0


def _stream(weights: Array, stage: OutputStage, filled: int) -> NDArray[np.int32]:
    """Of each channel: its sum at the start; the output stage; its weights."""
    rows, stage = stage.computed(weights.T)
    rows = np.pad(rows, ((0, 0), (0, filled - len(weights))))
    start = np.stack([2 * stage.bias, stage.multiplier, stage.shift], axis=1)
    return joined(start, np.ascontiguousarray(rows).view("<i4"))
