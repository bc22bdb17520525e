"""Numbers rounded to a coarse binary grid, so that training repeats to the bit on another machine.

A matrix product in float64 differs in its last bits between processors, for their libraries add in another
order. Such a difference of 1e-16 vanishes when the result is rounded to a step of 2^-16, unless it lies on
the edge of a step, and that is one case in 10^11. Rounding after every training step keeps differences from
growing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_STEPS_PER_UNIT = 65536.0


def snap(values: Array) -> Array:
    """The values on the grid."""
    return np.rint(values * _STEPS_PER_UNIT) / _STEPS_PER_UNIT


def draw(seed: int) -> np.random.RandomState:
    """A generator whose stream NumPy promises never to change, unlike that of its newer generators."""
    return np.random.RandomState(seed)
