"""Places for intermediate buffers: offsets into the scratch memory, by first fit in order of size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ALIGNMENT = 8
LARGEST_LOCAL = 64
"""Bytes up to which a buffer may live on the stack."""


@dataclass(frozen=True)
class Demand:
    """A buffer that is live from statement ``first`` to statement ``last``."""

    key: Any
    size: int
    first: int
    last: int

    def meets(self, other: Demand) -> bool:
        return self.first <= other.last and other.first <= self.last


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def place(demands: Sequence[Demand]) -> tuple[dict[Any, int], int]:
    """The offset of each key, and the bytes needed."""
    placed: list[tuple[int, Demand]] = []
    for demand in sorted(demands, key=lambda d: -d.size):
        offset = 0
        for start, other in sorted(placed, key=lambda pair: pair[0]):
            if demand.meets(other) and offset < start + aligned(other.size) and start < offset + demand.size:
                offset = start + aligned(other.size)
        placed.append((offset, demand))
    return {d.key: offset for offset, d in placed}, max((o + aligned(d.size) for o, d in placed), default=0)
