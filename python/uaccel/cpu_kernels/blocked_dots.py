"""Dot products for any CPU, eight at a time, and the layers that begin with them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.blocked import fully_connected
from uaccel.cpu_kernels.dots import ROWS, Dots, offer_dots
from uaccel.cpu_kernels.int16_lstm import lstm16
from uaccel.cpu_kernels.lstm_dots import Family, Ints, ends, lstm_dots, sums_fit
from uaccel.cpu_kernels.output_stage import interleaved, padded_to
from uaccel.cpu_kernels.registry import offers
from uaccel.cpu_kernels.target import EMBEDDED
from uaccel.ops.base import Site
from uaccel.ops.kernel import Kernel
from uaccel.ops.lstm import Lstm, LstmAttrs


def _pack(rows: NDArray[np.int8]) -> NDArray[np.int32]:
    """Two rows or more as eight, one by itself."""
    packed = interleaved(rows, ROWS) if len(rows) > 1 else padded_to(np.ascontiguousarray(rows[0]), 0, 4)
    return packed.reshape(-1).view(np.int32)


def _gates(weights: NDArray[np.int8], bias: Ints, multiplier: int, shift: int) -> Ints | None:
    """Biases, of each input the weights of all eight; the multiplier, the rounding's half, the shift."""
    if not sums_fit(weights, bias, shift):
        return None
    words = interleaved(weights, ROWS).reshape(len(weights) // ROWS, -1).view("<i4").astype(np.int64)
    return np.concatenate([bias.reshape(-1, ROWS), words, ends(len(words), multiplier, shift)], axis=1)


offer_dots(Dots("blocked", "blocked", (), 1, _pack, element=2, rank=410, better=fully_connected))
BLOCKED: Final = Family("blocked", "blocked", (), 1, _gates)


@offers(Lstm, EMBEDDED, rank=400)
def lstm(site: Site[LstmAttrs]) -> Kernel | None:
    return lstm_dots(site, BLOCKED) or lstm16(site, BLOCKED, fully_connected)
