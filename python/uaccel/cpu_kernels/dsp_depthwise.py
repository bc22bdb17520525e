"""Depthwise convolution with Arm's DSP extension: 3x3 windows by planes, others pixel by pixel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.dsp import FPU, REQUIRES, dsp_kernel
from uaccel.cpu_kernels.dsp_pack import finish_words, joined
from uaccel.cpu_kernels.output_stage import OutputStage, output_stage_of, padded_to
from uaccel.cpu_kernels.registry import offers
from uaccel.model import Array
from uaccel.ops.base import Site
from uaccel.ops.behind import site_behind
from uaccel.ops.depthwise_conv2d import DepthwiseConv2d
from uaccel.ops.kernel import Constant, Input, Kernel, Output, ParameterValue, Scratch, sides

ADDRESS: Final = 4
QUAD: Final = 4
"""Channels at a time."""
LEAST_PIXELS: Final = 9
"""Of the output; for fewer it takes longer to make planes than to use them."""
QUAD_ROW: Final = 30
QUAD_WORD: Final = 17
"""Instructions, about: for a row of four channels' planes, and for each of its words."""
SMALL: Final = 1024
"""Bytes of scratch that hardly ever matter."""


@offers(DepthwiseConv2d, REQUIRES)
def depthwise_rows(site: Site[Any]) -> Kernel | None:
    """3x3 windows: four channels at a time as planes of rows."""
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    channels, stride = weights.shape[2], attrs.strides[0]
    stage = output_stage_of(site, weights.reshape(-1, channels).T)
    regular = weights.shape[:2] == (3, 3) and attrs.dilation == (1, 1) and attrs.strides in ((1, 1), (2, 2))
    out_height, out_width = site.output.shape[1:3]
    if stage is None or stage.clamps or not regular or channels != data.shape[3] or channels < QUAD:
        return None
    if out_height * out_width < LEAST_PIXELS:
        return None
    pitch = (out_width + 1) // 2 * stride + 1
    whole = ((out_height - 1) * stride + 3) * pitch
    inplace = channels % QUAD == 0 and data.shape == site.output.shape and 16 * whole <= site.output.size
    band = out_height if inplace else _band(out_height, stride, pitch, max(SMALL, data.size // 16))
    parameters: dict[str, ParameterValue] = {
        "batch": data.shape[0],
        **sides("in", data.shape[1:3]),
        "channels": channels,
        **sides("out", (out_height, out_width)),
        "stride": stride,
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
        "input_zero_point": attrs.input_zero_point,
        "pitch": pitch,
        "sign": int(stage.sign),
    }
    arguments = (Input(0), Constant("stream", _row_stream(weights, stage)), Output(0), Scratch())

    def of_band(band: int) -> Kernel:
        plane = ((band - 1) * stride + 3) * pitch
        given = parameters | {"band": band, "plane": plane}
        return dsp_kernel("depthwise_rows", given, arguments, 16 * plane, behind=site_behind(site, band * out_width))

    def leaner() -> Iterator[tuple[Kernel, float]]:
        """In more bands; the rows that two of them need are put into planes twice."""
        per_row = data.shape[0] * -(-channels // QUAD) * (QUAD_ROW + QUAD_WORD * pitch)
        for less in sorted({-(-out_height // count) for count in range(1, out_height + 1)}, reverse=True):
            if less < band:
                yield of_band(less), (_planes(out_height, less, stride) - _planes(out_height, band, stride)) * per_row

    return replace(of_band(band), inplace=(0,) if inplace else (), leaner=leaner)


def _planes(rows: int, band: int, stride: int) -> int:
    """Rows of the input that are put into planes, by bands of so many rows of the output."""
    return sum((min(band, rows - y) - 1) * stride + 3 for y in range(0, rows, band))


def _band(rows: int, stride: int, pitch: int, limit: int) -> int:
    """Output rows of which four planes' input takes ``limit`` bytes or a little less, one at least."""
    band = (limit // (16 * pitch) - 3) // stride + 1
    return min(rows, max(1, band))


def _row_stream(weights: Array, stage: OutputStage) -> NDArray[np.int32]:
    """Of each channel: its sum at the start, twice; the output stage; of each row the weights (0, 1) and (1, 2)."""
    rows = 2 * weights.astype(np.int64).transpose(2, 0, 1)
    pairs = np.stack([_halves(rows[..., 0], rows[..., 1]), _halves(rows[..., 1], rows[..., 2])], axis=2)
    bias = 2 * stage.bias
    start = np.stack([bias, bias, stage.multiplier, stage.offset, stage.shift], axis=1)
    return joined(start, pairs.reshape(len(bias), -1))


def _halves(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Words of two halves."""
    return (low & 0xFFFF) | (high << 16)


@offers(DepthwiseConv2d, REQUIRES, FPU)
def depthwise_conv2d(site: Site[Any]) -> Kernel | None:
    """Pixel by pixel, four channels at a time."""
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    height, width, channels = weights.shape[-3:]
    rows = weights.reshape(height * width, channels).T
    stage = output_stage_of(site, rows)
    if stage is None or channels < QUAD:
        return None
    multiplier = channels // data.shape[3]
    below = (height - 1) * attrs.dilation[0] + 1
    ring = min(below, data.shape[1]) if multiplier > 1 else data.shape[1]
    order = _quads(channels)
    stage = stage.taken(order)
    taps = padded_to(rows.astype(np.int64), 1, 3)[order]
    stream = joined(stage.bias.reshape(-1, QUAD), _tap_words(taps), finish_words(stage, QUAD))
    parameters: dict[str, ParameterValue] = {
        "batch": data.shape[0],
        **sides("in", data.shape[1:3]),
        "channels": channels,
        "multiplier": multiplier,
        "ring": ring,
        **sides("out", site.output.shape[1:3]),
        **sides("kernel", (height, width)),
        **sides("stride", attrs.strides),
        **sides("dilation", attrs.dilation),
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
        "input_zero_point": attrs.input_zero_point,
        "taps": taps.shape[1],
        "quad_words": stream.shape[1],
    }
    arguments = (Input(0), Constant("stream", stream), Output(0), Scratch())
    scratch = taps.shape[1] * ADDRESS + channels + (ring * data.shape[2] * channels if multiplier > 1 else 0)
    given, behind = parameters | stage.parameters(), site_behind(site)
    return dsp_kernel("depthwise_conv2d", given, arguments, scratch, single=stage.single, behind=behind)


def _quads(channels: int) -> NDArray[np.int64]:
    """Channels by fours; the last four are the last ones, also where they overlap those before."""
    starts = np.minimum(np.arange(0, channels, QUAD), channels - QUAD)
    return (starts[:, np.newaxis] + np.arange(QUAD)).reshape(-1)


def _tap_words(taps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each four channels and each tap the weights of channels 0 and 2, and those of 1 and 3."""
    quads = taps.reshape(-1, 4, taps.shape[1])
    even, odd = _halves(quads[:, 0], quads[:, 2]), _halves(quads[:, 1], quads[:, 3])
    return np.stack([even, odd], axis=2).reshape(len(quads), -1)
