"""Kernels for Arm Helium: Cortex-M55, M85."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.ops.base import Site
from uaccel.ops.conv2d import Conv2d, Conv2dAttrs
from uaccel.ops.fully_connected import FullyConnected, FullyConnectedAttrs
from uaccel.ops.kernel import Argument, Constant, Input, Kernel, KernelCall, Output, ParameterValue, Scratch
from uaccel.variants.helium_pack import VECTOR, Channels, channels_of, unit_stream, window_stream
from uaccel.variants.output_stage import OutputStage, output_stage_of
from uaccel.variants.registry import offers

REQUIRES: Final = ("helium",)
LARGEST_PLACE: Final = 255
"""Where a byte of a vector can be put, from where the first one is."""
LARGEST_PAIR: Final = 65535 - 4
"""How far apart the results of two pixels can be."""


def _kernel(
    name: str,
    parameters: dict[str, ParameterValue],
    arguments: tuple[Argument, ...],
    scratch: int = 0,
    inplace: tuple[int, ...] = (),
) -> Kernel:
    header, struct = f"uaccel_{name}_helium.h", f"uaccel_{name}_helium"
    call = KernelCall(f"{struct}_s8", header, struct, parameters, arguments)
    return Kernel("arm_helium", (call,), scratch=scratch, inplace=inplace, requires=REQUIRES)


def _finish(stage: OutputStage, zero_point: int) -> dict[str, ParameterValue]:
    """The fields of ``struct uaccel_helium_finish``."""
    return {
        "finish.zero_point": zero_point,
        "finish.lowest": stage.clamp_min,
        "finish.highest": stage.clamp_max,
        "finish.sign": int(stage.sign),
        "finish.clamp": int(stage.clamps),
    }


def _whole(count: int) -> int:
    """Bytes of whole vectors."""
    return -(-count // VECTOR) * VECTOR


@offers(Conv2d, REQUIRES)
def conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Windows of two pixels at a time, as runs of bytes; four channels over them."""
    attrs, weights = site.attrs, site.operands[1].value
    out_channels, height, width, depth = weights.shape
    # by columns, each from top to bottom
    rows = weights.transpose(0, 2, 1, 3).reshape(out_channels, -1)
    stage = output_stage_of(site, rows)
    if stage is None or attrs.groups > 1 or attrs.dilation[1] > 1 or not 4 <= out_channels <= LARGEST_PAIR:
        return None
    channels = channels_of(rows, stage, attrs.output_zero_point)
    (batch, in_height, in_width, _), (_, out_height, out_width, _) = site.operands[0].info.shape, site.output.shape
    direct = height == width == 1 and not any(attrs.padding) and depth % VECTOR == 0
    if direct and attrs.strides == (1, 1):
        in_width = out_width = batch * in_height * in_width
        batch = in_height = out_height = 1
    pitch, taken = height * depth, _pixels_a_vector(depth, height * depth)
    columns = (out_width - 1) * attrs.strides[1] + width
    length = _whole(pitch * width)
    parameters: dict[str, ParameterValue] = {
        "batch": batch,
        "in_height": in_height,
        "in_width": in_width,
        "in_channels": depth,
        "out_height": out_height,
        "out_width": out_width,
        "out_channels": out_channels,
        "kernel_height": height,
        "stride_height": attrs.strides[0],
        "dilation_height": attrs.dilation[0],
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
        "input_zero_point": attrs.input_zero_point,
        "step": attrs.strides[1] * pitch,
        "length": length,
        "columns": 0 if direct else columns * pitch + VECTOR,
        "inside": max(0, min(in_width, columns - attrs.padding[1])),
        "taken": taken,
        "places": _places(depth, pitch, taken),
    }
    arguments = (Input(0), Constant("stream", window_stream(channels)), Output(0), Scratch())
    scratch = VECTOR if direct else columns * pitch + VECTOR
    return _kernel("conv2d", parameters | _finish(stage, attrs.output_zero_point), arguments, scratch)


def _pixels_a_vector(depth: int, pitch: int) -> int:
    """How many are moved at once; 0: less than one."""
    return min(VECTOR // depth, (LARGEST_PLACE - depth + 1) // pitch + 1) if depth <= VECTOR else 0


def _places(depth: int, pitch: int, taken: int) -> tuple[int, ...]:
    """Where each byte of a vector goes, from where the first one does."""
    used = [pixel * pitch + byte for pixel in range(taken) for byte in range(depth)]
    return tuple(used + [0] * (VECTOR - len(used)))


@offers(FullyConnected, REQUIRES)
def fully_connected(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    """Eight units over a row at a time; of many rows two at a time, as pixels of a convolution."""
    rows, depth = site.operands[0].info.shape
    weights = site.operands[1].value
    stage = output_stage_of(site, weights)
    if stage is None:
        return None
    channels = channels_of(weights, stage, site.attrs.output_zero_point)
    if rows > 1 and 4 <= len(weights) <= LARGEST_PAIR:
        return _many_rows(site, channels, stage)
    length = _whole(depth)
    parameters = {"rows": rows, "depth": depth, "units": len(weights), "length": length}
    arguments = (Input(0), Constant("stream", unit_stream(channels)), Output(0), Scratch())
    finish = _finish(stage, site.attrs.output_zero_point)
    return _kernel("fully_connected", parameters | finish, arguments, length if length > depth else VECTOR)


def _many_rows(site: Site[FullyConnectedAttrs], channels: Channels, stage: OutputStage) -> Kernel:
    rows, depth = site.operands[0].info.shape
    columns = 0 if depth % VECTOR == 0 else rows * depth + VECTOR
    taken = _pixels_a_vector(depth, depth)
    parameters: dict[str, ParameterValue] = {
        "batch": 1,
        "in_height": 1,
        "in_width": rows,
        "in_channels": depth,
        "out_height": 1,
        "out_width": rows,
        "out_channels": len(channels.bias),
        "kernel_height": 1,
        "stride_height": 1,
        "dilation_height": 1,
        "pad_top": 0,
        "pad_left": 0,
        "input_zero_point": site.attrs.input_zero_point,
        "step": depth,
        "length": _whole(depth),
        "columns": columns,
        "inside": rows,
        "taken": taken,
        "places": _places(depth, depth, taken),
    }
    arguments = (Input(0), Constant("stream", window_stream(channels)), Output(0), Scratch())
    finish = _finish(stage, site.attrs.output_zero_point)
    return _kernel("conv2d", parameters | finish, arguments, columns or VECTOR)
