"""Convolution with Arm's DSP extension whose windows overlap: columns are widened once for several of them."""

from __future__ import annotations

from typing import Final

from uaccel.cpu_kernels.dsp import FPU, REQUIRES, WORD, dsp_kernel
from uaccel.cpu_kernels.dsp_quads import QUAD, quads
from uaccel.cpu_kernels.output_stage import output_stage_of
from uaccel.cpu_kernels.registry import offers
from uaccel.ops.base import Site
from uaccel.ops.behind import pairs_of_rows_behind
from uaccel.ops.conv2d import Conv2d, Conv2dAttrs
from uaccel.ops.kernel import Constant, Input, Kernel, Output, ParameterValue, Scratch, sides

CHUNK: Final = 8
"""Pixels of a row whose columns are widened together."""
LEAST_ROWS: Final = 4
"""Of the output, for two at a time."""


@offers(Conv2d, REQUIRES, FPU, rank=210)
def columns(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Two pixels at a time, one below the other; four channels over them."""
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    (out_channels, height, width, depth), (rows, pixels) = weights.shape, site.output.shape[1:3]
    overlapping = width > attrs.strides[1] and attrs.dilation == (1, 1) and attrs.groups == 1
    if not overlapping or depth % WORD or out_channels % QUAD or rows < LEAST_ROWS or pixels < 2:
        return None
    stage = output_stage_of(site, weights.reshape(out_channels, -1))
    by_columns = weights.transpose(0, 2, 1, 3).reshape(out_channels, -1)
    packed = None if stage is None else quads(by_columns, stage)
    if stage is None or packed is None:
        return None
    chunk = min(pixels, CHUNK)
    parameters: dict[str, ParameterValue] = {
        "batch": data.shape[0],
        **sides("in", data.shape[1:3]),
        "in_channels": depth,
        **sides("out", (rows, pixels)),
        "out_channels": out_channels,
        **sides("kernel", (height, width)),
        **sides("stride", attrs.strides),
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
        "input_zero_point": attrs.input_zero_point,
        "chunk": chunk,
        "quad_words": packed.stream.shape[1],
    }
    scratch = depth + ((chunk - 1) * attrs.strides[1] + width) * height * depth * 4
    arguments = (Input(0), Constant("stream", packed.stream), Output(0), Scratch())
    behind = {0: pairs_of_rows_behind(data, site.output, attrs.strides, attrs.padding, chunk)}
    given = parameters | packed.finish
    return dsp_kernel("conv2d_columns", given, arguments, scratch, single=stage.single, behind=behind)
