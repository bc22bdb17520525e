"""Kernels for Arm's DSP extension: Cortex-M4, M7, M33."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from uaccel.cpu_kernels.as_convolution import as_convolution, of_group, rows_as_pixels
from uaccel.cpu_kernels.dsp_pack import alike, paired_stream
from uaccel.cpu_kernels.dsp_quads import quads
from uaccel.cpu_kernels.groups import MOST_GROUPS
from uaccel.cpu_kernels.output_stage import output_stage_of, padded_to
from uaccel.cpu_kernels.phases import by_phases, output_steps
from uaccel.cpu_kernels.registry import offers
from uaccel.ops.base import Site
from uaccel.ops.behind import site_behind
from uaccel.ops.conv2d import Conv2d, Conv2dAttrs
from uaccel.ops.depthwise_conv2d import DepthwiseConv2d
from uaccel.ops.fully_connected import FullyConnected, FullyConnectedAttrs
from uaccel.ops.kernel import (
    UNUSED,
    Argument,
    Constant,
    Input,
    Kernel,
    KernelCall,
    Output,
    ParameterValue,
    Scratch,
    sides,
)
from uaccel.ops.transpose_conv2d import TransposeConv2d, TransposeConv2dAttrs

REQUIRES: Final = ("dsp",)
FPU: Final = ("fpu",)
"""What layers need besides that round in single precision."""
WORD: Final = 4
"""Bytes that are read at once."""
FEW: Final = 2
"""Units that are better computed pair by pair."""


def dsp_kernel(
    name: str,
    parameters: dict[str, ParameterValue],
    arguments: tuple[Argument, ...],
    scratch: int = 0,
    inplace: tuple[int, ...] = (),
    single: bool = False,
    behind: Mapping[int, int] | None = None,
    form: str = "",
) -> Kernel:
    function = f"uaccel_{name}_dsp{form}_s8{'_float32' * single}"
    call = KernelCall(function, f"uaccel_{name}_dsp.h", f"uaccel_{name}_dsp", parameters, arguments)
    return Kernel("arm_dsp", (call,), scratch=scratch, inplace=inplace, requires=REQUIRES, behind=behind or {})


@offers(Conv2d, REQUIRES, FPU, rank=200)
def conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Windows of two pixels at a time, widened; four channels over them. A call for each group."""
    groups = site.attrs.groups
    if groups > MOST_GROUPS:
        return None
    kernels = [_conv2d_group(site, group) for group in range(groups)]
    whole = [kernel for kernel in kernels if kernel is not None]
    if len(whole) < groups:
        return None
    calls = tuple(call for kernel in whole for call in kernel.calls)
    behind = site_behind(site, 2, copied=True) if groups == 1 else {}
    return replace(whole[0], calls=calls, scratch=max(kernel.scratch for kernel in whole), behind=behind)


def _conv2d_group(site: Site[Conv2dAttrs], group: int) -> Kernel | None:
    pixel, (out_pixel, out_row) = site.operands[0].info.shape[3], output_steps(site)
    site = of_group(site, group) if site.attrs.groups > 1 else site
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    image, result = data.shape[:3], site.output.shape[1:3]
    out_skip = out_row - result[1] * out_pixel
    if weights.shape[1:3] == attrs.strides == (1, 1) and not any(attrs.padding) and out_skip == 0:
        image, result = (1, 1, math.prod(image)), (1, math.prod(image))
    out_channels, height, width, depth = weights.shape
    stage = output_stage_of(site, weights.reshape(out_channels, -1), rests=True)
    if stage is None:
        return None
    window = padded_to(weights.reshape(out_channels, -1), 1, WORD)
    packed = quads(window, stage)
    if packed is None:
        return None
    parameters: dict[str, ParameterValue] = {
        "batch": image[0],
        **sides("in", image[1:]),
        "in_channels": depth,
        **sides("out", result),
        "out_channels": out_channels,
        **sides("kernel", (height, width)),
        **sides("stride", attrs.strides),
        **sides("dilation", attrs.dilation),
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
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
        Input(0, group * depth),
        Constant("stream", packed.stream),
        Output(0, group * out_channels),
        Scratch(),
    )
    return dsp_kernel("conv2d", parameters | packed.finish, arguments, scratch, single=stage.single)


def _places(
    attrs: Conv2dAttrs, image: tuple[int, ...], weights: tuple[int, ...], pixel: int
) -> dict[str, ParameterValue]:
    """Which windows have no borders, and which of them end inside the tensor with whole words, whichever group's
    channels they begin at; and which are copied."""
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


@offers(DepthwiseConv2d, REQUIRES, FPU, rank=200)
def one_channel(site: Site[Conv2dAttrs]) -> Kernel | None:
    converted = as_convolution(site)
    return None if converted is None else conv2d(converted)


@offers(TransposeConv2d, REQUIRES, FPU, rank=200)
def transpose_conv2d(site: Site[TransposeConv2dAttrs]) -> Kernel | None:
    return by_phases(site, conv2d)


@offers(FullyConnected, REQUIRES, FPU, rank=200)
def fully_connected(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    """One row, eight units at a time; several are the pixels of a pointwise convolution."""
    rows, depth = site.operands[0].info.shape
    if site.output.shape[1] <= (2 * FEW if rows == 1 else FEW):
        return None
    if rows > 1:
        return conv2d(rows_as_pixels(site))
    weights = padded_to(site.operands[1].value, 1, WORD)
    stage = output_stage_of(site, weights, rests=True)
    if stage is None:
        return None
    shared = alike(stage)
    stream = paired_stream(weights, stage, 8, finished=not any(shared.values()))
    if stream is None:
        return None
    filled, form = weights.shape[1], "_alike" * any(shared.values())
    parameters = {"depth": depth, "filled": filled, "units": len(weights), **shared}
    given = Scratch() if filled > depth else UNUSED
    arguments = (Input(0), Constant("stream", stream), Output(0), given)
    scratch = filled if filled > depth else 0
    return dsp_kernel(
        "fully_connected", parameters | stage.parameters(), arguments, scratch, single=stage.single, form=form
    )


@offers(FullyConnected, REQUIRES, FPU, rank=210)
def one_pixel(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    """One row by the convolution's loop of two pixels: twice the products, and no code of its own."""
    rows, _ = site.operands[0].info.shape
    kernel = conv2d(rows_as_pixels(site)) if rows == 1 and site.output.shape[1] > FEW else None
    return None if kernel is None else replace(kernel, effort=2.0)
