"""Layers that are convolutions by another name, so that one family of kernels serves them all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops.base import Operand, Site
from uaccel.ops.conv2d import Conv2dAttrs
from uaccel.ops.fully_connected import FullyConnectedAttrs


def as_convolution(site: Site[Conv2dAttrs]) -> Site[Conv2dAttrs] | None:
    """A depthwise convolution of one channel to several: every channel of the result reads every one of the input."""
    weights = site.operands[1].value
    if site.operands[0].info.shape[3] != 1:
        return None
    kernels = np.ascontiguousarray(weights.transpose(2, 0, 1)[..., np.newaxis])
    operand = Operand(TensorInfo(kernels.shape, weights.dtype.name), kernels)
    return replace(
        site,
        attrs=replace(site.attrs, groups=1),
        operands=(site.operands[0], operand, *site.operands[2:]),
    )


def column_as_row(site: Site[Conv2dAttrs]) -> Site[Conv2dAttrs]:
    """A convolution of an image of one column as that of one row; any other as it is."""
    (data, kernels, *constants), attrs, output = site.operands, site.attrs, site.output
    top, left, bottom, right = attrs.padding
    if not data.info.shape[2] == kernels.info.shape[2] == output.shape[2] == 1 or left or right:
        return site
    turned = [_turned(shape) for shape in (data.info.shape, kernels.info.shape, output.shape)]
    attrs = replace(attrs, strides=attrs.strides[::-1], padding=(0, top, 0, bottom), dilation=attrs.dilation[::-1])
    kernels = Operand(replace(kernels.info, shape=turned[1]), kernels.value.reshape(turned[1]))
    return Site(
        attrs,
        (replace(data, info=replace(data.info, shape=turned[0])), kernels, *constants),
        (replace(output, shape=turned[2]),),
    )


def _turned(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[0], shape[2], shape[1], shape[3]


def rows_as_pixels(site: Site[FullyConnectedAttrs]) -> Site[Conv2dAttrs]:
    """A fully connected layer as a pointwise convolution of an image of one row."""
    (rows, depth), weights, attrs = site.operands[0].info.shape, site.operands[1], site.attrs
    kernels = weights.value[:, np.newaxis, np.newaxis]
    data = replace(site.operands[0].info, shape=(1, 1, rows, depth))
    clamps = (attrs.input_zero_point, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, attrs.rounding)
    return Site(
        Conv2dAttrs((1, 1), (0, 0, 0, 0), (1, 1), 1, *clamps),
        (Operand(data), Operand(replace(weights.info, shape=kernels.shape), kernels), *site.operands[2:]),
        (replace(site.output, shape=(1, 1, *site.output.shape)),),
    )


def of_group(site: Site[Conv2dAttrs], group: int) -> Site[Conv2dAttrs]:
    """One group of a convolution; its input and output keep the channels of all."""
    into = site.operands[1].info.shape[3]
    count = site.operands[1].info.shape[0] // site.attrs.groups
    own = slice(group * count, (group + 1) * count)
    data, *constants = site.operands
    info = replace(data.info, shape=(*data.info.shape[:3], into))
    output = replace(site.output, shape=(*site.output.shape[:3], count))
    return Site(
        replace(site.attrs, groups=1),
        (Operand(info), *(_rows(constant, own) for constant in constants)),
        (output,),
    )


def _rows(operand: Operand, rows: slice) -> Operand:
    """Of a constant with a row a channel, or one for all."""
    if operand.info.shape[:1] == (1,):
        return operand
    value = np.ascontiguousarray(operand.value[rows])
    return Operand(replace(operand.info, shape=value.shape), value)
