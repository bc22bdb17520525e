"""How long tensors are live where some layers of a region run side by side."""

from __future__ import annotations

import pytest

from uaccel.accelerator.streams.tiling import ResidentRange, lives_beside

SPAN = (3, 6)  # Layers 3, 4 and 5 form a chain.

ROWS = [
    ("made before and read after", (1, 7), (1, 7)),
    ("made before, read by the first of the chain", (1, 3), (1, 5)),
    ("made before, read in the middle", (2, 4), (2, 5)),
    ("made by the last, read after", (5, 7), (3, 7)),
    ("made by the first, read after", (3, 8), (3, 8)),
    ("made in the middle, read after", (4, 6), (3, 6)),
    ("made and read in the chain", (3, 5), None),
    ("before the chain", (0, 2), (0, 2)),
    ("behind the chain", (6, 8), (6, 8)),
]


@pytest.mark.parametrize(("life", "wanted"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_a_chain_reads_or_makes_is_live_as_long_as_all_of_it(
    life: tuple[int, int], wanted: tuple[int, int] | None
) -> None:
    found = lives_beside([ResidentRange("x", 8, *life)], [SPAN])
    assert [(one.first, one.last) for one in found] == ([] if wanted is None else [wanted])


def test_between_two_chains_a_tensor_is_live_through_both() -> None:
    found = lives_beside([ResidentRange("x", 8, 4, 7)], [(3, 6), (6, 9)])
    assert [(one.first, one.last) for one in found] == [(3, 8)]
