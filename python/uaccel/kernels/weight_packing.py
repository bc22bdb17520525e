"""Weights as streams of words for SMLAD and MVE kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels.output_stage import OutputStage, pad_axis
from uaccel.model import Array

# Streams of words for the kernels of Arm's DSP extension (firmware/kernels/arm_dsp/uaccel_dsp.h).

PAIR_LIMIT: Final = 1 << 23  # The first channel of a pair keeps 24 bits of its sum.
FINISH: Final = ("multiplier", "offset", "shift")  # The output stage's constants of a channel.
HALVED: Final = 1 << 23  # Taken from the bits of a number of single precision, it leaves half of it.
IN_HALVES: Final = (0, 2, 1, 3)  # In which order SXTB16 takes four bytes.


def paired_stream(
    weights: NDArray[np.int8], stage: OutputStage, block: int, *, finished: bool = True
) -> NDArray[np.int32] | None:
    """Of each ``block`` channels: S and B of each pair, the words of each two inputs, and the output stage.

    ``weights`` has one row a channel, of which the length is a multiple of four; None where two channels do not fit
    into one word. ``finished``: whether the output stage's constants are in it.
    """
    rows = pad_axis(weights, 0, block)
    stage = stage.filled(len(rows))
    words = pack_int16_pairs(rows, stage.bias, block)
    if words is None:
        return None
    start = np.stack([256 * stage.bias[0::2] + stage.bias[1::2], stage.bias[1::2]], axis=1)
    if not finished:
        return concat_words(start.reshape(len(words), -1), words)
    return concat_words(start.reshape(len(words), -1), words, finish_words(stage, block))


def pack_int16_pairs(rows: NDArray[np.int8], bias: NDArray[np.int64], block: int) -> NDArray[np.int64] | None:
    """Of each ``block`` channels the words of each two inputs; ``bias``: where the sums begin."""
    first, second = rows[0::2].astype(np.int64), rows[1::2].astype(np.int64)
    halves = 256 * first + second
    reach = 128 * np.abs(first).sum(axis=1) + np.abs(bias[0::2])
    if halves.min(initial=0) < -(1 << 15) or reach.max(initial=0) >= PAIR_LIMIT:
        return None
    blocks = len(rows) // block
    in_order = halves.reshape(len(halves), -1, 4)[:, :, IN_HALVES].reshape(blocks, block // 2, -1, 2)
    words = (in_order[..., 0] & 0xFFFF) | (in_order[..., 1] << 16)
    return words.transpose(0, 2, 1).reshape(blocks, -1)


def offsets(stage: OutputStage) -> NDArray[np.int64]:
    """Those of the output stage; of channels that hold one known number with a half more, so that the sign of a sum
    that counts for nothing does not count either."""
    return stage.offset if stage.single else np.where(stage.multiplier == 0, stage.offset | 1, stage.offset)


def finish_words(stage: OutputStage, block: int) -> NDArray[np.int64]:
    """The output stage's constants, one row for each ``block`` channels; sums come to it doubled."""
    multiplier, shift = stage.multiplier, stage.shift
    if stage.single:
        rests = stage.rest_bits
        multiplier = np.where(multiplier == 0, 0, stage.scale_bits - HALVED)
        shift = np.where(rests == 0, 0, rests + HALVED)
    table = np.stack([multiplier, offsets(stage), shift], axis=1)
    return table.reshape(-1, 3 * block)


def alike(stage: OutputStage) -> dict[str, int]:
    """The output stage's constants as fields of a structure: those of all channels, or none of them are 0."""
    first, *others = finish_words(stage, 1)
    same = all((row == first).all() for row in others)
    return {name: int(value) if same else 0 for name, value in zip(FINISH, first, strict=True)}


def concat_words(*parts: Array) -> NDArray[np.int32]:
    """Rows side by side, as words."""
    stream = np.concatenate(parts, axis=1)
    return (stream & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


# Streams of words for the kernels of Arm Helium (firmware/kernels/arm_helium/uaccel_helium.h).

VECTOR: Final = 16  # Bytes of a vector.
# Vectors of a window's run that need no loop; their weights come last ones first, but for those of the first.
UNROLLED: Final = 15
HEAD: Final = 4 * 4 + 4  # Words that are read of the first channels with the last steps of the last ones.

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
        arrays = (pad_axis(array, 0, multiple) for array in (self.weights, self.bias, self.multiplier, self.right))
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
    stream = concat_words(_words(in_turn), bias, *ends).ravel()
    return np.concatenate([stream, stream[:HEAD]])


def unit_stream(channels: Channels, each: bool) -> NDArray[np.int32]:
    """Eight units a row, even ones first; with multipliers and shifts where each unit has its own."""
    filled = channels.filled(8)
    order = np.arange(len(filled.bias)).reshape(-1, 4, 2).transpose(0, 2, 1).ravel()
    blocks = filled[order]
    ends = [blocks.multiplier.reshape(-1, 8), -blocks.right.reshape(-1, 8)] if each else []
    return concat_words(vector_words(blocks.weights, 8), blocks.bias.reshape(-1, 8), *ends)


def vector_words(weights: NDArray[np.int8], block: int) -> Ints:
    """A row for each block of channels: vector by vector, those of all of them."""
    return _words(_vectors(weights, block))


def _vectors(weights: NDArray[np.int8], block: int) -> NDArray[np.int8]:
    """By blocks of channels, vectors, channels and bytes."""
    rows = pad_axis(weights, 1, VECTOR)
    return rows.reshape(-1, block, rows.shape[1] // VECTOR, VECTOR).transpose(0, 2, 1, 3)


def _words(vectors: NDArray[np.int8]) -> Ints:
    """A row a block."""
    words = np.ascontiguousarray(vectors).view("<i4")
    return words.reshape(len(vectors), -1).astype(np.int64)
