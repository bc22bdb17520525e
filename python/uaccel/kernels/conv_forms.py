"""Rewrites layers as ordinary convolutions, so that one family of kernels serves them all; and the int16 output stage.

One channel to several, fully connected rows, transposed convolutions (by the phases of their strides) and groups all
become convolutions here, or several of them. The last section computes what kernels of int16 activations share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels.output_stage import geometry, pad_axis
from uaccel.kernels.registry import DeclinedError, OtherTypeError, check_type, offers
from uaccel.model import Array, TensorInfo
from uaccel.ops.conv import Conv2dAttrs, DepthwiseConv2d, TransposeConv2d, TransposeConv2dAttrs
from uaccel.ops.exact import TFLITE, rounding_of
from uaccel.ops.kernel import Argument, Input, Kernel, KernelCall, Output, ParameterValue, same
from uaccel.ops.matmul import FullyConnectedAttrs
from uaccel.ops.operator import Operand, Site
from uaccel.ops.windows import SlidingWindow, geometry_fields, geometry_of, window_of

# Layers that are single convolutions by another name.


def as_convolution(site: Site[Conv2dAttrs]) -> Site[Conv2dAttrs] | None:
    """Rewrites a depthwise convolution of one input channel, which all output channels read; None of several."""
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
    """Rewrites a convolution of an image of one column as that of one row; any other stays as it is."""
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
    """Rewrites a fully connected layer as a pointwise convolution of an image of one row."""
    (rows, depth), weights, attrs = site.operands[0].info.shape, site.operands[1], site.attrs
    kernels = weights.value[:, np.newaxis, np.newaxis]
    data = replace(site.operands[0].info, shape=(1, 1, rows, depth))
    clamps = (attrs.input_zero_point, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, attrs.rounding)
    return Site(
        Conv2dAttrs((1, 1), (0, 0, 0, 0), (1, 1), 1, *clamps),
        (Operand(data), Operand(replace(weights.info, shape=kernels.shape), kernels), *site.operands[2:]),
        (replace(site.output, shape=(1, 1, *site.output.shape)),),
    )


def of_group(site: Site[Conv2dAttrs], group: int, count: int = 1) -> Site[Conv2dAttrs]:
    """Returns one group of a convolution, as the convolution of its own channels alone; or several side by side, where
    the weights of other groups' channels are zeros."""
    into = site.operands[1].info.shape[3]
    each = site.operands[1].info.shape[0] // site.attrs.groups
    own = slice(group * each, (group + count) * each)
    data, weights, *constants = site.operands
    info = replace(data.info, shape=(*data.info.shape[:3], count * into))
    output = replace(site.output, shape=(*site.output.shape[:3], count * each))
    return Site(
        replace(site.attrs, groups=1),
        (Operand(info), _side_by_side(_rows(weights, own), count), *(_rows(constant, own) for constant in constants)),
        (output,),
    )


def of_channel(site: Site[Any], channel: int) -> Site[Any]:
    """Returns a layer with weights, one row an output channel, as the layer of one channel alone."""
    data, *constants = site.operands
    own = (_rows(constant, slice(channel, channel + 1)) for constant in constants)
    return replace(site, operands=(data, *own), outputs=(replace(site.output, shape=(*site.output.shape[:-1], 1)),))


def without(site: Site[Any], channels: Sequence[int]) -> Site[Any]:
    """Returns a layer whose weights of some output channels are zeros: others compute these, and overwrite them."""
    data, weights, *constants = site.operands
    value = weights.value.copy()
    value[list(channels)] = 0
    return replace(site, operands=(data, replace(weights, constant=value), *constants))


def _side_by_side(weights: Operand, count: int) -> Operand:
    if count == 1:
        return weights
    given = weights.value.reshape(count, -1, *weights.info.shape[1:])
    wide = np.zeros((*given.shape[:-1], count, given.shape[-1]), given.dtype)
    for number in range(count):
        wide[number, ..., number, :] = given[number]
    value = wide.reshape(*weights.info.shape[:3], -1)
    return Operand(replace(weights.info, shape=value.shape), value)


