"""Computes how tensors lie in memory: the order of axes, overwrite distances, weights of four bits.

An overwrite distance says how many bytes before an input its output must begin, so that a kernel may write the one
over the other: its writes then never reach what it has still to read.
"""

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
from uaccel.ops.kernel import Constant, Kernel
from uaccel.ops.operator import Site

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
    """The axes of more than one element in their order: layouts that agree in it hold the same bytes."""
    return tuple(axis for axis in layout if shape[axis] != 1)


def reshape_groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[Layout, Layout]]:
    """Groups of neighbouring axes before and after a reshape, each with as many elements as its counterpart.

    A reshape keeps, splits or joins the axes of a group. Groups end where products of leading extents agree.
    """
    olds, news = (list(itertools.accumulate(extents, operator.mul)) for extents in (before, after))
    cuts = sorted(set(olds) & set(news))

    def axes_of(ends: list[int], cut: int) -> Layout:
        return tuple(axis for axis, end in enumerate(ends) if bisect.bisect_left(cuts, end) == cut)

    return [(axes_of(olds, cut), axes_of(news, cut)) for cut in range(len(cuts))]


def layout_name(layout: Layout) -> str:
    """The name of a layout of an NCHW tensor; any other is named by the numbers of its axes."""
    return _NAMES.get(layout, "axes" + "".join(map(str, layout)))


# Overwrite distances: what ``Kernel.behind`` states, from the order of a kernel's loops.
#
# A kernel that writes its output upwards reads its input upwards, too, but for what windows have in common. Whenever it
# has written up to some byte, all of the input below the first byte of the windows that follow was read for the last
# time. The output may lie over that part and no more. So if the output begins ``distance`` bytes before the input, then
# written - distance <= that first byte must hold after every write: the distance is the largest difference of the two.


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
    """The distance of a kernel that computes ``together`` output pixels of an image at a time, row by row.

    It writes all their channels. ``copied``: it reads the windows of these pixels before it writes any of them.
    ``run``: groups begin anew after so many pixels, of which an image is a multiple. ``back``: the last group of a run
    is moved back to be as large as the others, so that some pixels are computed again. ``alone``: the pixels of a last
    group that is smaller than ``together`` are computed one by one. Tensors are NHWC; ``padding`` begins with the rows
    above and the columns before the input.

    ``first`` has the input pixel where each output pixel's window begins, cut to the image. Windows of a lower row may
    begin before those of the row above end, so ``needed[i]`` is the least of ``first`` from output pixel i on: what
    lies below it is not read again. While a group is written, its own windows are still needed unless they are copied.
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
    """The same for a kernel that computes two rows of the output at a time, ``chunk`` pixels of each.

    It reads the windows of both chunks before it writes any of them. The last row may be alone. What is written ends in
    the lower row, and what is still needed begins at the next pair of chunks, hence ``needed[1:]``.
    """
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
    """The distance where each of so many rows, or pixels, of the input gives one of the output."""
    shapes = [replace(info, shape=(1, 1, rows, info.elements // rows)) for info in (data, output)]
    return windows_behind(shapes[0], shapes[1], (1, 1), (0, 0), together, run=run, copied=copied)


def overwrite_distance(
    site: Site[Any], together: int = 1, *, run: int = 0, copied: bool = False, alone: bool = False
) -> dict[int, int]:
    """The distance of a layer with windows, or of one on rows, for its first input, as ``Kernel.behind`` has it."""
    data = site.operands[0].info
    if len(data.shape) == 2:
        return {0: row_overwrite_distance(data.shape[0], data, site.output, together, run=run, copied=copied)}
    attrs = site.attrs
    reading: dict[str, Any] = {"run": run, "copied": copied, "alone": alone}
    return {0: windows_behind(data, site.output, attrs.strides, attrs.padding, together, **reading)}


# Weights of four bits, as the portable kernels read them: ``firmware/kernels/portable/uaccel_int4.h``.
#
# In a Relax module they are int8 like any others. The attribute ``weight_bits`` of an operator says that four bits hold
# each of its weights, as in the model file.

HEADER: Final = "uaccel_int4.h"


def is_int4(site: Site[Any]) -> bool:
    """Whether a layer's weights can be packed: four bits hold each, and there are kernels for its type."""
    return getattr(site.attrs, "weight_bits", 8) == 4 and site.output.dtype == "int8"


def nibbles(rows: Array) -> NDArray[np.uint8]:
    """Packs two weights in a byte, the first in its low half; each row begins with a byte of its own."""
    low = np.pad(rows, [(0, 0), (0, rows.shape[1] % 2)]).astype(np.uint8) & 15
    return np.ascontiguousarray(low[:, 0::2] | low[:, 1::2] << 4)


def pack_int4(kernel: Kernel, rows: Array) -> Kernel:
    """The variant of a portable kernel with weights in half the bytes; ``rows`` are the weights in reading order."""
    (call,) = kernel.calls
    weights, function = Constant("weights", nibbles(rows)), call.function.replace("_s8", "_int4_s8")
    arguments = tuple(
        weights if isinstance(given, Constant) and given.role == "weights" else given for given in call.arguments
    )
    return replace(kernel, calls=(replace(call, function=function, header=HEADER, arguments=arguments),))
