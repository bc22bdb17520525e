"""Packs weights, biases and output stage constants into one stream of words for the SMLAD and MVE kernels.

The assembly loops read a stream from front to end. A block of output channels holds, in this order, the sums at the
start, the weights of each few inputs for all channels of the block, and the constants that turn sums into bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels.output_stage import OutputStage, pad_axis
from uaccel.kernels.registry import DeclinedError
from uaccel.model import Array

# Streams for the kernels of Arm's DSP extension (firmware/kernels/arm_dsp/uaccel_dsp.h).
#
# SMLAD adds two products of 16-bit halves. Two output channels A and B share each half: it holds h = 256 * a + b, where
# a and b are their weights for one input x. Two sums run over the same words:
#
#     S = sum(h * x) = 256 * A + B        SMLAD with the word as it is
#     B = sum(b * x)                      SMLAD behind SXTB16, which sign-extends the low byte of h: that is b
#
# and A = (S - B) / 256 in the end. Four products so take three instructions, and weights stay one byte each. Registers
# may wrap around on the way, since sums count modulo 2**32. Two conditions make it exact:
#
# - h fits 16 bits. The largest, 256 * 127 + 127, does; below -2**15 it is where a is -128 and b is negative.
# - 256 * A fits 32 bits, so that the arithmetic shift of S - B gives A with its sign: A lies within +-2**23. B may take
#   all of its 32 bits.
#
# A deep sum breaks the second condition, and so does a large bias. Kernels with a deep form keep the bias of A apart,
# add A to it at several ends, and begin S anew each time. ``ends_apart`` says how many inputs lie between the ends.

Ints = NDArray[np.int64]

PAIR_LIMIT: Final = 1 << 23  # The sum of the first channel of a pair is below it: 256 times that fits 32 bits.
FINISH: Final = ("multiplier", "offset", "shift")  # The output stage's constants of a channel, in their order.
HALVED: Final = 1 << 23  # One in the exponent of a float32: less that, its bits are half the number; plus that, twice.
IN_HALVES: Final = (0, 2, 1, 3)  # SXTB16 takes bytes 0 and 2 of four inputs, and with a rotation bytes 1 and 3.


@dataclass(frozen=True, eq=False)
class Paired:
    """Holds a stream, a row for each block of channels. ``apart``: the inputs between two ends; 0 without deep sums."""

    stream: NDArray[np.int32]
    apart: int = 0

    def behind_ends(self, item: int) -> NDArray[np.int32]:
        """Returns the whole stream as kernels read it: that of deep sums begins with the distance of its ends, whose
        inputs have ``item`` bytes."""
        return np.append(np.int32(self.apart * item), self.stream) if self.apart else self.stream


def paired_stream(rows: NDArray[np.int8], bias: Ints, block: int, *others: Ints, turn: int = 0) -> Paired:
    """Packs each ``block`` channels: S and B of each pair, the words of each two inputs, and a row of each of the
    ``others``. ``rows`` has one row a channel, whose length is a multiple of four. ``turn``: as in `ends_apart`.
    Declines where two channels do not fit into one word."""
    words, apart = _pair_words(rows, block), ends_apart(rows, bias, turn)
    first, second = bias[0::2], bias[1::2]
    start = np.stack([2 * first if apart else 256 * first + second, second], axis=1)
    return Paired(concat_words(start.reshape(len(words), -1), words, *others), apart)


def pack_int16_pairs(rows: NDArray[np.int8], bias: Ints, block: int) -> Ints:
    """Returns a row for each ``block`` channels: for each two inputs a word of each pair of channels. Declines where a
    pair does not meet the conditions above. ``bias``: where the sums begin."""
    ends_apart(rows, bias)
    return _pair_words(rows, block)


def ends_apart(rows: NDArray[np.int8], bias: Ints, turn: int = 0) -> int:
    """Returns how many inputs lie between two ends; 0 where sums are not deep. Declines where no number is exact.

    ``turn``: the inputs of a turn of the kernel's loop, at which ends may lie; 0 without a form for deep sums. Ends are
    counted from the last one, so that fewer inputs may lie before the first. An input lies between -128 and 127, so a
    sum is at most 128 times the magnitudes of its weights from where it begins.
    """
    sizes, depth = np.abs(rows[0::2].astype(np.int16)), rows.shape[1]
    if (128 * sizes.sum(axis=1, dtype=np.int64) + np.abs(bias[0::2])).max(initial=0) < PAIR_LIMIT:
        return 0
    turns = -(-depth // turn) if turn else 0
    if turns:
        filled = np.pad(sizes, ((0, 0), (turns * turn - depth, 0)))
        reach = 128 * filled.reshape(len(sizes), turns, turn).sum(axis=2, dtype=np.int64)
    for together in range(turns, 0, -1):
        parts = np.pad(reach, ((0, 0), (-turns % together, 0))).reshape(len(reach), -1, together)
        if parts.sum(axis=2).max() < PAIR_LIMIT:
            return together * turn
    raise DeclinedError(f"a sum of {depth} products may pass {PAIR_LIMIT:,}", "give it smaller biases or fewer inputs")


def unpaired(weights: Array) -> list[int]:
    """Lists the output channels that do not fit into a word with the next one, which is computed with them: they have a
    weight of -128 beside a negative one. ``weights``: one row a channel."""
    rows = pad_axis(weights.reshape(len(weights), -1), 0, 2)
    halves = 256 * rows[0::2].astype(np.int64) + rows[1::2]
    return [2 * int(pair) for pair in np.flatnonzero(halves.min(axis=1, initial=0) < -(1 << 15))]


def _pair_words(rows: NDArray[np.int8], block: int) -> Ints:
    first, second = rows[0::2].astype(np.int64), rows[1::2].astype(np.int64)
    halves = 256 * first + second
    if apart := unpaired(rows):
        raise DeclinedError(
            f"{len(apart)} of its channels have weights of -128 beside negative ones, from channel {apart[0]} on",
            "quantise weights to -127..127",
        )
    blocks = len(rows) // block
    in_order = halves.reshape(len(halves), -1, 4)[:, :, IN_HALVES].reshape(blocks, block // 2, -1, 2)
    words = (in_order[..., 0] & 0xFFFF) | (in_order[..., 1] << 16)
    return words.transpose(0, 2, 1).reshape(blocks, -1)


def offsets(stage: OutputStage) -> NDArray[np.int64]:
    """Returns the output stage's offsets; those of channels that hold one constant number are made odd. Their
    multiplier is 0 and their shift is 1, so the result is offset >> 1. The kernels take the sign's -1 from the sum,
    which means nothing here: with 2 * v + 1 as the offset, v comes out with the -1 and without it."""
    return stage.offset if stage.single else np.where(stage.multiplier == 0, stage.offset | 1, stage.offset)


def finish_words(stage: OutputStage, block: int) -> NDArray[np.int64]:
    """Returns the output stage's constants, one row for each ``block`` channels; its sums come doubled. Doubled, since
    the high word of 2 * sum * multiplier is sum * multiplier >> 31. In single precision the kernel computes (2 * sum +
    2 * rest) * (scale / 2): factors of a power of two change no rounding."""
    multiplier, shift = stage.multiplier, stage.shift
    if stage.single:
        rests = stage.rest_bits
        multiplier = np.where(multiplier == 0, 0, stage.scale_bits - HALVED)
        shift = np.where(rests == 0, 0, rests + HALVED)
    table = np.stack([multiplier, offsets(stage), shift], axis=1)
    return table.reshape(-1, 3 * block)


def alike(stage: OutputStage) -> dict[str, int]:
    """Returns the constants that all channels share as fields of a structure; all 0 where channels differ."""
    first, *others = finish_words(stage, 1)
    same = all((row == first).all() for row in others)
    return {name: int(value) if same else 0 for name, value in zip(FINISH, first, strict=True)}


def concat_words(*parts: Array) -> NDArray[np.int32]:
    """Joins rows side by side, and cuts each number to a word of 32 bits."""
    stream = np.concatenate(parts, axis=1)
    return (stream & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


# Streams for the kernels of Arm Helium (firmware/kernels/arm_helium/uaccel_helium.h, uaccel_helium_windows.h).
#
# VMLADAVA adds up the sixteen products of two vectors of bytes in one register. A window is a run of bytes, filled up
# to whole vectors; weights are zero there, so that any byte may follow in memory.
#
# The loop over windows is software-pipelined: the output stage of four channels is interleaved with the first products
# of the next four. Behind a window's last four channels come the first ones of the next window, so that their head
# stands at the stream's end once more.

VECTOR: Final = 16  # Bytes of a vector.
# Most vectors of a run whose code is unrolled: a load reaches 15 of them, from -112 to 112 bytes of the run's middle.
# The code goes from the highest address down and is entered where the run ends; the first vector comes before that.
UNROLLED: Final = 15
HEAD: Final = 4 * 4 + 4  # Words read ahead: the first vector of four channels, and the next one of the first of them.


@dataclass(frozen=True, eq=False)
class Channels:
    """Holds weights and output stage by channel: ``((sum * multiplier >> 31, rounded) >> right, rounded)``.

    In single precision ``multiplier`` is the scale's bits, and ``-right`` those of what is added to the sum. Streams
    hold ``-right`` either way, since a vector shift to the right is one by a negative number to the left.
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
        """Appends channels of zeros up to a multiple."""
        arrays = (pad_axis(array, 0, multiple) for array in (self.weights, self.bias, self.multiplier, self.right))
        return Channels(*arrays)

    def ends(self) -> tuple[Ints, Ints, Ints]:
        """Returns what streams hold besides weights."""
        return self.bias, self.multiplier, -self.right


