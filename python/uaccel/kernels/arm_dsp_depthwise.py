"""Offers int8 depthwise convolutions for Arm's DSP extension: by planes, by lines, or pixel by pixel.

In NHWC the taps of a channel lie apart. The first two kinds copy four channels at a time to planes or lines, in which
neighbouring pixels share a word, so that SMLAD takes two taps of a channel at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels.arm_dsp_conv import FPU, REQUIRES, dsp_kernel
from uaccel.kernels.output_stage import OutputStage, output_stage_of
from uaccel.kernels.registry import check_channels, offers
from uaccel.kernels.weight_packing import concat_words, finish_words
from uaccel.model import Array
from uaccel.ops.conv import DepthwiseConv2d
from uaccel.ops.fixedpoint import RESTS
from uaccel.ops.kernel import Constant, Input, Kernel, Output, ParameterValue, Scratch
from uaccel.ops.operator import Site
from uaccel.ops.storage import overwrite_distance
from uaccel.ops.windows import plane_fields, sides, window_fields

# 3x3 windows by planes, and any others pixel by pixel.
#
# A plane holds a channel's image, or a band of its rows with the rows that their windows reach, borders and all, as
# 16-bit halves. Where planes hold the whole image, the output may lie over the input: it has been read by then.

ADDRESS: Final = 4  # Bytes of the address of a tap's pixel.
LEAST_PIXELS: Final = 9  # Pixels of the output; for fewer it takes longer to make planes than to use them.
OF_PAIR: Final = 41  # Cycles, about, for two output pixels of a channel,
OF_PIXEL: Final = 33  # for one,
OF_ROW: Final = 70  # and for a row besides its pixels, with its part of making the planes.
QUAD: Final = 4  # Channels, outputs and taps at a time.
QUAD_ROW: Final = 30  # Instructions, about, to make a row of four channels' planes,
QUAD_WORD: Final = 17  # and for each of its words.
SMALL: Final = 1024  # Bytes of scratch memory that hardly ever matter.


@offers(DepthwiseConv2d, REQUIRES, FPU, rank=210)
def depthwise_rows(site: Site[Any]) -> Kernel | None:
    """Computes 3x3 windows by planes of rows, or of columns where that is cheaper and planes hold the whole image. Each
    row costs something besides its pixels, so an image of few long columns is cheaper turned. Where planes do not hold
    the image, a band's planes take about a sixteenth of the input's bytes, or ``SMALL`` if that is more."""
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    channels, out_sizes = weights.shape[2], site.output.shape[1:3]
    stage = output_stage_of(site, weights.reshape(-1, channels).T, rests=True)
    regular = weights.shape[:2] == (3, 3) and attrs.dilation == (1, 1) and attrs.strides in ((1, 1), (2, 2))
    if stage.clamps or not regular or channels != data.shape[3] or channels < QUAD:
        return None
    if out_sizes[0] * out_sizes[1] < LEAST_PIXELS or max(attrs.padding[:2]) > 1:
        return None
    upright, turned = _Planes(site, stage, False), _Planes(site, stage, True)
    planes = turned if turned.inplace and turned.work < upright.work else upright
    band = planes.height if planes.inplace else planes.band(max(SMALL, data.size // 16))
    kernel = planes.kernel(band)

    def leaner() -> Iterator[tuple[Kernel, float]]:
        """Yields kernels with more bands, hence less scratch memory, and the instructions that each takes more. Rows
        that two bands need are put into planes twice."""
        per_row = data.shape[0] * -(-channels // QUAD) * (QUAD_ROW + QUAD_WORD * upright.pitch)
        known = upright.rows(min(band, upright.height)) * per_row - (upright.work - planes.work) * channels
        for less in sorted({-(-upright.height // count) for count in range(1, upright.height + 1)}, reverse=True):
            if upright.scratch(less) < kernel.scratch:
                yield upright.kernel(less), upright.rows(less) * per_row - known

    return replace(kernel, inplace=(0,) if planes.inplace else (), leaner=leaner)


@dataclass(frozen=True, eq=False)
class _Planes:
    """Describes planes of rows, or, where ``turned``, of columns: then heights and widths change places."""

    site: Site[Any]
    stage: OutputStage
    turned: bool

    def of(self, pair: Sequence[int]) -> tuple[int, int]:
        first, second = pair
        return (second, first) if self.turned else (first, second)

    @property
    def stride(self) -> int:
        return int(self.site.attrs.strides[0])

    @property
    def height(self) -> int:
        return self.of(self.site.output.shape[1:3])[0]

    @property
    def width(self) -> int:
        return self.of(self.site.output.shape[1:3])[1]

    @property
    def pitch(self) -> int:
        return (self.width + 1) // 2 * self.stride + 1

    @property
    def work(self) -> int:
        """Estimates the cycles of a channel."""
        return self.height * (self.width // 2 * OF_PAIR + self.width % 2 * OF_PIXEL + OF_ROW)

    @property
    def inplace(self) -> bool:
        data, output = self.site.operands[0].info, self.site.output
        return data.shape[3] % QUAD == 0 and data.shape == output.shape and self.scratch(self.height) <= output.size

    def scratch(self, band: int) -> int:
        return 16 * ((band - 1) * self.stride + 3) * self.pitch

    def band(self, limit: int) -> int:
        """Returns how many output rows four planes can serve within ``limit`` bytes, one at least. Solves `scratch`: a
        band of n rows needs (n - 1) * stride + 3 rows of 16 * pitch bytes in four planes."""
        return min(self.height, max(1, (limit // (16 * self.pitch) - 3) // self.stride + 1))

    def rows(self, band: int) -> int:
        """Counts the input rows that are put into planes, if a band has so many rows of the output."""
        return sum((min(band, self.height - y) - 1) * self.stride + 3 for y in range(0, self.height, band))

    def kernel(self, band: int) -> Kernel:
        """Makes the kernel for planes that serve so many output rows; turned ones serve all."""
        site, attrs, data = self.site, self.site.attrs, self.site.operands[0].info
        weights, channels = site.operands[1].value, data.shape[3]
        row, pixel = self.of((data.shape[2] * channels, channels))
        out_row, out_pixel = self.of((site.output.shape[2] * channels, channels))
        pad_top, pad_left = self.of(attrs.padding[:2])
        parameters: dict[str, ParameterValue] = {
            **plane_fields((data.shape[0], *self.of(data.shape[1:3]), channels), (0, self.height, self.width)),
            "stride": self.stride,
            "pad_top": pad_top,
            "pad_left": pad_left,
            "input_zero_point": attrs.input_zero_point,
            "row": row,
            "pixel": pixel,
            "out_row": out_row,
            "out_pixel": out_pixel,
            "band": band,
            "pitch": self.pitch,
            "plane": self.scratch(band) // 16,
            "sign": int(self.stage.sign),
            "offset": 2 * attrs.output_zero_point + 1,
        }
        stream = _row_stream(weights.transpose(1, 0, 2) if self.turned else weights, self.stage)
        arguments = (Input(0), Constant("stream", stream), Output(0), Scratch())
        behind = overwrite_distance(site, band * self.width)
        scratch, single = self.scratch(band), self.stage.single
        return dsp_kernel("depthwise_rows", parameters, arguments, scratch, single=single, behind=behind)


def _row_stream(weights: Array, stage: OutputStage) -> NDArray[np.int32]:
    """Packs each channel: twice its bias, the multiplier, and a word for each row of three weights. The fourth byte of
    the first row holds the shift, or in single precision the 128ths that are added to the sum."""
    flat = weights.transpose(2, 0, 1).reshape(-1, 9)
    flat, stage = (flat, stage) if stage.single else stage.computed(flat)
    rows = np.pad(flat.reshape(-1, 3, 3), ((0, 0), (0, 0), (0, 1)))
    rows[:, 0, 3] = stage.multiplier % RESTS if stage.single else stage.shift
    start = np.stack([2 * stage.bias, finish_words(stage, 1)[:, 0]], axis=1)
    return concat_words(start, np.ascontiguousarray(rows).view("<i4")[..., 0])


def _halves(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Joins two halves in each word."""
    return (low & 0xFFFF) | (high << 16)


