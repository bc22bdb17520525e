"""How long commands take: the rules of ``docs/reference/npu.md``, which are those of the RTL."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from uaccel.streams import Command, Results

if TYPE_CHECKING:
    from .machine import Npu

FED, WEIGHED, UNFINISHED, ADDED = 29, 16, 6, 7
SLID, SLID_WEIGHED, SHARED = 28, 17, 16
POOLED, MEAN = 19, 8
ELEMENTS, LOOKED_UP, PACKED, SYNC = 14, 6, 5, 2
UNPACKING: Final = 2
"""From a word of a code until its first bytes are in the memory."""
ADDITION_WORDS: Final = 12
KEPT: Final = 32
"""Taps of a window that slides."""
SHORT: Final = dict.fromkeys(("load", "store", "add"), 14)
CHECKS: Final = SHORT | {"convolve": 34, "depthwise": 30, "pool": 16, "sync": 4, "lookup": 12, "pack": 10}
DIVISION: Final = 16
"""Cycles, where channels share one of the input."""
ACTIVATIONS, WEIGHTS = range(2)
"""Memories, by the number that a LOAD gives."""
BEHIND: Final = 2
"""Cycles from a command's last result until it ends."""


class Timed(NamedTuple):
    """What a command takes, and when it writes to a memory that loads write, too."""

    cycles: int
    results: Results | None = None


class Feeding(NamedTuple):
    """Cycles that feeding a window takes; ``late``: how much its vectors come behind one a cycle."""

    pieces: int
    late: int


@cache
def feeding(run: int, begin: int, end: int, rows: int) -> Feeding:
    """Bytes ``begin`` to ``end`` of a window in which ``run`` lie one after the other: a piece of a run in each cycle,
    and one more where the last piece is too much for its vector."""
    at, pieces, vectors, late = begin, 0, 0, 0
    while at < end:
        piece = min(rows, run - at % run, end - at)
        over = (at - begin) % rows + piece > rows
        at += piece
        pieces += 1
        if (at - begin) // rows > vectors:
            late = max(late, pieces - 1 - vectors)
            vectors += 1
        if at == end and (at - begin) % rows:
            pieces += over
            late = max(late, pieces - 1 - vectors)
    return Feeding(pieces, late)


def convolve(fed: Feeding, pixels: int, array: int, skipped: int) -> int:
    """``array``: cycles that it takes for a pixel; ``skipped``: taps before the first step."""
    return FED + skipped + fed.late + max(pixels * array, (pixels - 1) * fed.pieces + array)


class Sliding(NamedTuple):
    """Cycles of a row's first window, and of each further one."""

    first: int
    following: int

    def row(self, columns: int) -> int:
        return self.first + (columns - 1) * self.following


def sliding(npu: Npu, kernel: tuple[int, ...], stride_x: int, dilation_x: int) -> Sliding:
    """Returns how a block of channels slides. From column to column some taps stay, unless there are too many."""
    high, wide = kernel
    many = high * wide > KEPT
    column = high if many else -(-high // npu.ports)
    more = 0 if many else -(-high * wide // npu.rows) - 1
    moved = min(stride_x, wide) if not many and dilation_x == 1 else wide
    return Sliding(wide * column + more, moved * column + more)


def pooled(npu: Npu, kernel: tuple[int, ...], average: bool) -> Sliding:
    pieces = int(kernel[1] * -(-kernel[0] // npu.ports))
    return Sliding(pieces, max(pieces, MEAN + 1) if average else pieces)


def addition_reads(npu: Npu) -> int:
    return -(-4 * ADDITION_WORDS // npu.tile_bytes)


def checking(command: Command) -> int:
    """Its numbers are held against the memories, two cycles a product."""
    return CHECKS[command.kind] + (DIVISION if command.fields.get("multiplier", 1) > 1 else 0)
