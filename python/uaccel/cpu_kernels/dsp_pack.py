"""Streams of words for the kernels of Arm's DSP extension (firmware/kernels/uaccel_dsp.h)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.output_stage import OutputStage, padded_to
from uaccel.model import Array

PAIR_LIMIT: Final = 1 << 23
"""The first channel of a pair keeps 24 bits of its sum."""
FINISH: Final = ("multiplier", "offset", "shift")
"""The output stage's constants of a channel."""
HALVED: Final = 1 << 23
"""Taken from the bits of a number of single precision, it leaves half of it."""
IN_HALVES: Final = (0, 2, 1, 3)
"""In which order SXTB16 takes four bytes."""


def paired_stream(
    weights: NDArray[np.int8], stage: OutputStage, block: int, *, finished: bool = True
) -> NDArray[np.int32] | None:
    """Of each ``block`` channels: S and B of each pair, the words of each two inputs, and the output stage.

    ``weights`` has one row a channel, of which the length is a multiple of four; None where two channels do not fit
    into one word. ``finished``: whether the output stage's constants are in it.
    """
    rows = padded_to(weights, 0, block)
    stage = stage.filled(len(rows))
    words = paired_words(rows, stage.bias, block)
    if words is None:
        return None
    start = np.stack([256 * stage.bias[0::2] + stage.bias[1::2], stage.bias[1::2]], axis=1)
    if not finished:
        return joined(start.reshape(len(words), -1), words)
    return joined(start.reshape(len(words), -1), words, finish_words(stage, block))


def paired_words(rows: NDArray[np.int8], bias: NDArray[np.int64], block: int) -> NDArray[np.int64] | None:
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


def joined(*parts: Array) -> NDArray[np.int32]:
    """Rows side by side, as words."""
    stream = np.concatenate(parts, axis=1)
    return (stream & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