@offers(DepthwiseConv2d, REQUIRES, FPU, rank=220)
def depthwise_conv2d(site: Site[Any]) -> Kernel | None:
    """Computes a pixel after the other, four channels at a time, from a list of the addresses of its taps. Weights are
    doubled in their 16-bit halves, so that sums come to the output stage doubled. With a channel multiplier the input's
    channels are first repeated, row by row, into a ring of the rows that windows reach."""
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    height, width, channels = weights.shape[-3:]
    rows = weights.reshape(height * width, channels).T
    stage = output_stage_of(site, rows, rests=True)
    check_channels(channels, QUAD)
    multiplier = channels // data.shape[3]
    below = (height - 1) * attrs.dilation[0] + 1
    ring = min(below, data.shape[1]) if multiplier > 1 else data.shape[1]
    order = _quads(channels)
    stage = stage.taken(order)
    taps = 2 * rows.astype(np.int64)[order]
    stream = concat_words(2 * stage.bias.reshape(-1, QUAD), _tap_words(taps), finish_words(stage, QUAD))
    parameters: dict[str, ParameterValue] = {
        "batch": data.shape[0],
        **sides("in", data.shape[1:3]),
        "channels": channels,
        "multiplier": multiplier,
        "ring": ring,
        **sides("out", site.output.shape[1:3]),
        **window_fields(attrs, (height, width)),
        "input_zero_point": attrs.input_zero_point,
        "taps": taps.shape[1],
    }
    arguments = (Input(0), Constant("stream", stream), Output(0), Scratch())
    scratch = taps.shape[1] * ADDRESS + channels + (ring * data.shape[2] * channels if multiplier > 1 else 0)
    given, behind = parameters | stage.parameters(), overwrite_distance(site)
    return dsp_kernel("depthwise_conv2d", given, arguments, scratch, single=stage.single, behind=behind)


