"""Constants as a lossless code, which loads unpack: for weights that come from a slow memory.

Blocks of 32 bytes, each behind 3 bits that say how its bytes are written. 7: as they are. Else with that many low bits:
0, -1, 1, -2, 2 and so on are numbered from 0 on, and a byte's number is its high part as ones, a zero, and the low bits
(Rice's code). The lowest bit of a byte comes first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.basics.numbers import pieces
from uaccel.streams.layer import Layer, Part

BLOCK: Final = 32
KIND_BITS: Final = 3
PLAIN: Final = 7


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


def packed_size(data: bytes) -> int:
    """In bytes, without packing it."""
    return pieces(int(_lengths(_numbers(data)).min(axis=0).sum()) + KIND_BITS * pieces(len(data), BLOCK), 8)


@dataclass(frozen=True, eq=False)
class Unpacker:
    """Gives up to ``bytes_per_cycle``, a word's first ones ``behind`` cycles later. ``known``: the code's sizes, by
    layer and part of it."""

    bytes_per_cycle: int
    behind: int = 0
    known: dict[tuple[int, range, range], tuple[Layer, int]] = field(default_factory=dict)

    def size(self, layer: Layer, part: Part) -> int:
        """Of the code of a part's weights."""
        key = (id(layer), part.blocks, part.steps)
        if key not in self.known:
            self.known[key] = (layer, packed_size(layer.weights(part.blocks, part.steps)))
        return self.known[key][1]

    def cycles(self, size: int) -> int:
        """That so many bytes take at least, behind the first word."""
        return pieces(size, self.bytes_per_cycle)


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
