"""Constants as a lossless code, which loads unpack: for weights that come from a slow memory.

Blocks of 32 bytes, each behind 3 bits that say how its bytes are written. 7: as they are. Else with that many low bits:
0, -1, 1, -2, 2 and so on are numbered from 0 on, and a byte's number is its high part as ones, a zero, and the low bits
(Rice's code). The lowest bit of a byte comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.basics.numbers import pieces

BLOCK: Final = 32
KIND_BITS: Final = 3
PLAIN: Final = 7
ONES: Final = 16
"""Of a number, that are looked at in a cycle."""


@dataclass(frozen=True)
class Code:
    """Of so many bytes (``size``). ``ends``: how many of what it gives are whole with each word of the bus; ``most``:
    how many can be whole with one. ``long``: of bytes by number, how often so many ones (``ONES``) begin them that
    these go alone."""

    size: int
    ends: tuple[int, ...]
    most: int
    long: Mapping[int, int]

    def whole(self, words: int) -> int:
        """How many bytes are whole with so many words."""
        return self.ends[words - 1] if words else 0

    def before(self, word: int) -> int:
        """How many have to be gone before a word is taken: two are held, and what began in the first goes whole."""
        return self.ends[word - 2] + 1 if word > 1 else 0


def packed(data: bytes) -> bytes:
    """The shortest code of these bytes."""
    numbers = _numbers(data)
    bits = []
    for block, kind in zip(numbers.tolist(), np.argmin(_lengths(numbers), axis=0).tolist(), strict=True):
        codes = _codes(kind)
        bits.append(_low_bits(kind, KIND_BITS))
        bits += [codes[number] for number in block if number >= 0]
    text = "".join(bits).encode()
    return np.packbits(np.frombuffer(text, np.uint8) - ord("0"), bitorder="little").tobytes()


def code_of(data: bytes, word: int) -> Code:
    numbers = _numbers(data)
    lengths = _lengths(numbers)
    kinds = np.argmin(lengths, axis=0)
    plain, ones = kinds[:, None] == PLAIN, numbers >> kinds[:, None]
    bits = np.where(plain, 8, ones + 1 + kinds[:, None])
    bits[:, 0] += KIND_BITS
    alone = np.where(plain, 0, ones // ONES).reshape(-1)[: len(data)]
    behind = bits.reshape(-1)[: len(data)].cumsum()
    words = range(1, pieces(int(behind[-1]), word) + 1)
    ends = np.searchsorted(behind, [word * number for number in words], side="right")
    size, most = pieces(int(behind[-1]), 8), int(np.diff(ends, prepend=0).max())
    return Code(size, tuple(ends.tolist()), most, {int(at): int(alone[at]) for at in np.flatnonzero(alone)})


def _numbers(data: bytes) -> NDArray[Any]:
    """By block; -1 behind the last byte."""
    values = np.frombuffer(data, np.int8).astype(np.int32)
    numbers = np.where(values < 0, -2 * values - 1, 2 * values)
    return np.pad(numbers, (0, -len(numbers) % BLOCK), constant_values=-1).reshape(-1, BLOCK)


def _lengths(numbers: NDArray[Any]) -> NDArray[Any]:
    """Bits of each block, by the way in which it is written."""
    there = numbers >= 0
    ways = [np.where(there, (numbers >> low) + 1 + low, 0).sum(axis=1) for low in range(PLAIN)]
    return np.array([*ways, 8 * there.sum(axis=1)])


def _low_bits(value: int, count: int) -> str:
    return "".join(str(value >> bit & 1) for bit in range(count))


@cache
def _codes(kind: int) -> tuple[str, ...]:
    """By a byte's number."""
    if kind == PLAIN:
        return tuple(_low_bits((number >> 1) ^ -(number & 1), 8) for number in range(256))
    return tuple("1" * (number >> kind) + "0" + _low_bits(number, kind) for number in range(256))
