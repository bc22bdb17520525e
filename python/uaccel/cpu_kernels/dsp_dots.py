"""Dot products with Arm's DSP extension, and the layers that begin with them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.dots import ROWS, Dots, offer_dots
from uaccel.cpu_kernels.dsp import REQUIRES
from uaccel.cpu_kernels.dsp_pack import joined, paired_words
from uaccel.cpu_kernels.output_stage import padded_to
from uaccel.cpu_kernels.registry import offers
from uaccel.ops.fully_connected import FullyConnected


def _pack(rows: NDArray[np.int8]) -> NDArray[np.int32] | None:
    """Five rows or more as eight, fewer in pairs, and one by itself."""
    if len(rows) == 1:
        return np.ascontiguousarray(rows[0]).view(np.int32)
    block = ROWS if len(rows) > ROWS // 2 else 2
    words = paired_words(padded_to(rows, 0, block), np.zeros(ROWS, np.int64)[: -(-len(rows) // block) * block], block)
    return None if words is None else joined(words).reshape(-1)


def _pack_pairs(rows: NDArray[np.int8]) -> NDArray[np.int32] | None:
    filled = padded_to(rows, 0, 2)
    words = paired_words(filled, np.zeros(len(filled), np.int64), 2)
    return None if words is None else joined(words).reshape(-1)


offer_dots(Dots("arm_dsp", "dsp", REQUIRES, 4, _pack, element=2, rank=220))
_PAIRS: Final = Dots("arm_dsp", "pairs", REQUIRES, 4, _pack_pairs, element=2, rank=230)
offers(FullyConnected, REQUIRES, rank=_PAIRS.rank)(_PAIRS.fully_connected)
"""With less code, which is worth it where units are few."""