def _rows(operand: Operand, rows: slice) -> Operand:
    """Takes rows of a constant that has one a channel; one that serves all channels stays as it is."""
    if operand.info.shape[:1] == (1,):
        return operand
    value = np.ascontiguousarray(operand.value[rows])
    return Operand(replace(operand.info, shape=value.shape), value)


# A transposed convolution as ordinary ones of stride 1, whose results lie apart: one for each phase of its strides.
#
# Along an axis, output o is the sum over all inputs i and window entries k with i * stride + k = o + padding. A phase
# has the outputs first + stride * n. Let first + padding = offset * stride + entry: then k = entry + stride * j and
# i = n + offset - j for j from 0. That is an ordinary convolution by every stride-th entry, in reverse. It takes
# ``reached`` = ceil((kernel - entry) / stride) entries, and the window at n begins at input n - (reached - 1 - offset).
# A phase that no entry reaches has its biases alone: one weight of zero stands in.

MOST_CALLS: Final = 64  # Each phase is a call with constants of its own, which take flash.

Maker = Callable[[Site[Conv2dAttrs]], "Kernel | None"]


@dataclass(frozen=True)
class StridedConv(Site[Conv2dAttrs]):
    """Describes a convolution whose results lie apart: ``pixel`` elements from one to the next, ``row`` between rows.

    ``given``: elements from pixel to pixel of the input, where they have more channels than the convolution reads.
    """

    pixel: int = 0
    row: int = 0
    given: int = 0


def is_dense(site: Site[Any]) -> bool:
    return not isinstance(site, StridedConv)


def is_pointwise(site: Site[Conv2dAttrs]) -> bool:
    """Says whether each output pixel reads the input pixel in its place alone, and pixels lie side by side."""
    attrs, (height, width) = site.attrs, site.operands[1].info.shape[1:3]
    return height == width == 1 and attrs.strides == (1, 1) and not any(attrs.padding) and is_dense(site)


def output_steps(site: Site[Any]) -> tuple[int, int]:
    """Returns the elements from pixel to pixel of the result, and from row to row."""
    if isinstance(site, StridedConv):
        return site.pixel, site.row
    width, channels = site.output.shape[2:]
    return channels, width * channels


def input_step(site: Site[Any]) -> int:
    """Returns the elements from pixel to pixel of the input."""
    return (site.given if isinstance(site, StridedConv) else 0) or site.operands[0].info.shape[3]


def windows_of(site: Site[Conv2dAttrs]) -> dict[str, int]:
    """Returns the fields of ``struct uaccel_conv2d_blocked`` but for the output stage's."""
    height, width, depth = site.operands[1].info.shape[1:]
    out_pixel, out_row = output_steps(site)
    in_pixel, item = input_step(site), site.operands[0].info.itemsize
    return geometry(site, (height, width)) | {
        "geo.in_channels": depth * item,
        "in_pixel": in_pixel * item,
        "out_pixel": out_pixel,
        "out_row": out_row,
        "runs": int(width == 1 or (site.attrs.dilation[1] == 1 and in_pixel == depth)),
    }


