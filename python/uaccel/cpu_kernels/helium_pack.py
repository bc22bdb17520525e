"""Streams of words for the kernels of Arm Helium (firmware/kernels/uaccel_helium.h)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.dsp_pack import joined
from uaccel.cpu_kernels.output_stage import OutputStage, padded_to

VECTOR: Final = 16
"""Bytes of a vector."""
UNROLLED: Final = 15
"""Vectors of a window's run that need no loop; their weights come last ones first, but for those of the first."""
HEAD: Final = 4 * 4 + 4
"""Words that are read of the first channels with the last steps of the last ones."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Channels:
    """Of each channel its row of weights and ``((sum * multiplier >> 31, rounded) >> right, rounded)``.

    In single precision ``multiplier`` is the scale's bits, and ``right`` those of a rest, negated as others are.
    """

    weights: NDArray[np.int8]
    bias: Ints
    multiplier: Ints
    right: Ints

    def __getitem__(self, chosen: Any) -> Channels:
        return Channels(self.weights[chosen], self.bias[chosen], self.multiplier[chosen], self.right[chosen])

    @property
    def alike(self) -> bool:
        """Whether all have one multiplier and one shift."""
        return bool((self.multiplier == self.multiplier[0]).all() and (self.right == self.right[0]).all())

    def filled(self, multiple: int) -> Channels:
        """With channels of zeros behind the last one."""
        arrays = (padded_to(array, 0, multiple) for array in (self.weights, self.bias, self.multiplier, self.right))
        return Channels(*arrays)


def channels_of(weights: NDArray[np.int8], stage: OutputStage, zero_point: int) -> Channels:
    """Those whose results are known have no weights, and a bias that gives the result."""
    if stage.single:
        return Channels(weights.astype(np.int8), stage.bias, stage.scale_bits, -stage.rest_bits)
    known = stage.multiplier == 0
    bias = np.where(known, 4 * ((stage.offset >> 1) - zero_point), stage.bias)
    multiplier = np.where(known, 1 << 30, stage.multiplier)
    return Channels(np.where(known[:, None], 0, weights).astype(np.int8), bias, multiplier, stage.shift)


def window_stream(channels: Channels) -> NDArray[np.int32]:
    """Four channels a row. Where they are no multiple of four, the last four begin amid others.

    Of three channels and fewer the last one comes again.
    """
    count = len(channels.bias)
    last = max(0, count - 4)
    starts = np.minimum(np.arange(0, last + 4, 4), last)
    quads = channels[np.minimum(starts[:, None] + np.arange(4), count - 1).ravel()]
    vectors = _vectors(quads.weights, 4)
    bias, *ends = (array.reshape(-1, 4) for array in (quads.bias, quads.multiplier, -quads.right))
    short = vectors.shape[1] <= UNROLLED
    in_turn = np.concatenate([vectors[:, :1], vectors[:, :0:-1]], axis=1) if short else vectors
    stream = joined(_words(in_turn), bias, *ends).ravel()
    return np.concatenate([stream, stream[:HEAD]])


def unit_stream(channels: Channels, each: bool) -> NDArray[np.int32]:
    """Eight units a row, even ones first; with multipliers and shifts where each unit has its own."""
    filled = channels.filled(8)
    order = np.arange(len(filled.bias)).reshape(-1, 4, 2).transpose(0, 2, 1).ravel()
    blocks = filled[order]
    ends = [blocks.multiplier.reshape(-1, 8), -blocks.right.reshape(-1, 8)] if each else []
    return joined(vector_words(blocks.weights, 8), blocks.bias.reshape(-1, 8), *ends)


def vector_words(weights: NDArray[np.int8], block: int) -> Ints:
    """A row for each block of channels: vector by vector, those of all of them."""
    return _words(_vectors(weights, block))


def _vectors(weights: NDArray[np.int8], block: int) -> NDArray[np.int8]:
    """By blocks of channels, vectors, channels and bytes."""
    rows = padded_to(weights, 1, VECTOR)
    return rows.reshape(-1, block, rows.shape[1] // VECTOR, VECTOR).transpose(0, 2, 1, 3)


def _words(vectors: NDArray[np.int8]) -> Ints:
    """A row a block."""
    words = np.ascontiguousarray(vectors).view("<i4")
    return words.reshape(len(vectors), -1).astype(np.int64)
