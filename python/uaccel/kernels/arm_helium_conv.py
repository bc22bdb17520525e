"""Offers int8 convolutions and fully connected layers for Arm Helium: two windows by four channels at a time.

The input's columns under a row of windows are copied one after the other, so that each window is a run of bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import gcd
from typing import Any, Final

import numpy as np

from uaccel.kernels.conv_forms import column_as_row, is_one_row, is_pointwise, offer_rewritten, output_steps
from uaccel.kernels.output_stage import OutputStage, output_stage_of
from uaccel.kernels.registry import DeclinedError, offers
from uaccel.kernels.weight_packing import VECTOR, Channels, channels_of, concat_words, unit_stream, window_stream
from uaccel.ops.conv import Conv2d, Conv2dAttrs
from uaccel.ops.exact import limits
from uaccel.ops.kernel import Argument, Constant, Input, Kernel, Output, ParameterValue, Scratch, calling
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import Site
from uaccel.ops.storage import overwrite_distance, row_overwrite_distance
from uaccel.ops.windows import image_fields, sides
from uaccel.util.text import round_up

# Calls of the kernels of Arm Helium, Cortex-M55 and M85.

REQUIRES: Final = ("helium",)

arm_helium: Final = partial(calling, "arm_helium", REQUIRES)


def helium_kernel(
    name: str,
    parameters: dict[str, ParameterValue],
    arguments: tuple[Argument, ...],
    scratch: int = 0,
    inplace: tuple[int, ...] = (),
    suffix: str = "s8",
    behind: Mapping[int, int] | None = None,
) -> Kernel:
    function, struct = f"uaccel_{name}_helium_{suffix}", f"uaccel_{name}_helium"
    return arm_helium(function, struct, parameters, arguments, scratch=scratch, inplace=inplace, behind=behind)


def finish_parameters(
    zero_point: int, way: int, clamp_min: int, clamp_max: int, dtype: str = "int8"
) -> dict[str, ParameterValue]:
    """Returns the fields of ``struct uaccel_helium_finish``; ``way`` numbers the rounding as `OutputStage.way` does."""
    return {
        "finish.zero_point": zero_point,
        "finish.lowest": clamp_min,
        "finish.highest": clamp_max,
        "finish.sign": int(way),
        "finish.clamp": int((clamp_min, clamp_max) != limits(dtype)),
    }


# Convolutions.

LARGEST_PLACE: Final = 255  # A store scatters the bytes of a vector by offsets of 8 bits.
LARGEST_ROW: Final = 2048  # Bytes of scratch memory for a row of pixels that are no whole vectors.
LARGEST_PAIR: Final = 65535 - 4  # Four results of each of two pixels are stored by offsets of 16 bits.
FEW: Final = 14  # Units of which fours, a pair and a single one may be fewer than eights.


def _finish(stage: OutputStage, zero_point: int) -> dict[str, ParameterValue]:
    return finish_parameters(zero_point, stage.way, stage.clamp_min, stage.clamp_max)


@offers(Conv2d, REQUIRES, float32=("fpu",), rank=100)
def conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Computes two pixels at a time, whose windows are runs of bytes, four channels over them. A run may be read up to
    the end of its last vector, so a vector of scratch memory follows the columns. Groups, and dilation along rows, have
    a kernel of their own."""
    site = column_as_row(site)
    attrs, weights = site.attrs, site.operands[1].value
    out_channels, height, width, depth = weights.shape
    # Weights by columns, each from top to bottom, as the input's columns lie.
    rows = weights.transpose(0, 2, 1, 3).reshape(out_channels, -1)
    stage = output_stage_of(site, rows, rests=True)
    channels = channels_of(rows, stage, attrs.output_zero_point)
    if attrs.groups > 1 or (width > 1 and attrs.dilation[1] > 1):
        return _apart(site, channels, stage)
    out_pixel, out_row = output_steps(site)
    if out_channels + out_pixel > LARGEST_PAIR:
        raise DeclinedError("two pixels of its result lie too far apart", "give it fewer channels")
    if is_pointwise(site):
        return _pointwise(site, channels, stage)
    in_width, (out_height, out_width) = site.operands[0].info.shape[2], site.output.shape[1:3]
    in_place = _rows_in_place(site)
    direct = in_place == out_height
    pitch, taken = height * depth, _pixels_a_vector(depth, height * depth)
    columns = (out_width - 1) * attrs.strides[1] + width
    parameters = _common(site, height) | {
        "out_pixel": out_pixel,
        "out_row": out_row,
        "step": attrs.strides[1] * pitch,
        "length": round_up(pitch * width, VECTOR),
        "columns": 0 if direct else columns * pitch + VECTOR,
        "direct": in_place,
        "inside": max(0, min(in_width, columns - attrs.padding[1])),
        "taken": taken,
        "places": _places(depth, pitch, taken),
    }
    arguments = (Input(0), Constant("stream", window_stream(channels)), Output(0), Scratch())
    scratch = VECTOR if direct else columns * pitch + VECTOR
    finish = _finish(stage, attrs.output_zero_point)
    behind = overwrite_distance(site, 2 if in_place else out_width, run=out_width, copied=not in_place)
    return helium_kernel("conv2d", parameters | finish, arguments, scratch, behind=behind)


