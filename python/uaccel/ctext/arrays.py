"""Arrays as C text. Those of bytes are made by numpy: networks of the field have a hundred million of them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.ctext.layout import INDENT, WIDTH, columns
from uaccel.ctext.literals import literal

COMPACT_FROM: Final = 1 << 20
"""Bytes of constants from which a model's longer arrays of bytes become strings.

A compiler keeps each number of a list as a node of a tree, which takes a hundred bytes and a microsecond: minutes and
gigabytes for a network of the field. Of a string it keeps the bytes.
"""
SHORTEST: Final = 4096
"""An array that is shorter stays a list of numbers in any model."""

SUPPRESSED: Final = """\
/* Long arrays are string literals here: compilers read them in seconds, and lists of numbers in minutes. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Woverlength-strings" /* C99 promises 4095 characters; compilers take any number */
#endif
#if (defined(__clang__) && __clang_major__ >= 21) || (!defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 15)
#pragma GCC diagnostic ignored "-Wunterminated-string-initialization" /* bytes have no mark at their end */
#endif
"""

_IN_A_STRING: Final = 26
"""Bytes in a line of a literal."""
_AT_ONCE: Final = 1 << 16
"""Lines that are made together: the pieces that numpy makes on the way stay small."""


def array_body(array: NDArray[Any]) -> str:
    """The elements, comma separated, wrapped."""
    if is_bytes(array):
        return as_numbers(array)
    return columns([literal(value, str(array.dtype)) for value in array.ravel().tolist()])


def is_bytes(array: NDArray[Any]) -> bool:
    return array.dtype in (np.int8, np.uint8)


def is_long(array: NDArray[Any]) -> bool:
    """Whether it is a string where the model is large."""
    return is_bytes(array) and array.size >= SHORTEST


def as_numbers(array: NDArray[Any]) -> str:
    """Its elements, comma separated, as many a line as fit."""
    flat = np.ascontiguousarray(array).ravel()
    longest = max((len(str(value)) for value in np.unique(flat).tolist()), default=1)
    each = [
        f"{value:>{longest}}"[:longest] + ", " for value in np.arange(256, dtype=np.uint8).view(flat.dtype).tolist()
    ]
    count = max(1, (WIDTH - len(INDENT)) // (longest + 2))
    return _lines(flat, each, count, INDENT, "").rstrip("\n").removesuffix(", ").replace(", \n", ",\n")


def as_string(array: NDArray[Any]) -> str:
    """Its bytes as a string literal of many lines."""
    flat = np.ascontiguousarray(array).ravel()
    return _lines(flat, [f"\\{value:03o}" for value in range(256)], _IN_A_STRING, '    "', '"').rstrip("\n")


def _lines(flat: NDArray[Any], each: list[str], count: int, before: str, after: str) -> str:
    """``count`` words a line, the word of every byte as ``each`` tells by its number without a sign."""
    words = np.array([list(word.encode()) for word in each], np.uint8)
    numbers = flat.view(np.uint8)
    whole = len(numbers) // count
    pieces = []
    for start in range(0, whole, _AT_ONCE):
        some = numbers[start * count : min(start + _AT_ONCE, whole) * count].reshape(-1, count)
        pieces.append(_framed(words[some].reshape(len(some), -1), before, f"{after}\n"))
    if whole * count < len(numbers):
        pieces.append(_framed(words[numbers[whole * count :]].reshape(1, -1), before, f"{after}\n"))
    return b"".join(pieces).decode("ascii")


def _framed(lines: NDArray[Any], before: str, after: str) -> bytes:
    """Every row with the same text before and after it."""
    columns = [np.tile(np.frombuffer(text.encode(), np.uint8), (len(lines), 1)) for text in (before, after)]
    return np.hstack([columns[0], lines, columns[1]]).tobytes()
