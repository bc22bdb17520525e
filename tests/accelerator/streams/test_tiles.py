"""What lies on chip while commands run: from the write to the last read of what was written."""

from __future__ import annotations

import pytest

from uaccel.accelerator.machine import Tile
from uaccel.accelerator.streams import commands as stream
from uaccel.accelerator.streams.commands import tiles_of
from uaccel.accelerator.streams.machine import Access, Command

Touched = tuple[str, int, int, bool]
WRITES, READS = True, False


def command(*touched: Touched) -> Command:
    return Command("k", "compute", {}, tuple(Access(*one) for one in touched), 1, 4, "layer", "")


@pytest.mark.parametrize(
    ("commands", "wanted"),
    [
        # Read twice, and once more after it was overwritten.
        ([("a", 0, 8, WRITES), ("a", 0, 8, READS), ("a", 0, 8, READS)], [("a", 0, 8, 0, 2)]),
        (
            [("a", 0, 8, WRITES), ("a", 0, 8, READS), ("a", 0, 8, WRITES), ("a", 0, 8, READS)],
            [("a", 0, 8, 0, 1), ("a", 0, 8, 2, 3)],
        ),
        # Parts of one value: each from its own write on.
        (
            [("a", 0, 4, WRITES), ("a", 4, 8, WRITES), ("a", 0, 8, READS)],
            [("a", 0, 4, 0, 2), ("a", 4, 8, 1, 2)],
        ),
        # A part is read later than the rest.
        ([("a", 0, 8, WRITES), ("a", 0, 8, READS), ("a", 4, 8, READS)], [("a", 0, 4, 0, 1), ("a", 4, 8, 0, 2)]),
        # What nobody reads, or nobody wrote, takes no room; what is outside is not on chip.
        ([("a", 0, 8, WRITES), ("w", 0, 8, READS), ("place 1", 0, 8, WRITES), ("place 1", 0, 8, READS)], []),
        (
            [("a", 0, 8, WRITES), ("w", 0, 4, WRITES), ("a", 0, 8, READS), ("w", 0, 4, READS)],
            [("a", 0, 8, 0, 2), ("w", 0, 4, 1, 3)],
        ),
    ],
)
def test_tiles(commands: list[Touched], wanted: list[tuple[str, int, int, int, int]]) -> None:
    found = tiles_of([command(touched) for touched in commands])
    assert sorted(found) == sorted(Tile(*tile) for tile in wanted)


def test_a_stream_that_is_too_long_to_be_drawn_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MOST", 1)
    assert tiles_of([command(("a", 0, 8, WRITES)), command(("a", 0, 8, READS))]) == ()
