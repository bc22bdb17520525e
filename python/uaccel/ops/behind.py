"""How far behind its reading a kernel writes: what ``Kernel.behind`` states, from the order of its loops.

A kernel that goes through its output from the first byte to the last reads its input upwards, too, but for what windows
have in common. Before it writes an output's end it has read some of the input for the last time: all below the first
byte of the windows that follow. The output may lie over that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops.base import Site


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


def rows_behind(
    rows: int, data: TensorInfo, output: TensorInfo, together: int = 1, *, run: int = 0, copied: bool = False
) -> int:
    """The same for so many rows, or pixels, of which each gives one of the output."""
    shapes = [replace(info, shape=(1, 1, rows, info.elements // rows)) for info in (data, output)]
    return windows_behind(shapes[0], shapes[1], (1, 1), (0, 0), together, run=run, copied=copied)


def site_behind(
    site: Site[Any], together: int = 1, *, run: int = 0, copied: bool = False, alone: bool = False
) -> dict[int, int]:
    """The same for a layer with windows, or of rows, on its first input."""
    data = site.operands[0].info
    if len(data.shape) == 2:
        return {0: rows_behind(data.shape[0], data, site.output, together, run=run, copied=copied)}
    attrs = site.attrs
    reading: dict[str, Any] = {"run": run, "copied": copied, "alone": alone}
    return {0: windows_behind(data, site.output, attrs.strides, attrs.padding, together, **reading)}
