"""Places for intermediate buffers: offsets into the scratch memory, by the planner of ``memory/``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.basics.numbers import round_up
from uaccel.memory import Block, plan

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


def place(demands: Sequence[Demand]) -> tuple[dict[Any, int], int]:
    """The offset of each key, and the bytes needed."""
    blocks = [Block(str(number), d.size, d.first, d.last, ALIGNMENT) for number, d in enumerate(demands)]
    planned = plan(blocks)
    offsets = {demand.key: planned.offsets[block.name] for demand, block in zip(demands, blocks, strict=True)}
    return offsets, round_up(planned.size, ALIGNMENT)
