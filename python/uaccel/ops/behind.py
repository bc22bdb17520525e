"""How far behind its reading a kernel writes: what ``Kernel.behind`` states, from the order of its loops.

A kernel that goes through its output from the first byte to the last reads its input upwards, too, but for what windows
have in common. Before it writes an output's end it has read some of the input for the last time: all below the first
byte of the windows that follow. The output may lie over that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uaccel.model import TensorInfo


def windows_behind(
    data: TensorInfo,
    output: TensorInfo,
    strides: Sequence[int],
    padding: Sequence[int],
    together: int = 1,
    *,
    copied: bool = False,
) -> int:
    """Bytes for a kernel that takes ``together`` output pixels of an image at a time, row by row, all their channels.

    ``copied``: it has read the windows of those before it writes any of them. Tensors are NHWC; ``padding`` begins
    with the rows above and the columns before the input.
    """
    (batch, in_height, in_width, in_channels), (_, height, width, channels) = data.shape, output.shape
    pixels, in_pixels = height * width, in_height * in_width
    tops = np.clip(np.arange(height) * strides[0] - padding[0], 0, in_height)
    lefts = np.clip(np.arange(width) * strides[1] - padding[1], 0, in_width)
    image = (tops[:, np.newaxis] * in_width + lefts).reshape(-1)
    first = (np.arange(batch)[:, np.newaxis] * in_pixels + image).reshape(-1)
    needed = np.append(np.minimum.accumulate(first[::-1])[::-1], np.iinfo(np.int32).max)
    starts = np.arange(0, pixels, together)
    ends = np.minimum(starts + together, pixels)
    origins = np.arange(batch)[:, np.newaxis] * pixels
    read = needed[origins + (ends if copied else starts)] * in_channels * data.itemsize
    written = (origins + ends) * channels * output.itemsize
    return max(0, int((written - read).max()))
