"""Convolution of floats, NHWC, weights OHWI, with groups, dilation, padding, bias, another tensor and activation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops.base import Site, register, require, window_count
from uaccel.ops.behind import rows_behind, site_behind
from uaccel.ops.float_sums import (
    BLOCK,
    SINGLE,
    FloatSumAttrs,
    FloatSums,
    are_halves,
    check_sums,
    finish_fields,
    finished,
    in_blocks,
    is_kernels,
    stored,
    sum_arguments,
)
from uaccel.ops.kernel import Kernel, KernelCall, ParameterValue, Scratch, sides
from uaccel.tvm_api import te, tirx

TOGETHER = 4
"""Pixels that a kernel computes at a time; of a depthwise convolution two."""


@dataclass(frozen=True)
class Conv2dFloatAttrs(FloatSumAttrs):
    """``padding`` is top, left, bottom, right."""

    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


@register
class Conv2dFloat(FloatSums):
    """Adds up products by rows of the window, its columns, and channels."""

    name = "conv2d_float"
    attributes = Conv2dFloatAttrs

    def infer(self, inputs: Sequence[TensorInfo], attrs: Any) -> TensorInfo:
        data, weights = inputs[:2]
        require(len(data.shape) == len(weights.shape) == 4, f"{self.name}: {data} and {weights}, wanted rank 4")
        channels, *window, depth = weights.shape
        fits = data.shape[3] == depth * attrs.groups and channels % attrs.groups == 0
        require(fits, f"{self.name}: input {data} does not fit weights {weights} in {attrs.groups} groups")
        top, left, bottom, right = attrs.padding
        height = window_count(data.shape[1], window[0], attrs.strides[0], attrs.dilation[0], top, bottom)
        width = window_count(data.shape[2], window[1], attrs.strides[1], attrs.dilation[1], left, right)
        require(height > 0 and width > 0, f"{self.name}: the window {window} is larger than the padded input {data}")
        output = TensorInfo((data.shape[0], height, width, channels), data.dtype)
        return check_sums(inputs, attrs, output, self.name)

    def meaning(self, inputs: Sequence[Any], attrs: Any) -> Any:
        data, weights, bias, *more = inputs
        channels, height, width, depth = (int(extent) for extent in weights.shape)
        of_group = channels // attrs.groups
        around = _padded(data, attrs.padding)
        info = [TensorInfo(tuple(int(extent) for extent in each.shape), each.dtype) for each in inputs]
        taps = [
            te.reduce_axis((0, extent), name=name) for extent, name in ((height, "ky"), (width, "kx"), (depth, "k"))
        ]
        ky, kx, k = taps

        def sums(n: Any, y: Any, x: Any, c: Any) -> Any:
            row = y * attrs.strides[0] + ky * attrs.dilation[0]
            column = x * attrs.strides[1] + kx * attrs.dilation[1]
            value = around(n, row, column, tirx.floordiv(c, of_group) * depth + k)
            return te.sum(value * weights(c, ky, kx, k), axis=taps)

        computed = te.compute(self.infer(info, attrs).shape, sums, name="sums")
        return finished(computed, bias, more, attrs, self.name)

    def kernels(self, site: Site[Any]) -> Sequence[Kernel]:
        if not is_kernels(site):
            return ()
        return [depthwise_kernel(site) if is_depthwise(site) else conv2d_kernel(site)]


def is_depthwise(site: Site[Any]) -> bool:
    return bool(site.operands[1].info.shape[3] == 1 and site.attrs.groups > 1)


def _padded(data: Any, padding: Sequence[int]) -> Any:
    if not any(padding):
        return data
    batch, height, width, channels = (int(extent) for extent in data.shape)
    top, left, bottom, right = padding

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        inside = tirx.all(y >= top, y < height + top, x >= left, x < width + left)
        return tirx.if_then_else(inside, data(n, y - top, x - left, c), tirx.const(0, data.dtype))

    return te.compute((batch, height + top + bottom, width + left + right, channels), element, name="padded")


def conv2d_kernel(site: Site[Any], *, wide: bool = False) -> Kernel:
    """Four pixels at a time. Their windows are copied side by side unless they are so in the input. ``wide``: weights
    are stored as floats, whatever they are."""
    attrs, data, output = site.attrs, site.operands[0].info, site.output
    channels, height, width, channels_in = site.operands[1].info.shape
    depth = height * width * channels_in
    pointwise = (height, width, attrs.groups) == (1, 1, 1) and attrs.strides == (1, 1) and not any(attrs.padding)
    rows = math.prod(data.shape[:3])
    shapes = ((1, 1, rows), (1, rows)) if pointwise else (data.shape[:3], output.shape[1:3])
    groups = site.operands[1].value.reshape(attrs.groups, -1, depth)
    weights = np.concatenate([in_blocks(group) for group in groups])
    copied = not pointwise and attrs.groups == 1
    behind = site_behind(site, TOGETHER, copied=copied, alone=True)
    if pointwise:
        behind = {0: rows_behind(rows, data, output, TOGETHER)}
    form, weights = stored(weights, wide=wide)
    return _kernel(
        "conv2d_float",
        site,
        weights,
        {
            "batch": shapes[0][0],
            **sides("in", shapes[0][1:]),
            "in_channels": data.shape[3],
            **sides("out", shapes[1]),
            "out_channels": channels,
            **_window_fields(attrs, (height, width)),
            "groups": attrs.groups,
            "depth": depth,
            "copies": int(not pointwise),
        },
        behind,
        scratch=0 if pointwise else TOGETHER * depth * data.itemsize,
        effort=len(weights) * BLOCK / channels,
        form=form,
    )


def wide_kernel(site: Site[Any]) -> Kernel | None:
    """With weights that are stored as floats though half precision holds them; None of other weights, and depthwise."""
    narrow = is_kernels(site) and not is_depthwise(site) and are_halves(site.operands[1].value)
    return conv2d_kernel(site, wide=True) if narrow else None


def _kernel(
    name: str,
    site: Site[Any],
    weights: Any,
    fields: dict[str, ParameterValue],
    behind: dict[int, int],
    *,
    scratch: int = -1,
    effort: float = 1.0,
    form: str = SINGLE,
) -> Kernel:
    """``form``: how weights are stored. ``scratch``: bytes, of a kernel that takes some where it needs them."""
    given, inplace = sum_arguments(site, weights)
    parameters = {**fields, "adds": int(len(site.operands) > 3), **finish_fields(site.attrs)}
    arguments = given if scratch < 0 else (*given, Scratch() if scratch else given[-1])
    header = f"uaccel_{name}.h" if form == SINGLE else f"uaccel_{name}_{form}.h"
    call = KernelCall(f"uaccel_{name}_{form}", header, f"uaccel_{name}", parameters, arguments)
    return Kernel("portable", (call,), scratch=max(0, scratch), inplace=inplace, behind=behind, effort=effort)


def _window_fields(attrs: Any, kernel: tuple[int, int]) -> dict[str, ParameterValue]:
    return {
        **sides("kernel", kernel),
        **sides("stride", attrs.strides),
        **sides("dilation", attrs.dilation),
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
    }


def depthwise_kernel(site: Site[Any]) -> Kernel:
    """Two pixels at a time, four channels of each."""
    attrs, data, output = site.attrs, site.operands[0].info, site.output
    channels, height, width, _ = site.operands[1].info.shape
    rows, multiplier = site.operands[1].value.reshape(channels, -1), channels // data.shape[3]
    fours = channels // BLOCK * BLOCK if multiplier == 1 else 0
    weights = np.concatenate([in_blocks(rows[:fours]).reshape(-1), rows[fours:].reshape(-1)])
    fields: dict[str, ParameterValue] = {
        "batch": data.shape[0],
        **sides("in", data.shape[1:3]),
        "in_channels": data.shape[3],
        **sides("out", output.shape[1:3]),
        "multiplier": multiplier,
        **_window_fields(attrs, (height, width)),
    }
    return _kernel("depthwise_conv2d_float", site, weights, fields, site_behind(site, 2))
