"""What kernels of int16 activations share: sums of 32 bits, and the output stage for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.phases import input_step, is_dense, output_steps
from uaccel.model import Array
from uaccel.ops.base import Site
from uaccel.ops.conv2d import Conv2dAttrs
from uaccel.ops.fully_connected import FullyConnectedAttrs
from uaccel.ops.kernel import ParameterValue, same, sides
from uaccel.ops.rounding import TFLITE, rounding_of

SUM_LIMIT: Final = 1 << 31
LEAST_TOTAL: Final = 17
"""Bits to shift by: below it a multiplier of 15 bits does not fit, raised so that 33 are shifted by."""
LEAST_WORK: Final = 24

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WideStage:
    """Of each channel ``((sum * multiplier >> 32) + half) >> shift``, where half is that of ``1 << shift``."""

    bias: Ints
    multiplier: Ints
    shift: Ints

    def __getitem__(self, chosen: Any) -> WideStage:
        return WideStage(self.bias[chosen], self.multiplier[chosen], self.shift[chosen])

    def filled(self, channels: int) -> WideStage:
        """With channels of zeros behind the last one, ``channels`` in all."""
        more = (0, channels - len(self.bias))
        bias, multiplier = np.pad(self.bias, more), np.pad(self.multiplier, more)
        return replace(self, bias=bias, multiplier=multiplier, shift=np.pad(self.shift, more, constant_values=1))


def wide_stage_of(site: Site[Any], weights: Array) -> WideStage | None:
    """Of an operator with weights, one row a channel, and biases of 64 bits; None where it would not be exact."""
    attrs, bias = site.attrs, site.operands[2].value
    zero_points = (attrs.input_zero_point, attrs.output_zero_point)
    kinds = site.output.dtype == "int16" and weights.dtype == np.int8 and bias.dtype == np.int64
    if not kinds or any(zero_points) or rounding_of(attrs) != TFLITE:
        return None
    reach = 32768 * np.abs(weights.astype(np.int64)).sum(axis=1).astype(object) + np.abs(bias.astype(object))
    multiplier, shift = (np.broadcast_to(operand.value, len(weights)) for operand in site.operands[3:5])
    given = multiplier.astype(np.int64)
    reduced = np.where(given < 0x7FFF0000, (given + (1 << 15)) >> 16, 0x7FFF)
    total = np.where(reduced == 0, 33, 15 - shift.astype(np.int64))
    if max(reach) >= SUM_LIMIT or given.min() < 0 or total.min() < LEAST_TOTAL:
        return None
    return WideStage(bias, reduced << np.maximum(33 - total, 0), np.maximum(total - 32, 1))


@dataclass(frozen=True)
class Pixels:
    """A convolution's shapes and steps; a fully connected layer's rows are the pixels of a pointwise one."""

    given: tuple[int, ...]
    wanted: tuple[int, ...]
    kernel: tuple[int, ...] = (1, 1)
    strides: tuple[int, ...] = (1, 1)
    dilation: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    steps: tuple[int, int] | None = None
    """Elements from pixel to pixel of the result and from row to row, where they lie apart."""
    in_pixel: int = 0
    """The same of the input, where its pixels have more channels."""

    def parameters(self) -> dict[str, ParameterValue]:
        """The fields with which a convolution's structure begins."""
        in_pixel = self.in_pixel or self.given[3]
        width, depth = self.kernel[1], self.given[3]
        beside = width == 1 or (in_pixel == depth and self.dilation[1] == 1)
        reach = width * depth + width * depth % 2 + in_pixel - depth
        out_pixel, out_row = self.steps or (self.wanted[3], self.wanted[2] * self.wanted[3])
        return {
            "batch": self.given[0],
            **sides("in", self.given[1:3]),
            "in_channels": self.given[3],
            **sides("out", self.wanted[1:3]),
            "out_channels": self.wanted[3],
            **sides("kernel", self.kernel),
            **sides("stride", self.strides),
            **sides("dilation", self.dilation),
            "pad_top": self.padding[0],
            "pad_left": self.padding[1],
            "out_pixel": out_pixel,
            "out_row": out_row,
            "in_pixel": in_pixel,
            "runs": reach if beside else 0,
        }


def convolution_of(site: Site[Conv2dAttrs]) -> Pixels:
    attrs, kernel = site.attrs, site.operands[1].info.shape[1:3]
    image, windows = site.operands[0].info.shape, (kernel, attrs.strides, attrs.dilation, attrs.padding[:2])
    return Pixels(image, site.output.shape, *windows, output_steps(site), input_step(site))


def rows_of(site: Site[FullyConnectedAttrs]) -> Pixels:
    return Pixels((1, 1, *site.operands[0].info.shape), (1, 1, *site.output.shape))


def is_one_row(site: Site[Conv2dAttrs]) -> bool:
    """Whether the only window is the whole input."""
    whole = site.operands[1].info.shape[1:] == site.operands[0].info.shape[1:] and site.operands[0].info.shape[0] == 1
    return whole and not any(site.attrs.padding) and is_dense(site)


def is_worth_it(weights: Array) -> bool:
    """Whether a pixel has so much to do that two of them pay: an output takes about as long as six products."""
    return bool(weights.size + 6 * len(weights) >= LEAST_WORK)


def is_depthwise(site: Site[Conv2dAttrs]) -> bool:
    """Whether it is no convolution of one channel."""
    return site.operands[0].info.shape[3] > 1 or site.output.shape[3] == 1


def depthwise_parameters(site: Site[Conv2dAttrs]) -> dict[str, ParameterValue]:
    """The fields of ``struct uaccel_depthwise16``."""
    attrs, data = site.attrs, site.operands[0].info
    return {
        "batch": data.shape[0],
        **sides("in", data.shape[1:3]),
        "in_channels": data.shape[3],
        "channels": site.output.shape[3],
        "multiplier": site.output.shape[3] // data.shape[3],
        **sides("out", site.output.shape[1:3]),
        **sides("kernel", site.operands[1].info.shape[:2]),
        **sides("stride", attrs.strides),
        **sides("dilation", attrs.dilation),
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
        **same(attrs, "clamp_min", "clamp_max"),
    }