@dataclass(frozen=True)
class Taps:
    """Describes a phase along one axis: the outputs ``first``, ``first + stride`` and so on, ``count`` of them.

    Position number i reads the input from ``i - before + behind`` on, by the window's ``entries`` in reverse.
    ``before`` is padding; where ``behind`` is not 0, the phase skips so many inputs instead.
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
    """Joins the convolution of the first image with the elements of input and output that lie before its own."""

    site: StridedConv
    source: int
    target: int


def phases(site: Site[TransposeConv2dAttrs]) -> list[Phase] | None:
    """Splits a transposed convolution into phases; None where one would have to skip columns, or all rows. Rows are
    skipped by a later start, but a convolution that skips columns would need rows of another pitch."""
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


def _phase(site: Site[TransposeConv2dAttrs], rows: Taps, columns: Taps) -> StridedConv:
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
    return StridedConv(
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


def offer_rewritten(
    make: Maker,
    requires: tuple[str, ...],
    float32: tuple[str, ...] | None = None,
    *,
    transposed: int,
    depthwise: int,
    least: int = 1,
) -> None:
    """Offers what becomes convolutions, each by the kernel that ``make`` gives: transposed convolutions, and depthwise
    ones of one input channel and at least so many others. Their ranks are given."""

    @offers(TransposeConv2d, requires, float32, rank=transposed)
    def by_its_phases(site: Site[TransposeConv2dAttrs]) -> Kernel | None:
        return by_phases(site, make)

    @offers(DepthwiseConv2d, requires, float32, rank=depthwise)
    def one_channel(site: Site[Conv2dAttrs]) -> Kernel | None:
        converted = as_convolution(site) if site.output.shape[3] >= least else None
        return None if converted is None else make(converted)


def by_phases(site: Site[TransposeConv2dAttrs], make: Maker) -> Kernel | None:
    """Computes a transposed convolution by its phases, for each image, each by the kernel that ``make`` gives."""
    found, (batch, *shape) = phases(site), site.output.shape
    if found is None or len(found) * batch > MOST_CALLS:
        raise DeclinedError("its strides and windows give no ordinary convolutions", "change its stride or padding")
    kernels = [(phase, make(phase.site)) for phase in found]
    whole = [(phase, kernel) for phase, kernel in kernels if kernel is not None]
    if len(whole) < len(kernels):
        return None
    item, data = site.output.itemsize, site.operands[0].info
    image, result = data.elements // batch * item, int(np.prod(shape)) * item
    calls = [
        moved(call, number * image + phase.source * item, number * result + phase.target * item)
        for number in range(batch)
        for phase, kernel in whole
        for call in kernel.calls
    ]
    one, scratch = whole[0][1], max(kernel.scratch for _, kernel in whole)
    # Each phase reads the whole image: nothing may lie over it.
    return replace(one, calls=tuple(calls), scratch=scratch, inplace=(), behind={}, leaner=tuple)


def moved(call: KernelCall, source: int, target: int) -> KernelCall:
    """Returns a call whose input and output begin so many bytes later."""

    def given(argument: Any) -> Any:
        if isinstance(argument, (Input, Output)):
            return replace(argument, offset=argument.offset + (source if isinstance(argument, Input) else target))
        return argument

    arguments: Sequence[Argument | int | float] = [given(argument) for argument in call.arguments]
    return replace(call, arguments=tuple(arguments))


# A grouped convolution as one ordinary convolution for each group, on pixels with the channels of all groups.

MOST_GROUPS: Final = 64  # Each is a call with constants of its own, which take flash.


def check_groups(calls: int) -> None:
    if calls > MOST_GROUPS:
        raise DeclinedError(
            f"its groups would take {calls} calls, and {MOST_GROUPS} are the most", "give it fewer groups"
        )


def by_groups(site: Site[Conv2dAttrs], make: Maker) -> Kernel | None:
    """Computes a convolution group by group, each by the kernel that ``make`` gives; None where one has none."""
    groups = site.attrs.groups
    check_groups(groups)
    kernels = [kernel for kernel in (make(_apart(site, group)) for group in range(groups)) if kernel is not None]
    if len(kernels) < groups:
        return None
    data, output = site.operands[0].info, site.output
    into, out = (info.shape[3] // groups * info.itemsize for info in (data, output))
    calls = [moved(call, group * into, group * out) for group, kernel in enumerate(kernels) for call in kernel.calls]
    # Each group reads the whole image: nothing may lie over it.
    return replace(kernels[0], calls=tuple(calls), behind={})


def _apart(site: Site[Conv2dAttrs], group: int) -> StridedConv:
    own, (width, channels) = of_group(site, group), site.output.shape[2:]
    return StridedConv(own.attrs, own.operands, own.outputs, channels, width * channels, site.operands[0].info.shape[3])


# The output stage of int16 activations. TFLite has 64-bit sums there and rounds once: with the multiplier reduced to 15
# bits, m, the result is (sum * m + 2**(total - 1)) >> total. Kernels compute it with sums of 32 bits and the high word
# of a product: ((sum * m' >> 32) + half) >> shift, where m' = m << max(33 - total, 0), shift = max(total, 33) - 32 and
# half = 2**(shift - 1). That is exact, as the half is added above the low word, which then only falls to the floor. A
# total raised to 33 leaves a shift of 1 or more, for which there is a half.

SUM_LIMIT: Final = 1 << 31  # Sums and their biases, of 64 bits in the model, must fit 32; they are not doubled.
LEAST_TOTAL: Final = 17  # With a smaller total, m << 33 - total would need more than 31 bits.
INT16: Final = "quantise it with TFLite's scheme of 16x8 bits"
LEAST_WORK: Final = 24  # Products of a pixel; for fewer the kernels of two pixels at a time are not worth it.

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WideStage:
    """Holds constants by channel: ``((sum * multiplier >> 32) + half) >> shift``, where half is that of 1 << shift."""

    bias: Ints
    multiplier: Ints
    shift: Ints

    def __getitem__(self, chosen: Any) -> WideStage:
        return WideStage(self.bias[chosen], self.multiplier[chosen], self.shift[chosen])

    def filled(self, channels: int) -> WideStage:
        """Appends channels of zeros, to ``channels`` in all; their shift is 1, since a half is made of it."""
        more = (0, channels - len(self.bias))
        bias, multiplier = np.pad(self.bias, more), np.pad(self.multiplier, more)
        return replace(self, bias=bias, multiplier=multiplier, shift=np.pad(self.shift, more, constant_values=1))


def wide_stage_of(site: Site[Any], weights: Array) -> WideStage:
    """Computes the stage of an operator with weights, one row a channel, and biases of 64 bits. Declines where it would
    not be exact. Zero points are 0 with int16; a multiplier of 0 shifts by 33, whatever its shift."""
    attrs, bias = site.attrs, site.operands[2].value
    zero_points = (attrs.input_zero_point, attrs.output_zero_point)
    check_type(site, "int16")
    if weights.dtype != np.int8:
        raise OtherTypeError(weights.dtype.name, "int8")
    if bias.dtype != np.int64 or any(zero_points) or rounding_of(attrs) != TFLITE:
        raise DeclinedError("its int16 elements are not TFLite's, with zero points of 0 and biases of 64 bits", INT16)
    reach = 32768 * np.abs(weights.astype(np.int64)).sum(axis=1).astype(object) + np.abs(bias.astype(object))
    multiplier, shift = (np.broadcast_to(operand.value, len(weights)) for operand in site.operands[3:5])
    given = multiplier.astype(np.int64)
    reduced = np.where(given < 0x7FFF0000, (given + (1 << 15)) >> 16, 0x7FFF)
    total = np.where(reduced == 0, 33, 15 - shift.astype(np.int64))
    if max(reach) >= SUM_LIMIT:
        raise DeclinedError(f"a sum may reach {max(reach):,}, and {SUM_LIMIT:,} is too much", "give it smaller biases")
    if given.min() < 0 or total.min() < LEAST_TOTAL:
        raise DeclinedError("a channel scales its sums by 0.25 or more", "quantise with a larger output scale")
    return WideStage(bias, reduced << np.maximum(33 - total, 0), np.maximum(total - 32, 1))


@dataclass(frozen=True, kw_only=True)
class ConvPixels(SlidingWindow):
    """Holds a convolution's shapes and steps; a fully connected layer's rows are the pixels of a pointwise one."""

    given: tuple[int, ...]
    wanted: tuple[int, ...]
    # Elements from pixel to pixel of the result and from row to row, where they lie apart.
    steps: tuple[int, int] | None = None
    in_pixel: int = 0  # The same for the input, where its pixels have more channels than are read.

    def parameters(self) -> dict[str, ParameterValue]:
        """Returns the fields with which a convolution's structure begins. ``runs``: the elements that reading a
        window's row by twos touches, where its pixels lie side by side; else 0."""
        in_pixel = self.in_pixel or self.given[3]
        width, depth = self.kernel[1], self.given[3]
        beside = width == 1 or (in_pixel == depth and self.dilation[1] == 1)
        reach = width * depth + width * depth % 2 + in_pixel - depth
        out_pixel, out_row = self.steps or (self.wanted[3], self.wanted[2] * self.wanted[3])
        return {
            **geometry_of(self.given, self.wanted, self.kernel, self),
            "out_pixel": out_pixel,
            "out_row": out_row,
            "in_pixel": in_pixel,
            "runs": reach if beside else 0,
        }


