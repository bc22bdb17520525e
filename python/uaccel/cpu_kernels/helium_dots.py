"""Dot products with Arm Helium, and the layers that begin with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.dots import ROWS, Dots, offer_dots
from uaccel.cpu_kernels.helium_call import REQUIRES
from uaccel.cpu_kernels.helium_pack import VECTOR
from uaccel.cpu_kernels.output_stage import padded_to


def _pack(rows: NDArray[np.int8]) -> NDArray[np.int32]:
    """Vector by vector, those of all rows."""
    vectors = padded_to(rows, 0, ROWS).reshape(ROWS, -1, VECTOR).transpose(1, 0, 2)
    return np.ascontiguousarray(vectors).reshape(-1).view(np.int32)


offer_dots(Dots("arm_helium", "helium", REQUIRES, VECTOR, _pack, element=1, rank=110))
