"""A transposed convolution as ordinary ones: of each phase of its strides, one whose results lie apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import numpy as np

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
    """A convolution whose results lie apart: so many elements from the one to the next, and from row to row."""

    pixel: int = 0
    row: int = 0


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


@dataclass(frozen=True)
class Taps:
    """What of a window reaches the output positions ``first``, ``first + stride`` and so on, along one axis.

    Position number i reads the input from ``i - before + behind`` on, and the window's entries ``entries``, last ones
    first.
    """

    first: int
    count: int
    entries: slice
    before: int
    behind: int = 0


def taps_of(first: int, size: int, kernel: int, stride: int, padding: int) -> Taps:
    count = -(-(size - first) // stride)
    offset, entry = divmod(first + padding, stride)
    reached = -(-(kernel - entry) // stride)
    if reached <= 0:
        return Taps(first, count, slice(0, 0), 0)
    before = reached - 1 - offset
    return Taps(first, count, slice(entry, kernel, stride), max(before, 0), max(-before, 0))


@dataclass(frozen=True)
class Phase:
    """The convolution of the first image, and how many elements of the input and of the output lie before its own."""

    site: Apart
    source: int
    target: int


def phases(site: Site[TransposeConv2dAttrs]) -> list[Phase] | None:
    """None where the input would have to begin behind the first column, or behind the last row."""
    attrs, kernel = site.attrs, site.operands[1].info.shape[1:3]
    height, width, depth = site.operands[0].info.shape[1:]
    by_axis = [
        [taps_of(first, size, extent, stride, before) for first in range(min(stride, size))]
        for size, extent, stride, before in zip(attrs.size, kernel, attrs.strides, attrs.padding, strict=True)
    ]
    if any(taps.behind for taps in by_axis[1]) or any(taps.behind >= height for taps in by_axis[0]):
        return None
    pixel = site.output.shape[3]
    row = attrs.size[1] * pixel
    return [
        Phase(_phase(site, rows, columns), rows.behind * width * depth, rows.first * row + columns.first * pixel)
        for rows, columns in product(*by_axis)
    ]


def _phase(site: Site[TransposeConv2dAttrs], rows: Taps, columns: Taps) -> Apart:
    attrs, (data, weights, *others), channels = site.attrs, site.operands, site.output.shape[3]
    extents = (data.info.shape[1] - rows.behind, data.info.shape[2])
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
        for taps, extent, given in zip((rows, columns), window.shape[1:3], extents, strict=True)
    )
    padding = (rows.before, columns.before, *after)
    clamps = (attrs.input_zero_point, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, attrs.rounding)
    return Apart(
        Conv2dAttrs((1, 1), padding, (1, 1), 1, *clamps),
        (
            Operand(replace(data.info, shape=(1, *extents, data.info.shape[3]))),
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
    kernels = [(phase, make(phase.site)) for phase in found]
    whole = [(phase, kernel) for phase, kernel in kernels if kernel is not None]
    if len(whole) < len(kernels):
        return None
    item, data = site.output.itemsize, site.operands[0].info
    image, result = data.elements // batch * item, int(np.prod(shape)) * item
    calls = [
        _moved(call, number * image + phase.source * item, number * result + phase.target * item)
        for number in range(batch)
        for phase, kernel in whole
        for call in kernel.calls
    ]
    one, scratch = whole[0][1], max(kernel.scratch for _, kernel in whole)
    # Each phase reads the whole image: nothing may lie over it.
    return replace(one, calls=tuple(calls), scratch=scratch, inplace=(), behind={}, leaner=tuple)


def _moved(call: KernelCall, source: int, target: int) -> KernelCall:
    def given(argument: Any) -> Any:
        if isinstance(argument, (Input, Output)):
            return replace(argument, offset=argument.offset + (source if isinstance(argument, Input) else target))
        return argument

    arguments: Sequence[Argument | int | float] = [given(argument) for argument in call.arguments]
    return replace(call, arguments=tuple(arguments))
