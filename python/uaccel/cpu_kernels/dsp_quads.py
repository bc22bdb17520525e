"""Streams of words for convolution with Arm's DSP extension, four channels of two pixels at a time (uaccel_dsp_2x4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.dsp_pack import finish_words, joined, paired_words
from uaccel.cpu_kernels.output_stage import Ints, OutputStage, padded_to
from uaccel.ops.kernel import ParameterValue

QUAD: Final = 4
"""Output channels at a time."""
IN_TURN: Final = (0, 1, 3, 4, 2, 5, 6, 7, 9, 10, 8, 11)
"""In which order single precision takes the constants of four channels."""
WIDE: Final = 1 << 15
"""Twice a result, before it is clamped, fits half a word below it."""
NORMAL: Final = 1 << 30
"""Multipliers are not less."""


@dataclass(frozen=True, eq=False)
class Quads:
    """``stream``, of each four channels: S and B of two pairs at the start, the words of each two inputs, and the
    output stage. ``finish``: the fields of ``struct uaccel_dsp_quads``."""

    stream: NDArray[np.int32]
    finish: dict[str, ParameterValue]


def quads(weights: NDArray[np.int8], stage: OutputStage) -> Quads | None:
    """Of ``weights``, one row a channel whose length is a multiple of four; None where that would not be exact."""
    wide = False
    if not stage.single:
        weights, stage = stage.computed(weights)
        if stage.shift.min() < 1 or stage.multiplier.min() < NORMAL:
            return None
        wide = _reach(weights, stage) >= WIDE
    rows = padded_to(weights, 0, QUAD)
    stage = stage.filled(len(rows))
    words = paired_words(rows, stage.bias, QUAD)
    if words is None:
        return None
    start = np.stack([256 * stage.bias[0::2] + stage.bias[1::2], stage.bias[1::2]], axis=1)
    finish = finish_words(stage, QUAD)[:, IN_TURN] if stage.single else _finish(stage)
    low, high = ((bound & 0xFF) * 0x01010101 for bound in (stage.clamp_min, stage.clamp_max))
    fields: dict[str, ParameterValue] = {
        "finish.flags": int(stage.sign) + 2 * int(wide) + 4 * int(stage.clamps),
        "finish.offset": (2 * (stage.zero_point + 128) + 1) * 0x00010001,
        "finish.lowest": low,
        "finish.highest": high,
    }
    return Quads(joined(start.reshape(len(words), -1), words, finish), fields)


def _finish(stage: OutputStage) -> Ints:
    """One row for each four channels: a shift less one in each byte, and four multipliers. Sums of the first channel of
    a pair come doubled. Those of the second do not: its multiplier is doubled and 2^32 less, and the sum is added."""
    multiplier, shift = stage.multiplier.reshape(-1, QUAD), stage.shift.reshape(-1, QUAD)
    shifts = ((shift - 1 & 0xFF) << np.arange(QUAD) * 8).sum(axis=1)
    doubled = 2 * multiplier - (1 << 32)
    return np.column_stack([shifts, np.where(np.arange(QUAD) % 2 == 0, multiplier, doubled)])


def _reach(weights: NDArray[np.int8], stage: OutputStage) -> int:
    """How far from zero twice a result can be before the zero point is added."""
    sums = 128 * np.abs(weights.astype(np.int64)).sum(axis=1) + np.abs(stage.bias)
    return int(((sums * stage.multiplier >> 31) + 1 >> stage.shift - 1).max(initial=0)) + 1
