"""How tensors lie: the order of axes, four-bit weights, how far writes lag behind reads."""

from __future__ import annotations

import bisect
import itertools
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array, TensorInfo
from uaccel.ops.operator import Constant, Kernel, Site

# Orders in which a tensor's axes lie: ``np.transpose(value, layout)`` is what is stored.

Layout = tuple[int, ...]

_NAMES: Final[dict[Layout, str]] = {(0, 3, 1, 2): "nchw", (0, 2, 3, 1): "nhwc"}


def identity(rank: int) -> Layout:
    return tuple(range(rank))


def compose(first: Sequence[int], then: Sequence[int]) -> Layout:
    """The layout of a tensor that lies as ``first`` says, once its axes are permuted by ``then``."""
    return tuple(first[axis] for axis in then)


def inverse(layout: Sequence[int]) -> Layout:
    return tuple(layout.index(axis) for axis in range(len(layout)))


def bytes_order(shape: Sequence[int], layout: Layout) -> Layout:
    """Layouts that agree in this hold the same bytes: axes of one element may lie anywhere."""
    return tuple(axis for axis in layout if shape[axis] != 1)


def reshape_groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[Layout, Layout]]:
    """The axes that a reshape keeps, splits or joins: neighbours with as many elements as those that come of them."""
    olds, news = (list(itertools.accumulate(extents, operator.mul)) for extents in (before, after))
    cuts = sorted(set(olds) & set(news))

    def axes_of(ends: list[int], cut: int) -> Layout:
        return tuple(axis for axis, end in enumerate(ends) if bisect.bisect_left(cuts, end) == cut)

    return [(axes_of(olds, cut), axes_of(news, cut)) for cut in range(len(cuts))]


def layout_name(layout: Layout) -> str:
    """Of a tensor that models call NCHW; any other by the numbers of its axes."""
    return _NAMES.get(layout, "axes" + "".join(map(str, layout)))


# How far behind its reading a kernel writes: what ``Kernel.behind`` states, from the order of its loops.
#
# A kernel that goes through its output from the first byte to the last reads its input upwards, too, but for what
# windows
# have in common. Before it writes an output's end it has read some of the input for the last time: all below the first
# byte of the windows that follow. The output may lie over that.


def windows_behind(
    data: TensorInfo,
    output: TensorInfo,
    strides: Sequence[int],
    padding: Sequence[int],
    together: int = 1,
    *,
    run: int = 0,
    copied: bool = False,
    back: bool = False,
    alone: bool = False,
) -> int:
    """Bytes for a kernel that takes ``together`` output pixels of an image at a time, row by row, all their channels.

    ``copied``: it has read the windows of those before it writes any of them. ``run``: it begins anew after so many
    pixels, of which an image is a multiple. ``back``: the last of an image are as many as the others, so that some are
    computed again. ``alone``: of the last of an image, fewer than ``together``, each is computed by itself.
    Tensors are NHWC; ``padding`` begins with the rows above and the columns before the input.
    """
    (batch, in_height, in_width, in_channels), (_, height, width, channels) = data.shape, output.shape
    pixels, in_pixels = height * width, in_height * in_width
    tops = np.clip(np.arange(height) * strides[0] - padding[0], 0, in_height)
    lefts = np.clip(np.arange(width) * strides[1] - padding[1], 0, in_width)
    image = (tops[:, np.newaxis] * in_width + lefts).reshape(-1)
    first = (np.arange(batch)[:, np.newaxis] * in_pixels + image).reshape(-1)
    needed = np.append(np.minimum.accumulate(first[::-1])[::-1], np.iinfo(np.int32).max)
    run = run or pixels
    starts = np.arange(0, run, together)
    if alone:
        whole = run // together * together
        starts = np.append(np.arange(0, whole, together), np.arange(whole, run))
    ends = np.append(starts[1:], run)
    starts = np.minimum(starts, run - together) if back else starts
    origins = np.arange(0, batch * pixels, run)[:, np.newaxis]
    unread = np.append(starts[1:], run) if copied else starts
    read = needed[origins + unread] * in_channels * data.itemsize
    written = (origins + ends) * channels * output.itemsize
    return max(0, int((written - read).max()))


