"""Finds what lies in memories on chip while a stream runs: which bytes are in use from which command to which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from uaccel.accelerator.machine import Tile
from uaccel.accelerator.streams.machine import Access, Command

OUTSIDE: Final = "place "  # Begins the names of memories that are not on chip.
MOST: Final = 5000  # Commands of a stream whose tiles are told; a picture of more shows nothing.
Life = tuple[int, int]  # The commands that write a value first and read it last.


def tiles_of(commands: Sequence[Command]) -> tuple[Tile, ...]:
    """The tiles in the order of their memories and addresses. Bytes are in use from the command that writes them to the
    last one that reads what was written; several writes before a read are parts of one value. A stream of more than
    ``MOST`` commands has none."""
    if len(commands) > MOST:
        return ()
    touched: dict[str, list[tuple[int, Access]]] = {}
    for number, command in enumerate(commands):
        for access in command.accesses:
            if not access.memory.startswith(OUTSIDE):
                touched.setdefault(access.memory, []).append((number, access))
    return tuple(tile for memory, accesses in touched.items() for tile in _in_memory(memory, accesses))


def _in_memory(memory: str, accesses: Sequence[tuple[int, Access]]) -> Iterator[Tile]:
    """Cuts the memory where any access begins or ends; neighbouring pieces with equal lives are one tile."""
    edges = sorted({edge for _, access in accesses for edge in (access.begin, access.end)})
    places = {edge: place for place, edge in enumerate(edges)}
    pieces: list[list[tuple[int, bool]]] = [[] for _ in edges[1:]]
    for number, access in accesses:
        for piece in pieces[places[access.begin] : places[access.end]]:
            piece.append((number, access.writes))
    open_tiles: dict[Life, int] = {}
    for begin, piece in zip(edges, [*pieces, []], strict=True):
        lives = dict.fromkeys(_lives(piece))
        for life in [life for life in open_tiles if life not in lives]:
            yield Tile(memory, open_tiles.pop(life), begin, *life)
        for life in lives:
            open_tiles.setdefault(life, begin)


def _lives(uses: Sequence[tuple[int, bool]]) -> Iterator[Life]:
    """The lives of the values that some bytes hold one after the other; what nobody reads has none."""
    first: int | None = None
    for writes, group in groupby(uses, key=lambda use: use[1]):
        numbers = [number for number, _ in group]
        if writes:
            first = numbers[0]
        elif first is not None:
            yield first, numbers[-1]
            first = None
