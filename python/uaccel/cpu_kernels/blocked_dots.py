"""Dot products for any CPU, eight at a time, and the layers that begin with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.blocked import fully_connected, interleaved
from uaccel.cpu_kernels.dots import ROWS, Dots, offer_dots
from uaccel.cpu_kernels.output_stage import padded_to


def _pack(rows: NDArray[np.int8]) -> NDArray[np.int32]:
    """Two rows or more as eight, one by itself."""
    packed = interleaved(rows, ROWS) if len(rows) > 1 else padded_to(np.ascontiguousarray(rows[0]), 0, 4)
    return packed.reshape(-1).view(np.int32)


offer_dots(Dots("blocked", "blocked", (), 1, _pack, element=2, better=fully_connected))