def channels_of(weights: NDArray[np.int8], stage: OutputStage, zero_point: int) -> Channels:
    """Collects the channels of a layer; one with a constant result is computed as in `OutputStage.computed`."""
    if stage.single:
        return Channels(weights.astype(np.int8), stage.bias, stage.scale_bits, -stage.rest_bits)
    known = stage.multiplier == 0
    bias = np.where(known, 4 * ((stage.offset >> 1) - zero_point), stage.bias)
    multiplier = np.where(known, 1 << 30, stage.multiplier)
    return Channels(np.where(known[:, None], 0, weights).astype(np.int8), bias, multiplier, stage.shift)


def window_stream(channels: Channels) -> NDArray[np.int32]:
    """Packs four channels a row; where they are no multiple of four, the last four overlap those before. With fewer
    than four channels the last one is repeated. Short runs have their first vector first and then the others from the
    last one down, which is the order in which the unrolled code reads them (``UNROLLED``)."""
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
    """Packs eight units a row, even ones first: the narrowing instructions interleave two vectors of four sums.
    ``each``: whether units have multipliers and shifts of their own, which then follow the biases."""
    filled = channels.filled(8)
    order = np.arange(len(filled.bias)).reshape(-1, 4, 2).transpose(0, 2, 1).ravel()
    blocks = filled[order]
    ends = [blocks.multiplier.reshape(-1, 8), -blocks.right.reshape(-1, 8)] if each else []
    return concat_words(vector_words(blocks.weights, 8), blocks.bias.reshape(-1, 8), *ends)


def vector_words(weights: NDArray[np.int8], block: int) -> Ints:
    """Returns a row for each block of channels: vector by vector, in each the bytes of channel after channel."""
    return _words(_vectors(weights, block))


def _vectors(weights: NDArray[np.int8], block: int) -> NDArray[np.int8]:
    """Splits weights into an array of axes (block of channels, vector, channel, byte)."""
    rows = pad_axis(weights, 1, VECTOR)
    return rows.reshape(-1, block, rows.shape[1] // VECTOR, VECTOR).transpose(0, 2, 1, 3)


def _words(vectors: NDArray[np.int8]) -> Ints:
    words = np.ascontiguousarray(vectors).view("<i4")
    return words.reshape(len(vectors), -1).astype(np.int64)
