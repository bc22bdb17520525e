"""A transposed convolution as ordinary ones: of each phase of its strides, one whose results lie apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import numpy as np

from uaccel.cpu_kernels.output_stage import geometry
from uaccel.model import TensorInfo
from uaccel.ops.base import Operand, Site
from uaccel.ops.conv2d import Conv2dAttrs
from uaccel.ops.kernel import Argument, Input, Kernel, KernelCall, Output
from uaccel.ops.transpose_conv2d import TransposeConv2dAttrs

MOST_CALLS: Final = 64
"""A phase is a call with constants of its own."""

Maker = Callable[[Site[Conv2dAttrs]], "Kernel | None"]


@dataclass(frozen=True)
class Apart(Site[Conv2dAttrs]):
    """A convolution whose results lie apart: so many elements from the one to the next, and from row to row.

    ``given``: the same of the input's pixels, where they have more channels than it reads.
    """

    pixel: int = 0
    row: int = 0
    given: int = 0


def is_dense(site: Site[Any]) -> bool:
    return not isinstance(site, Apart)


def is_pointwise(site: Site[Conv2dAttrs]) -> bool:
    """Whether the input is one row for each pixel, and so is the output."""
    attrs, (height, width) = site.attrs, site.operands[1].info.shape[1:3]
    return height == width == 1 and attrs.strides == (1, 1) and not any(attrs.padding) and is_dense(site)


def output_steps(site: Site[Any]) -> tuple[int, int]:
    """Elements from pixel to pixel of the result, and from row to row."""
    if isinstance(site, Apart):
        return site.pixel, site.row
    width, channels = site.output.shape[2:]
    return channels, width * channels


def input_step(site: Site[Any]) -> int:
    """Elements from pixel to pixel of the input."""
    return (site.given if isinstance(site, Apart) else 0) or site.operands[0].info.shape[3]


def windows_of(site: Site[Conv2dAttrs]) -> dict[str, int]:
    """The fields of ``struct uaccel_conv2d_blocked`` but for the output stage's."""
    height, width, depth = site.operands[1].info.shape[1:]
    out_pixel, out_row = output_steps(site)
    in_pixel, item = input_step(site), site.operands[0].info.itemsize
    return geometry(site, (height, width)) | {
        "in_channels": depth * item,
        "in_pixel": in_pixel * item,
        "out_pixel": out_pixel,
        "out_row": out_row,
        "runs": int(width == 1 or (site.attrs.dilation[1] == 1 and in_pixel == depth)),
    }


@dataclass(frozen=True)
class Taps:
    """What of a window reaches the output positions ``first``, ``first + stride`` and so on, along one axis.

    Position number i reads the input from ``i - before`` on, and the window's entries ``entries``, last ones first.
    """

    first: int
    count: int
    entries: slice
    before: int


def taps_of(first: int, size: int, kernel: int, stride: int, padding: int) -> Taps | None:
    """None where the input would have to begin behind its first element."""
    count = -(-(size - first) // stride)
    offset, entry = divmod(first + padding, stride)
    reached = -(-(kernel - entry) // stride)
    if reached <= 0:
        return Taps(first, count, slice(0, 0), 0)
    before = reached - 1 - offset
    return Taps(first, count, slice(entry, kernel, stride), before) if before >= 0 else None


def phases(site: Site[TransposeConv2dAttrs]) -> list[tuple[int, Apart]] | None:
    """Of each phase where its first result lies, and the convolution of the first image."""
    attrs, kernel = site.attrs, site.operands[1].info.shape[1:3]
    by_axis = [
        [taps_of(first, size, extent, stride, before) for first in range(min(stride, size))]
        for size, extent, stride, before in zip(attrs.size, kernel, attrs.strides, attrs.padding, strict=True)
    ]
    found = [(rows, columns) for rows, columns in product(*by_axis) if rows is not None and columns is not None]
    if len(found) < len(by_axis[0]) * len(by_axis[1]):
        return None
    pixel = site.output.shape[3]
    row = attrs.size[1] * pixel
    return [(rows.first * row + columns.first * pixel, _phase(site, rows, columns)) for rows, columns in found]


def _phase(site: Site[TransposeConv2dAttrs], rows: Taps, columns: Taps) -> Apart:
    attrs, (data, weights, *others), channels = site.attrs, site.operands, site.output.shape[3]
    window = weights.value[:, rows.entries, columns.entries][:, ::-1, ::-1]
    if window.size == 0:
        window, rows, columns = (
            np.zeros_like(weights.value[:, :1, :1]),
            replace(rows, before=0),
            replace(columns, before=0),
        )
    window = np.ascontiguousarray(window)
    after = (
        max(0, taps.count - taps.before + extent - 1 - given)
        for taps, extent, given in zip((rows, columns), window.shape[1:3], data.info.shape[1:3], strict=True)
    )
    padding = (rows.before, columns.before, *after)
    clamps = (attrs.input_zero_point, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, attrs.rounding)
    return Apart(
        Conv2dAttrs((1, 1), padding, (1, 1), 1, *clamps),
        (
            Operand(replace(data.info, shape=(1, *data.info.shape[1:]))),
            Operand(replace(weights.info, shape=window.shape), window),
            *others,
        ),
        (TensorInfo((1, rows.count, columns.count, channels), site.output.dtype),),
        attrs.strides[1] * channels,
        attrs.strides[0] * attrs.size[1] * channels,
    )


def by_phases(site: Site[TransposeConv2dAttrs], make: Maker) -> Kernel | None:
    """All of them for all images, each by the convolution's kernel."""
    found, (batch, *shape) = phases(site), site.output.shape
    if found is None or len(found) * batch > MOST_CALLS:
        return None
    kernels = [(first, make(phase)) for first, phase in found]
    whole = [(first, kernel) for first, kernel in kernels if kernel is not None]
    if len(whole) < len(kernels):
        return None
    item, data = site.output.itemsize, site.operands[0].info
    image, result = data.elements // batch * item, int(np.prod(shape)) * item
    calls = [
        moved(call, number * image, number * result + first * item)
        for number in range(batch)
        for first, kernel in whole
        for call in kernel.calls
    ]
    one, scratch = whole[0][1], max(kernel.scratch for _, kernel in whole)
    # Each phase reads the whole image: nothing may lie over it.
    return replace(one, calls=tuple(calls), scratch=scratch, inplace=(), behind={}, leaner=tuple)


def moved(call: KernelCall, source: int, target: int) -> KernelCall:
    """With so many bytes before its input and before its output."""

    def given(argument: Any) -> Any:
        if isinstance(argument, (Input, Output)):
            return replace(argument, offset=argument.offset + (source if isinstance(argument, Input) else target))
        return argument

    arguments: Sequence[Argument | int | float] = [given(argument) for argument in call.arguments]
    return replace(call, arguments=tuple(arguments))
