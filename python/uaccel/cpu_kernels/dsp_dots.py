"""Dot products with Arm's DSP extension, and the layers that begin with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.dots import ROWS, Dots, offer_dots
from uaccel.cpu_kernels.dsp import REQUIRES
from uaccel.cpu_kernels.dsp_pack import joined, paired_words


def _pack(rows: NDArray[np.int8]) -> NDArray[np.int32] | None:
    words = paired_words(rows, np.zeros(len(rows), np.int64), ROWS)
    return None if words is None else joined(words)


offer_dots(Dots("arm_dsp", "dsp", REQUIRES, 4, _pack))