def _rows_in_place(site: Site[Conv2dAttrs]) -> int:
    """Counts the rows of windows of one pixel that are read in place: whole vectors of their last one must not reach
    beyond the image. The others are copied."""
    attrs, (_, height, width, depth) = site.attrs, site.operands[1].value.shape
    _, in_height, in_width, _ = site.operands[0].info.shape
    _, out_height, out_width, _ = site.output.shape
    if (height, width) != (1, 1) or any(attrs.padding):
        return 0
    last = (out_width - 1) * attrs.strides[1] * depth + round_up(depth, VECTOR)
    below: int = (in_height * in_width * depth - last) // (attrs.strides[0] * in_width * depth)
    return max(0, min(out_height, below + 1))


# A depthwise convolution of one channel to fewer than four is left to planes.
offer_rewritten(conv2d, REQUIRES, ("fpu",), transposed=100, depthwise=100, least=4)


def _common(site: Site[Conv2dAttrs], height: int) -> dict[str, ParameterValue]:
    """Returns the parameters that both kernels for convolution take."""
    attrs = site.attrs
    return {
        **image_fields(site.operands[0].info.shape, site.output.shape),
        "kernel_height": height,
        "stride_height": attrs.strides[0],
        "dilation_height": attrs.dilation[0],
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
        "input_zero_point": attrs.input_zero_point,
    }


def _apart(site: Site[Conv2dAttrs], channels: Channels, stage: OutputStage) -> Kernel | None:
    """Makes the kernel for groups and for dilation along rows, which lays columns out by phases. With dilation d column
    c lies in phase c mod d, at c // d, so that a window is a run again. Windows begin at multiples of the stride s,
    hence in d / gcd(s, d) phases; of one phase, each begins s / gcd(s, d) columns behind the one before."""
    attrs, (_, height, width, depth) = site.attrs, site.operands[1].value.shape
    stride, dilation = attrs.strides[1], attrs.dilation[1]
    shared, per_group = gcd(stride, dilation), len(channels.bias) // attrs.groups
    phases, pitch = dilation // shared, height * depth
    if phases * len(channels.bias) > LARGEST_PAIR:
        raise DeclinedError("two pixels of its result lie too far apart", "give it fewer channels or less dilation")
    phase = ((site.output.shape[2] - 1) * stride + (width - 1) * dilation) // dilation + 1
    columns = dilation * phase * pitch + VECTOR
    streams = [window_stream(channels[first : first + per_group]) for first in range(0, len(channels.bias), per_group)]
    parameters = _common(site, height) | {
        "stride_width": stride,
        "dilation_width": dilation,
        "groups": attrs.groups,
        "group_words": streams[0].size,
        "phase": phase,
        "phases": phases,
        "step": stride // shared * pitch,
        "length": round_up(pitch * width, VECTOR),
        "columns": columns,
    }
    arguments = (Input(0), Constant("stream", np.concatenate(streams)), Output(0), Scratch())
    finish, width = _finish(stage, attrs.output_zero_point), site.output.shape[2]
    behind = overwrite_distance(site, width, copied=attrs.groups == 1)
    return helium_kernel("conv2d_apart", parameters | finish, arguments, columns, behind=behind)


