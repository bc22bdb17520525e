"""The bus that fetching, loading and storing share, and the memories behind it: how long words take to come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from uaccel.basics.numbers import pieces
from uaccel.machines.machine import Dma

RAM, CONSTANTS = range(2)
FIRST_COMMAND = 1 << 60
"""The word in which the stream begins: no place's."""
PLACE = 1 << 40
"""Words from place to place."""


@dataclass(frozen=True)
class Outside:
    """A memory outside: cycles that the bus waits for the ``first`` word of a burst, and for each ``further`` one. A
    burst that goes on where the memory's last one ended has no first word. A memory that has a word in each cycle takes
    addresses ahead: of a transfer's bursts the first one waits, from when it was asked for."""

    first: int
    further: int

    def __post_init__(self) -> None:
        if not 0 <= self.further <= self.first:
            raise ValueError(
                f"a memory waits {self.first} cycles for a first word and {self.further} for a further one; wanted "
                "neither below 0, and the first wait no shorter"
            )

    @property
    def ahead(self) -> bool:
        return self.further == 0

    def cycles(self, words: int, *, goes_on: bool) -> int:
        """Of a burst."""
        return words * (1 + self.further) + (0 if goes_on else self.first - self.further)


@dataclass(frozen=True)
class Waiting(Dma):
    """What waits for each word: ``further`` cycles."""

    further: int

    def cycles(self, row: int, rows: int = 1) -> int:
        return self.start_up + rows * pieces(row, self.bytes_per_cycle) * (1 + self.further)


@dataclass(frozen=True)
class Bus:
    """``word``: bytes. Loads and stores ask for up to ``burst`` words at once, and loads for the next ones while fewer
    than ``under_way`` are missing. Fetching comes before loads; stores have words of their own.

    Fetching asks for ``fetched`` words at once. They wait in a memory with ``room`` for so many words, for ``held``
    cycles at least. What a load brings is written on chip ``gathered`` words at once. Commands and constants
    (place 0) lie in ``constants``, everything else in ``ram``."""

    word: int
    burst: int
    ram: Outside
    constants: Outside
    under_way: int = 8
    fetched: int = 8
    room: int = 16
    held: int = 2
    gathered: int = 1

    def constants_by(self, load: Dma) -> Dma:
        """As fast as constants come, if nobody else has the bus."""
        waits = self.constants
        return Waiting(self.word, load.start_up + waits.first - waits.further, waits.further)

    def runs(self, fields: Mapping[str, int]) -> Iterator[tuple[int, int]]:
        """Of a transfer: the words that each run touches, by the first one and their number."""
        base = fields["place"] * PLACE * self.word + fields["offset"]
        for plane in range(fields["planes"]):
            for run in range(fields["runs"]):
                yield self.words(base + plane * fields["stride_plane"] + run * fields["stride_run"], fields["run"])

    def words(self, begin: int, size: int) -> tuple[int, int]:
        first = begin // self.word
        return first, pieces(begin + size, self.word) - first
