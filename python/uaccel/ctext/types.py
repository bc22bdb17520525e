"""C's types for element types by their TVM names ("int8", "float32", "bool"), and what they hold."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from uaccel.errors import ModelError

FLOATS: Final = {"float32": "float", "float64": "double"}
C_TYPES: Final = {
    "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **FLOATS,
}


def c_type(dtype: str) -> str:
    if dtype not in C_TYPES:
        raise ModelError(f"C99 has no type {dtype}")
    return C_TYPES[dtype]


def storage_type(dtype: str) -> str:
    """Of an element in memory: a bool is a byte that is 0 or 1."""
    return "uint8_t" if dtype == "bool" else c_type(dtype)


def bits(dtype: str) -> int:
    return 1 if dtype == "bool" else 8 * np.dtype(dtype).itemsize


def is_signed(dtype: str) -> bool:
    return dtype.startswith("int")


def limits(dtype: str) -> tuple[float, float]:
    """The bounds of a type; infinite for floating point."""
    if dtype in FLOATS:
        return -math.inf, math.inf
    if is_signed(dtype):
        return -(1 << (bits(dtype) - 1)), (1 << (bits(dtype) - 1)) - 1
    return 0, (1 << bits(dtype)) - 1


def fits(low: float, high: float, dtype: str) -> bool:
    bottom, top = limits(dtype)
    return bottom <= low and high <= top