def _pixels_a_vector(depth: int, pitch: int) -> int:
    """Returns how many pixels a vector holds that can be scattered to columns at once; 0 where it holds none. The last
    byte goes (pixels - 1) * pitch + depth - 1 bytes from the first, which is within ``LARGEST_PLACE``."""
    return min(VECTOR // depth, (LARGEST_PLACE - depth + 1) // pitch + 1) if depth <= VECTOR else 0


def _places(depth: int, pitch: int, taken: int) -> tuple[int, ...]:
    """Returns where each byte of a vector goes, counted from where the first one does."""
    used = [pixel * pitch + byte for pixel in range(taken) for byte in range(depth)]
    return tuple(used + [0] * (VECTOR - len(used)))


@offers(FullyConnected, REQUIRES, float32=("fpu",), rank=100)
def fully_connected(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    """Computes eight units over a row at a time; several rows are the pixels of a convolution, two at a time."""
    rows, weights = site.operands[0].info.shape[0], site.operands[1].value
    stage = output_stage_of(site, weights, rests=True)
    channels = channels_of(weights, stage, site.attrs.output_zero_point)
    if rows > 1 and len(weights) <= LARGEST_PAIR:
        return _pointwise(site, channels, stage)
    return _units(site, channels, stage, rows)


def _units(site: Site[Any], channels: Channels, stage: OutputStage, rows: int = 1) -> Kernel:
    units, depth = channels.weights.shape
    length = round_up(depth, VECTOR)
    parameters: dict[str, ParameterValue] = {
        "rows": rows,
        "depth": depth,
        "units": units,
        "length": length,
        "each": int(not channels.alike),
        "multiplier": int(channels.multiplier[0]),
        "right": -int(channels.right[0]),
    }
    arguments = (Input(0), Constant("stream", unit_stream(channels, not channels.alike)), Output(0), Scratch())
    finish = _finish(stage, site.attrs.output_zero_point)
    return helium_kernel("fully_connected", parameters | finish, arguments, length if length > depth else VECTOR)


def _few_units(site: Site[Any], channels: Channels, stage: OutputStage) -> Kernel | None:
    """Makes the kernel of few units over one row: one, two or four at a time, and none that there are not."""
    units, depth = channels.weights.shape
    if units > FEW:
        return None
    ends = concat_words(*(array.reshape(-1, 4) for array in channels.filled(4).ends()))
    arguments = (Input(0), Constant("weights", channels.weights), Constant("ends", ends.ravel()), Output(0))
    parameters = {"depth": depth, "units": units} | _finish(stage, site.attrs.output_zero_point)
    return helium_kernel("fully_connected_few", parameters, arguments)


# A convolution whose only window is the whole input, as streaming networks have, is a fully connected layer of one row.


def _row_of(site: Site[Any]) -> tuple[Channels, OutputStage] | None:
    """Returns the units of a layer of one row; None of other layers."""
    weights = site.operands[1].value
    one = site.operands[0].info.shape[0] == 1 if weights.ndim == 2 else site.attrs.groups == 1 and is_one_row(site)
    if not one:
        return None
    rows = weights.reshape(len(weights), -1)
    stage = output_stage_of(site, rows, rests=True)
    return channels_of(rows, stage, site.attrs.output_zero_point), stage


@offers(Conv2d, REQUIRES, float32=("fpu",), rank=101)
def whole_input(site: Site[Conv2dAttrs]) -> Kernel | None:
    row = _row_of(site)
    return _units(site, *row) if row else None


@offers(FullyConnected, REQUIRES, float32=("fpu",), rank=101)
def few_units(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    row = _row_of(site)
    return _few_units(site, *row) if row else None


@offers(Conv2d, REQUIRES, float32=("fpu",), rank=102)
def few_channels(site: Site[Conv2dAttrs]) -> Kernel | None:
    row = _row_of(site)
    return _few_units(site, *row) if row else None


def _pointwise(site: Site[Any], channels: Channels, stage: OutputStage) -> Kernel:
    """Makes the kernel for a pointwise convolution, on an image of another shape with as many pixels. Whole vectors are
    read in place, all in one row. Other pixels are read in place, too, except in the last row, which is copied, since
    the vector of its last pixel would reach beyond the tensor: rows are as wide as ``LARGEST_ROW`` allows."""
    depth = site.operands[0].info.shape[-1]
    pixels = site.operands[0].info.elements // depth
    direct = depth % VECTOR == 0
    width = pixels if direct else _divisor(pixels, max(2, LARGEST_ROW // depth))
    columns, taken = 0 if direct else width * depth + VECTOR, _pixels_a_vector(depth, depth)
    parameters: dict[str, ParameterValue] = {
        "batch": 1,
        **sides("in", (pixels // width, width)),
        "in_channels": depth,
        **sides("out", (pixels // width, width)),
        "out_channels": len(channels.bias),
        "kernel_height": 1,
        "stride_height": 1,
        "dilation_height": 1,
        "pad_top": 0,
        "pad_left": 0,
        "input_zero_point": site.attrs.input_zero_point,
        "out_pixel": len(channels.bias),
        "out_row": width * len(channels.bias),
        "step": depth,
        "length": round_up(depth, VECTOR),
        "columns": columns,
        "direct": pixels // width - (not direct),
        "inside": width,
        "taken": taken,
        "places": _places(depth, depth, taken),
    }
    arguments = (Input(0), Constant("stream", window_stream(channels)), Output(0), Scratch())
    finish, data = _finish(stage, site.attrs.output_zero_point), site.operands[0].info
    behind = row_overwrite_distance(pixels, data, site.output, 2, run=width)  # the last row alone is copied
    return helium_kernel("conv2d", parameters | finish, arguments, columns or VECTOR, behind={0: behind})


def _divisor(count: int, limit: int) -> int:
    """Returns the largest divisor within the limit, or the largest even one if that is above a quarter of it."""
    divisors = [d for d in range(1, min(count, limit) + 1) if count % d == 0]
    even = [d for d in divisors if d % 2 == 0]
    return even[-1] if even and 4 * even[-1] > divisors[-1] else divisors[-1]
