"""Offers int8 convolutions and fully connected layers for Arm's DSP extension, two pixels by four channels at a time.

`quads` packs the streams of ``uaccel_dsp_2x4``, the inner loop that all convolutions here share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels.conv_forms import (
    MOST_GROUPS,
    check_groups,
    moved,
    of_channel,
    of_group,
    offer_rewritten,
    output_steps,
    rows_as_pixels,
    without,
)
from uaccel.kernels.output_stage import Ints, OutputStage, output_stage_of, pad_axis
from uaccel.kernels.registry import DeclinedError, offers
from uaccel.kernels.weight_packing import IN_HALVES, Paired, alike, concat_words, finish_words, paired_stream, unpaired
from uaccel.ops.conv import Conv2d, Conv2dAttrs
from uaccel.ops.kernel import UNUSED, Argument, Constant, Input, Kernel, Output, ParameterValue, Scratch, calling
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import Site
from uaccel.ops.storage import overwrite_distance, pairs_of_rows_behind
from uaccel.ops.windows import geometry_of, image_fields, window_fields

# Streams for ``uaccel_dsp_2x4``: four channels of two pixels at a time, channels in pairs as in `weight_packing`.
#
# The output stage takes fewer instructions than the general one. The sum A of a pair comes doubled: (S - B) >> 7 is
# 2 * A, and round(2 * A * m / 2**32) is the product by m. The sum B comes as it is: with 2 * m - 2**32 in place of m,
# B * (2 * m - 2**32) / 2**32 + B = B * 2 * m / 2**32, where SMMLAR adds B in the same instruction. 2 * m - 2**32 fits
# 32 bits only where m is 2**30 or more (``NORMAL``), as normalised multipliers are.
#
# Products are shifted by one bit less than the shift, which leaves twice the result, and two of them share a word.
# SHADD16 with 2 * (zero point + 128) + 1 in each half then rounds, halves and adds the zero point in one instruction.
# It needs twice a result in 16 bits; where weights may give more (``WIDE``), a flag has the kernel saturate them first.

QUAD: Final = 4  # Output channels at a time.
PIXELS: Final = 2  # Windows at a time, whose inputs are widened to two bytes.
TURN: Final = 48  # Inputs of a turn of the loop (UACCEL_DSP_LOOP steps of two).
# Single precision reads {scale, offset} of two channels before the rests of both. These are their places among the
# words of `finish_words`, which are {scale, offset, rest} by channel.
IN_TURN: Final = (0, 1, 3, 4, 2, 5, 6, 7, 9, 10, 8, 11)
WIDE: Final = 1 << 15  # Twice a result, before the zero point is added, fits half a word where it is below this.
NORMAL: Final = 1 << 30  # The least multiplier m for which 2 * m - 2**32 fits 32 bits.


@dataclass(frozen=True, eq=False)
class Quads(Paired):
    """Holds a stream for ``uaccel_dsp_2x4`` and, as ``finish``, the fields of ``struct uaccel_dsp_quads``.

    The stream has, for each four channels, S and B of two pairs at the start, the words of each two inputs, and the
    output stage.
    """

    finish: dict[str, ParameterValue] = field(default_factory=dict)


def quads(weights: NDArray[np.int8], stage: OutputStage, turn: int = 0) -> Quads:
    """Packs weights, one row a channel whose length is a multiple of four; declines where that would not be exact.
    ``turn``: as in `weight_packing.ends_apart`."""
    wide = False
    if not stage.single:
        weights, stage = stage.computed(weights)
        if stage.shift.min() < 1 or stage.multiplier.min() < NORMAL:
            raise DeclinedError("a channel scales its sums by 0.5 or more", "quantise with a larger output scale")
        wide = _reach(weights, stage) >= WIDE
    rows = pad_axis(weights, 0, QUAD)
    stage = stage.filled(len(rows))
    finish = finish_words(stage, QUAD)[:, IN_TURN] if stage.single else _finish(stage)
    packed = paired_stream(rows, stage.bias, QUAD, finish, turn=turn)
    low, high = ((bound & 0xFF) * 0x01010101 for bound in (stage.clamp_min, stage.clamp_max))
    fields: dict[str, ParameterValue] = {
        "finish.flags": int(stage.sign) + 2 * int(wide) + 4 * int(stage.clamps),
        "finish.offset": (2 * (stage.zero_point + 128) + 1) * 0x00010001,
        "finish.lowest": low,
        "finish.highest": high,
    }
    return Quads(packed.stream, packed.apart, fields)


def _finish(stage: OutputStage) -> Ints:
    """Returns a row for each four channels: a word with shift - 1 of each in a byte, and four multipliers. The second
    channel of each pair has 2 * multiplier - 2**32, as above."""
    multiplier, shift = stage.multiplier.reshape(-1, QUAD), stage.shift.reshape(-1, QUAD)
    shifts = ((shift - 1 & 0xFF) << np.arange(QUAD) * 8).sum(axis=1)
    doubled = 2 * multiplier - (1 << 32)
    return np.column_stack([shifts, np.where(np.arange(QUAD) % 2 == 0, multiplier, doubled)])


def _reach(weights: NDArray[np.int8], stage: OutputStage) -> int:
    """Bounds how far from zero twice a result can be before the zero point is added; one more for each rounding."""
    sums = 128 * np.abs(weights.astype(np.int64)).sum(axis=1) + np.abs(stage.bias)
    return int(((sums * stage.multiplier >> 31) + 1 >> stage.shift - 1).max(initial=0)) + 1


# Kernels for Arm's DSP extension: Cortex-M4, M7, M33.

REQUIRES: Final = ("dsp",)
FPU: Final = ("fpu",)  # Required besides by layers that round in single precision.
WORD: Final = 4  # Bytes that are read at once.
EIGHT: Final = 8  # Units of a row at a time.
TURN_OF_ROW: Final = 16  # Inputs of a turn of the loop over a row.
OF_COPY: Final = 400  # Products that take as long as what a copied window takes besides,
OF_PLACE: Final = 80  # and one that is read in its place.
FEW: Final = 2  # So few units are better computed pair by pair, by the dot products.

arm_dsp: Final = partial(calling, "arm_dsp", REQUIRES)


def dsp_kernel(
    name: str,
    parameters: dict[str, ParameterValue],
    arguments: tuple[Argument, ...],
    scratch: int = 0,
    inplace: tuple[int, ...] = (),
    single: bool = False,
    behind: Mapping[int, int] | None = None,
    form: str = "",
    deep: bool = False,
    pair: bool = False,
) -> Kernel:
    ways = "_pair" * pair + "_deep" * deep + "_float32" * single
    function, struct = f"uaccel_{name}_dsp{form}_s8{ways}", f"uaccel_{name}_dsp"
    return arm_dsp(function, struct, parameters, arguments, scratch=scratch, inplace=inplace, behind=behind)


@offers(Conv2d, REQUIRES, FPU, rank=200)
def conv2d(site: Site[Conv2dAttrs], turn: int = TURN) -> Kernel:
    """Widens the windows of two pixels at a time, and runs all channels over them by fours. A call for each group, or
    for several side by side. ``turn``: 0 to decline deep sums."""
    groups = site.attrs.groups
    together = min(range(1, groups + 1), key=partial(_work_of_groups, site)) if groups > 1 else 1
    firsts = range(0, groups, together)
    check_groups(len(firsts))
    whole = [k for first in firsts for k in _conv2d_groups(site, first, min(together, groups - first), turn)]
    calls = tuple(call for kernel in whole for call in kernel.calls)
    behind = overwrite_distance(site, 2, copied=True) if len(whole) == 1 else {}
    return replace(whole[0], calls=calls, scratch=max(kernel.scratch for kernel in whole), behind=behind)


def apart_from_pairs(weights: NDArray[np.int8]) -> list[int]:
    """Lists channels that are computed by themselves, since they do not fit into a word with the next one. Each takes
    as long as four, so where they are many there are none, and packing declines."""
    channels = unpaired(weights)
    return channels if QUAD * len(channels) <= len(weights) and len(channels) < MOST_GROUPS else []


def _work_of_groups(site: Site[Conv2dAttrs], together: int) -> int:
    """Estimates the work of a pixel if so many groups are one convolution, in products. Few channels leave places of
    a quad empty, and copying a window takes as long as some hundred products; but weights between groups are zeros."""
    groups, (channels, *window) = site.attrs.groups, site.operands[1].info.shape
    products = QUAD * -(-together * channels // groups // QUAD) * WORD * -(-together * math.prod(window) // WORD)
    copied = together < groups and window[1] > 1
    return -(-groups // together) * (products + (OF_COPY if copied else OF_PLACE))


def _conv2d_groups(site: Site[Conv2dAttrs], first: int, count: int, turn: int) -> list[Kernel]:
    """Makes the kernel of some groups, and those of channels that overwrite what it computes in their place."""
    pixel, steps = site.operands[0].info.shape[3], output_steps(site)
    source, target = (first * channels // site.attrs.groups for channels in (pixel, site.output.shape[3]))
    site = of_group(site, first, count) if site.attrs.groups > 1 else site
    alone = apart_from_pairs(site.operands[1].value)
    parts = [(without(site, alone), target), *((of_channel(site, one), target + one) for one in alone)]
    return [_dense(part, pixel, steps, source, begin, turn) for part, begin in parts]


def _dense(site: Site[Conv2dAttrs], pixel: int, steps: tuple[int, int], source: int, target: int, turn: int) -> Kernel:
    """Makes the kernel of a convolution without groups. ``source``, ``target``: where its first channels lie in pixels
    of the input, which have ``pixel`` elements, and of the output, between whose elements ``steps`` lie."""
    out_pixel, out_row = steps
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    image, result = data.shape[:3], site.output.shape[1:3]
    out_skip = out_row - result[1] * out_pixel
    if weights.shape[1:3] == attrs.strides == (1, 1) and not any(attrs.padding) and out_skip == 0:
        image, result = (1, 1, math.prod(image)), (1, math.prod(image))
    out_channels, height, width, depth = weights.shape
    stage = output_stage_of(site, weights.reshape(out_channels, -1), rests=True)
    window = pad_axis(weights.reshape(out_channels, -1), 1, WORD)
    rest = out_channels % QUAD if out_channels > QUAD else 0
    whole = out_channels - rest if rest in (1, 2) else out_channels
    packed = quads(window[:whole], stage.taken(np.arange(whole)), turn)
    others = _pair(window[whole:], stage.taken(np.arange(whole, out_channels)))
    parameters: dict[str, ParameterValue] = {
        **geometry_of((*image, depth), (1, *result, out_channels), (height, width), attrs),
        "input_zero_point": attrs.input_zero_point,
        **_places(attrs, image, weights.shape, pixel),
        "out_pixel": out_pixel,
        "out_skip": out_skip,
        "window": window.shape[1] // WORD,
        "quad_words": packed.stream.shape[1],
    }
    copies = parameters["copied"] != 0 or any(attrs.padding) or depth % WORD > 0
    scratch = window.shape[1] * 4 + (window.shape[1] * 2 + 2 * WORD if copies else 0)
    arguments = (
        Input(0, source),
        Constant("stream", np.append(packed.behind_ends(PIXELS * 2), others)),
        Output(0, target),
        Scratch(),
    )
    given, forms = parameters | packed.finish, {"deep": packed.apart > 0, "pair": whole < out_channels}
    return dsp_kernel("conv2d", given, arguments, scratch, single=stage.single, **forms)


def _pair(rows: NDArray[np.int8], stage: OutputStage) -> NDArray[np.int32]:
    """Packs one or two channels behind fours: sums at the start, for each four inputs two words of either, and the
    output stage. They are rows by themselves, whose sums may be deep, in the bytes that four channels take in pairs."""
    if not len(rows):
        return np.zeros(0, np.int32)
    rows, stage = pad_axis(rows, 0, 2), stage.filled(2)
    halves = np.ascontiguousarray(rows.reshape(2, -1, WORD)[:, :, IN_HALVES], "<i2").view("<i4").transpose(1, 2, 0)
    return concat_words(stage.bias.reshape(1, 2), halves.reshape(1, -1), finish_words(stage, 2)).ravel()


def _places(
    attrs: Conv2dAttrs, image: tuple[int, ...], weights: tuple[int, ...], pixel: int
) -> dict[str, ParameterValue]:
    """Says where windows lie: which have no borders, which end inside the tensor, and which are copied first.

    A window is read in words, so its last word may reach beyond it: ``reach`` bytes from its beginning, which must end
    at ``limit`` at most, whichever group's channels it begins at. ``copied`` is 2 where pixels lie apart (dilation, or
    other groups' channels between them), and 1 where a row's words end amid the next row.
    """
    (_, in_height, in_width), (_, height, width, depth) = image, weights
    below, run = (height - 1) * attrs.dilation[0], -(-width * depth // WORD) * WORD
    apart = width > 1 and (attrs.dilation[1] > 1 or pixel > depth)
    return {
        "row": in_width * pixel,
        "pixel": pixel,
        "tops": max(0, in_height - below),
        "lefts": max(0, in_width - width + 1),
        "reach": below * in_width * pixel + run,
        "limit": in_height * in_width * pixel - (pixel - depth),
        "copied": 2 if apart else int(height > 1 and width * depth % WORD > 0),
    }


offer_rewritten(conv2d, REQUIRES, FPU, transposed=200, depthwise=200)


@offers(FullyConnected, REQUIRES, FPU, rank=200)
def fully_connected(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    """Computes one row, eight units at a time; several rows are the pixels of a pointwise convolution."""
    rows, depth = site.operands[0].info.shape
    if rows > 1:
        return conv2d(rows_as_pixels(site)) if site.output.shape[1] > FEW else None
    weights = pad_axis(site.operands[1].value, 1, WORD)
    stage = output_stage_of(site, weights, rests=True)
    if alone := apart_from_pairs(site.operands[1].value):
        return _units_apart(site, alone)
    units, filled = weights.shape
    shared = alike(stage)
    weights = pad_axis(weights, 0, EIGHT)
    stages = stage.filled(len(weights))
    once = None
    with suppress(DeclinedError):  # a deep sum has a form with constants for each unit alone
        once = paired_stream(weights, stages.bias, EIGHT) if any(shared.values()) else None
    packed = once or paired_stream(weights, stages.bias, EIGHT, finish_words(stages, EIGHT), turn=TURN_OF_ROW)
    if units <= 2 * FEW and not packed.apart:
        return None
    constants = shared if once else dict.fromkeys(shared, 0)
    parameters = {"depth": depth, "filled": filled, "units": units, **constants, **stage.parameters()}
    given, scratch = (Scratch(), filled) if filled > depth else (UNUSED, 0)
    arguments = (Input(0), Constant("stream", packed.behind_ends(1)), Output(0), given)
    form, deep = "_alike" * (once is not None), packed.apart > 0
    kernel = dsp_kernel("fully_connected", parameters, arguments, scratch, single=stage.single, form=form, deep=deep)
    return replace(kernel, effort=len(weights) / units)


def _units_apart(site: Site[FullyConnectedAttrs], alone: list[int]) -> Kernel | None:
    """Makes the kernel of one row where some units are convolutions, which overwrite the results in their places."""
    kernel = fully_connected(without(site, alone))
    if kernel is None:
        return None
    others = [(unit, conv2d(rows_as_pixels(of_channel(site, unit)))) for unit in alone]
    calls = [moved(call, 0, unit) for unit, one in others for call in one.calls]
    scratch = max([kernel.scratch, *(one.scratch for _, one in others)])
    return replace(kernel, calls=(*kernel.calls, *calls), scratch=scratch)


@offers(FullyConnected, REQUIRES, FPU, rank=210)
def one_pixel(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    """Computes one row by the convolution's loop, as both of its pixels: twice the products, but no code of its own.
    Not where sums are deep: its scratch memory grows with them."""
    rows, _ = site.operands[0].info.shape
    kernel = conv2d(rows_as_pixels(site), turn=0) if rows == 1 and site.output.shape[1] > FEW else None
    return None if kernel is None else replace(kernel, effort=2.0)


# Convolutions whose windows overlap along rows: columns are widened once for several windows.
#
# Pixels of two output rows, one below the other, are computed together. The columns under ``CHUNK`` of their windows
# lie one after the other in scratch memory, so that a window is a run of columns, and neighbouring windows share some.

CHUNK: Final = 8  # Pixels of a row whose columns are widened together.
LEAST_ROWS: Final = 4  # Rows of the output, below which two at a time do not pay.


@offers(Conv2d, REQUIRES, FPU, rank=210)
def columns(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Computes two pixels at a time, one below the other, four channels over them. Scratch memory holds a pixel of zero
    points for what lies outside, and the columns of a chunk, two bytes an input for each of the two rows."""
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    (out_channels, height, width, depth), (rows, pixels) = weights.shape, site.output.shape[1:3]
    overlapping = width > attrs.strides[1] and attrs.dilation == (1, 1) and attrs.groups == 1
    if not overlapping or depth % WORD or out_channels % QUAD or rows < LEAST_ROWS or pixels < 2:
        return None
    stage = output_stage_of(site, weights.reshape(out_channels, -1))
    by_columns = weights.transpose(0, 2, 1, 3).reshape(out_channels, -1)
    packed = quads(by_columns, stage)
    chunk = min(pixels, CHUNK)
    parameters: dict[str, ParameterValue] = {
        **image_fields(data.shape, site.output.shape),
        **window_fields(attrs, (height, width), dilated=False),
        "input_zero_point": attrs.input_zero_point,
        "chunk": chunk,
        "quad_words": packed.stream.shape[1],
    }
    scratch = depth + ((chunk - 1) * attrs.strides[1] + width) * height * depth * 4
    arguments = (Input(0), Constant("stream", packed.stream), Output(0), Scratch())
    behind = {0: pairs_of_rows_behind(data, site.output, attrs.strides, attrs.padding, chunk)}
    given = parameters | packed.finish
    return dsp_kernel("conv2d_columns", given, arguments, scratch, single=stage.single, behind=behind)
