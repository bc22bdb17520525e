"""Kernels for Arm Helium: Cortex-M55, M85."""

from __future__ import annotations

from typing import Any, Final

from uaccel.cpu_kernels.helium_call import REQUIRES, finish_parameters, helium_kernel
from uaccel.cpu_kernels.helium_pack import VECTOR, Channels, channels_of, unit_stream, window_stream
from uaccel.cpu_kernels.output_stage import OutputStage, output_stage_of
from uaccel.cpu_kernels.registry import offers
from uaccel.ops.base import Site
from uaccel.ops.conv2d import Conv2d, Conv2dAttrs
from uaccel.ops.fully_connected import FullyConnected, FullyConnectedAttrs
from uaccel.ops.kernel import Constant, Input, Kernel, Output, ParameterValue, Scratch, sides

LARGEST_PLACE: Final = 255
"""Where a byte of a vector can be put, from where the first one is."""
LARGEST_ROW: Final = 2048
"""Bytes of scratch for pixels that are no whole vectors."""
LARGEST_PAIR: Final = 65535 - 4
"""How far apart the results of two pixels can be."""


def _finish(stage: OutputStage, zero_point: int) -> dict[str, ParameterValue]:
    return finish_parameters(zero_point, stage.way, stage.clamp_min, stage.clamp_max)


def _whole(count: int) -> int:
    """Bytes of whole vectors."""
    return -(-count // VECTOR) * VECTOR


@offers(Conv2d, REQUIRES, float32=("fpu",))
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
    if height == width == 1 and not any(attrs.padding) and attrs.strides == (1, 1):
        return _pointwise(site, channels, stage)
    (batch, in_height, in_width, _), (_, out_height, out_width, _) = site.operands[0].info.shape, site.output.shape
    direct = height == width == 1 and not any(attrs.padding) and depth % VECTOR == 0
    pitch, taken = height * depth, _pixels_a_vector(depth, height * depth)
    columns = (out_width - 1) * attrs.strides[1] + width
    length = _whole(pitch * width)
    parameters: dict[str, ParameterValue] = {
        "batch": batch,
        **sides("in", (in_height, in_width)),
        "in_channels": depth,
        **sides("out", (out_height, out_width)),
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
    return helium_kernel("conv2d", parameters | _finish(stage, attrs.output_zero_point), arguments, scratch)


def _pixels_a_vector(depth: int, pitch: int) -> int:
    """How many are moved at once; 0: less than one."""
    return min(VECTOR // depth, (LARGEST_PLACE - depth + 1) // pitch + 1) if depth <= VECTOR else 0


def _places(depth: int, pitch: int, taken: int) -> tuple[int, ...]:
    """Where each byte of a vector goes, from where the first one does."""
    used = [pixel * pitch + byte for pixel in range(taken) for byte in range(depth)]
    return tuple(used + [0] * (VECTOR - len(used)))


@offers(FullyConnected, REQUIRES, float32=("fpu",))
def fully_connected(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    """Eight units over a row at a time; of many rows two at a time, as pixels of a convolution."""
    rows, depth = site.operands[0].info.shape
    weights = site.operands[1].value
    stage = output_stage_of(site, weights)
    if stage is None:
        return None
    channels = channels_of(weights, stage, site.attrs.output_zero_point)
    if rows > 1 and 4 <= len(weights) <= LARGEST_PAIR:
        return _pointwise(site, channels, stage)
    length = _whole(depth)
    parameters = {"rows": rows, "depth": depth, "units": len(weights), "length": length}
    arguments = (Input(0), Constant("stream", unit_stream(channels)), Output(0), Scratch())
    finish = _finish(stage, site.attrs.output_zero_point)
    return helium_kernel("fully_connected", parameters | finish, arguments, length if length > depth else VECTOR)


def _pointwise(site: Site[Any], channels: Channels, stage: OutputStage) -> Kernel:
    """Pixels, or rows, one by one: as an image that is no wider than scratch memory allows."""
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
        "step": depth,
        "length": _whole(depth),
        "columns": columns,
        "inside": width,
        "taken": taken,
        "places": _places(depth, depth, taken),
    }
    arguments = (Input(0), Constant("stream", window_stream(channels)), Output(0), Scratch())
    finish = _finish(stage, site.attrs.output_zero_point)
    return helium_kernel("conv2d", parameters | finish, arguments, columns or VECTOR)


def _divisor(count: int, limit: int) -> int:
    """The largest that is within the limit; the largest even one where that is not much smaller."""
    divisors = [d for d in range(1, min(count, limit) + 1) if count % d == 0]
    even = [d for d in divisors if d % 2 == 0]
    return even[-1] if even and 4 * even[-1] > divisors[-1] else divisors[-1]