def convolution_of(site: Site[Conv2dAttrs]) -> ConvPixels:
    window = vars(window_of(site.attrs, site.operands[1].info.shape[1:3]))
    shapes = {"given": site.operands[0].info.shape, "wanted": site.output.shape}
    return ConvPixels(**window, **shapes, steps=output_steps(site), in_pixel=input_step(site))


def rows_of(site: Site[FullyConnectedAttrs]) -> ConvPixels:
    return ConvPixels(given=(1, 1, *site.operands[0].info.shape), wanted=(1, 1, *site.output.shape))


def is_one_row(site: Site[Conv2dAttrs]) -> bool:
    """Says whether the only window is the whole input."""
    whole = site.operands[1].info.shape[1:] == site.operands[0].info.shape[1:] and site.operands[0].info.shape[0] == 1
    return whole and not any(site.attrs.padding) and is_dense(site)


def is_worth_it(weights: Array) -> bool:
    """Says whether a pixel has enough to do that two at a time pay: an output takes about as long as six products."""
    return bool(weights.size + 6 * len(weights) >= LEAST_WORK)


@dataclass(frozen=True)
class Int16:
    """Makes a family's kernels of int16 activations: ``one_row`` for a single window, ``convolution`` for others.

    Weights of a row of a window, or of a unit, are filled up to ``unit`` elements for ``convolution``.
    """

    one_row: Callable[[Site[Any], Array, WideStage], Kernel]
    convolution: Callable[[Site[Any], Array, WideStage, ConvPixels], Kernel]
    unit: int = 1

    def conv2d(self, site: Site[Conv2dAttrs]) -> Kernel | None:
        """Computes two pixels at a time, four channels over them. A call for each group."""
        if site.attrs.groups > 1:
            return by_groups(site, self.conv2d)
        weights = site.operands[1].value
        channels, height = weights.shape[:2]
        stage = wide_stage_of(site, weights.reshape(channels, -1))
        if not is_worth_it(weights):
            raise DeclinedError("a pixel has too few products", "join it with a layer beside it")
        if is_one_row(site):
            return self.one_row(site, weights.reshape(channels, -1), stage)
        rows = pad_axis(weights.reshape(channels, height, -1), 2, self.unit).reshape(channels, -1)
        return self.convolution(site, rows, stage, convolution_of(site))

    def fully_connected(self, site: Site[FullyConnectedAttrs]) -> Kernel | None:
        """Computes several units at a time; several rows are the pixels of a pointwise convolution."""
        weights = site.operands[1].value
        stage = wide_stage_of(site, weights)
        if site.operands[0].info.shape[0] == 1:
            return self.one_row(site, weights, stage)
        return self.convolution(site, pad_axis(weights, 1, self.unit), stage, rows_of(site))


def one_row_fields(site: Site[Any], weights: Array, length: int) -> dict[str, ParameterValue]:
    """Returns the fields of the structures for one row on int16, whose weights are filled up to ``length``."""
    units, depth = weights.shape
    return {"depth": depth, "units": units, "length": length, **same(site.attrs, "clamp_min", "clamp_max")}


def is_depthwise(site: Site[Conv2dAttrs]) -> bool:
    """Says whether the layer is truly depthwise: one input channel with several results is an ordinary convolution."""
    return site.operands[0].info.shape[3] > 1 or site.output.shape[3] == 1


def depthwise_parameters(site: Site[Conv2dAttrs]) -> dict[str, ParameterValue]:
    """Returns the fields of ``struct uaccel_depthwise16``."""
    return {
        **geometry_fields(site, site.operands[1].info.shape[:2]),
        "multiplier": site.output.shape[3] // site.operands[0].info.shape[3],
        **same(site.attrs, "clamp_min", "clamp_max"),
    }
