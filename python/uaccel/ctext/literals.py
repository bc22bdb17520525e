"""Numbers as C writes them."""

from __future__ import annotations

import math
import re

import numpy as np

from uaccel.basics.sinks import c_character
from uaccel.ctext.types import FLOATS, fits, is_signed, limits


def int_literal(value: int) -> str:
    """Plain decimal wherever int holds it; the most negative values have no literal of their own in C."""
    if value == limits("int32")[0]:
        return "INT32_MIN"
    if fits(value, value, "int32"):
        return str(value)
    return sized_literal(value, "int64" if fits(value, value, "int64") else "uint64")


def sized_literal(value: int, dtype: str) -> str:
    """Of one of the types that have a suffix: int64, uint32, uint64."""
    if is_signed(dtype) and value == limits(dtype)[0]:
        return f"{dtype.upper()}_MIN"
    return f"{'-' if value < 0 else ''}{dtype.upper()}_C({abs(value)})"


def float_literal(value: float, dtype: str) -> str:
    """The shortest decimal that reads back as the same number."""
    suffix, promoted = ("f", "") if dtype == "float32" else ("", "(double)")
    if math.isnan(value):
        return f"{promoted}NAN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    return f"{sign}{promoted}INFINITY" if math.isinf(value) else f"{sign}{abs(np.dtype(dtype).type(value))!s}{suffix}"


def string_literals(text: str, width: int) -> list[str]:
    """One string as literals of up to ``width`` columns between the quotes, which the compiler joins: each ends
    behind a comma if there is one."""
    lines = [""]
    for part in re.findall("[^,]*,|[^,]+", text):
        characters = [c_character(byte) for byte in part.encode()]
        if lines[-1] and len(lines[-1]) + sum(map(len, characters)) > width:
            lines.append("")
        for character in characters:
            if len(lines[-1]) + len(character) > width:
                lines.append("")
            lines[-1] += character
    return [f'"{line}"' for line in lines]


def literal(value: float, dtype: str) -> str:
    """An element of an array."""
    return float_literal(value, dtype) if dtype in FLOATS else int_literal(int(value))