def pairs_of_rows_behind(
    data: TensorInfo, output: TensorInfo, strides: Sequence[int], padding: Sequence[int], chunk: int
) -> int:
    """The same for a kernel that takes two rows of the output at a time, ``chunk`` pixels of each: it has read their
    windows before it writes any of them. The last row may be alone."""
    (batch, in_height, in_width, in_channels), (_, height, width, channels) = data.shape, output.shape
    upper, starts = np.arange(0, height, 2), np.arange(0, width, chunk)
    tops = np.clip(upper * strides[0] - padding[0], 0, in_height)[:, np.newaxis]
    lefts = np.clip(starts * strides[1] - padding[1], 0, in_width)
    images = np.arange(batch)[:, np.newaxis]
    first = (images * in_height * in_width + (tops * in_width + lefts).reshape(-1)).reshape(-1)
    lower = np.minimum(upper + 1, height - 1)[:, np.newaxis]
    ends = (images * height * width + (lower * width + np.minimum(starts + chunk, width)).reshape(-1)).reshape(-1)
    needed = np.append(np.minimum.accumulate(first[::-1])[::-1], np.iinfo(np.int32).max)
    distances = ends * channels * output.itemsize - needed[1:] * in_channels * data.itemsize
    return max(0, int(distances.max()))


def row_overwrite_distance(
    rows: int, data: TensorInfo, output: TensorInfo, together: int = 1, *, run: int = 0, copied: bool = False
) -> int:
    """The same for so many rows, or pixels, of which each gives one of the output."""
    shapes = [replace(info, shape=(1, 1, rows, info.elements // rows)) for info in (data, output)]
    return windows_behind(shapes[0], shapes[1], (1, 1), (0, 0), together, run=run, copied=copied)


def overwrite_distance(
    site: Site[Any], together: int = 1, *, run: int = 0, copied: bool = False, alone: bool = False
) -> dict[int, int]:
    """The same for a layer with windows, or of rows, on its first input."""
    data = site.operands[0].info
    if len(data.shape) == 2:
        return {0: row_overwrite_distance(data.shape[0], data, site.output, together, run=run, copied=copied)}
    attrs = site.attrs
    reading: dict[str, Any] = {"run": run, "copied": copied, "alone": alone}
    return {0: windows_behind(data, site.output, attrs.strides, attrs.padding, together, **reading)}


# Weights of four bits, as the portable kernels read them: ``firmware/kernels/portable/uaccel_int4.h``.
#
# In a module they are int8 like any others. The attribute ``weight_bits`` of the operators with weights says that four
# bits hold each of them, as the model file does.

HEADER: Final = "uaccel_int4.h"


def is_int4(site: Site[Any]) -> bool:
    """Whether its weights are worth packing: four bits hold each, and there are kernels for its type."""
    return getattr(site.attrs, "weight_bits", 8) == 4 and site.output.dtype == "int8"


def nibbles(rows: Array) -> NDArray[np.uint8]:
    """Each row from a byte of its own on, the first weight of two in the low half."""
    low = np.pad(rows, [(0, 0), (0, rows.shape[1] % 2)]).astype(np.uint8) & 15
    return np.ascontiguousarray(low[:, 0::2] | low[:, 1::2] << 4)


def pack_int4(kernel: Kernel, rows: Array) -> Kernel:
    """A portable kernel, with weights in half the bytes: ``rows`` are what it reads one after the other."""
    (call,) = kernel.calls
    weights, function = Constant("weights", nibbles(rows)), call.function.replace("_s8", "_int4_s8")
    arguments = tuple(
        weights if isinstance(given, Constant) and given.role == "weights" else given for given in call.arguments
    )
    return replace(kernel, calls=(replace(call, function=function, header=HEADER, arguments=arguments),))