def _quads(channels: int) -> NDArray[np.int64]:
    """Returns channels by fours; the last four are the last ones, also where they overlap those before."""
    starts = np.minimum(np.arange(0, channels, QUAD), channels - QUAD)
    return (starts[:, np.newaxis] + np.arange(QUAD)).reshape(-1)


def _tap_words(taps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Packs two words a tap for each four channels: the weights of channels 0 and 2, and those of 1 and 3."""
    quads = taps.reshape(-1, 4, taps.shape[1])
    even, odd = _halves(quads[:, 0], quads[:, 2]), _halves(quads[:, 1], quads[:, 3])
    return np.stack([even, odd], axis=2).reshape(len(quads), -1)


# Windows of one row or one column, by lines: a line is a row or a column of the image, two pixels in a word.
#
# A step takes two taps of four outputs. The window of an output at an odd place begins amid a word: it has the same
# words with its weights moved by one half, which makes taps // 2 + 1 words of either. The kernel widens weights to
# both forms. Its code has ``STEPS`` steps, and is entered behind those that a shorter window does not need.

STEPS: Final = 8  # Steps of two taps that the code has: for windows of 15 taps at most.
LEAST_OUTPUTS: Final = 6  # Outputs of a line; for fewer it takes longer to make lines than to use them.


@offers(DepthwiseConv2d, REQUIRES, rank=250)
def depthwise_lines(site: Site[Any]) -> Kernel | None:
    """Computes four channels at a time, line by line, each of the whole height or width. ``pitch``, the words of a
    line, covers padding and pixels, and what the last four outputs read from their first word on: a word for each step
    and one more."""
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
    if stage.clamps:
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
    behind = overwrite_distance(site, out_sizes[1] if along else out_sizes[0] * out_sizes[1])
    inplace = (0,) if _stays(site, along) else ()
    return dsp_kernel("depthwise_lines", parameters, arguments, 16 * (pitch + groups), inplace, behind=behind)


def _stays(site: Site[Any], along: int) -> bool:
    """Says whether the results of four channels of a line lie just where these are, so that they may replace them."""
    data, output = site.operands[0].info.shape, site.output.shape
    alike = data[1:] == output[1:] or (data[0] == 1 and along == 0 and data[2] == output[2] and output[1] <= data[1])
    return alike and site.attrs.strides == (1, 1) and data[3] % QUAD == 0


def _stream(weights: Array, stage: OutputStage, filled: int) -> NDArray[np.int32]:
    """Packs each channel: twice its bias, the multiplier, the shift, and its weights, four in a word."""
    rows, stage = stage.computed(weights.T)
    rows = np.pad(rows, ((0, 0), (0, filled - len(weights))))
    start = np.stack([2 * stage.bias, stage.multiplier, stage.shift], axis=1)
    return concat_words(start, np.ascontiguousarray(rows).view("<i4"))
