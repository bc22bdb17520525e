"""Hot spots of a layer: loops found in what was executed. Every instruction is a ``nop`` of two bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from uaccel.cycles import CycleEstimator, Executed, ExecutedBlock, Mark, core_of, hot_spots
from uaccel.cycles.instructions import ExecutedInstruction, functions_in

Place = tuple[int, int]
"""A block: its address and how many instructions it has."""
ENTRY, HEAD, INNER, TAIL, LEAVE = (0x100, 2), (0x104, 2), (0x108, 2), (0x10C, 1), (0x10E, 1)
FROM_ABOVE, ROUND = (0x100, 4), (0x104, 2)
JOIN, COLD = (0x104, 3), (0x10A, 2)
CALL, CALLED, BACK = (0x200, 2), (0x104, 6), (0x204, 2)
FUNCTIONS = {0x100: "f", 0x200: "g"}

ROWS: dict[str, tuple[list[Place], dict[tuple[str, int, bool], tuple[int, int, int]]]] = {
    # function, where in it, is it a loop: instructions, times, instructions executed in it and nothing further inside
    "a loop in a loop": (
        [ENTRY, *3 * [HEAD, *5 * [INNER], TAIL], LEAVE],
        {("f", 8, True): (2, 15, 30), ("f", 4, True): (5, 3, 9), ("f", 0, False): (128, 1, 3)},
    ),
    "the first round comes from above": (
        [FROM_ABOVE, *7 * [ROUND], LEAVE],
        {("f", 4, True): (2, 8, 16), ("f", 0, False): (128, 1, 3)},
    ),
    "two rounds": (
        [FROM_ABOVE, ROUND, LEAVE],
        {("f", 4, True): (2, 2, 4), ("f", 0, False): (128, 1, 3)},
    ),
    "what stands at the end and jumps back": ([ENTRY, COLD, JOIN, LEAVE], {("f", 0, False): (128, 1, 8)}),
    "a loop that calls": (
        [*9 * [CALL, CALLED, BACK]],
        {("f", 0, False): (128, 0, 54), ("g", 0, True): (4, 9, 36)},
    ),
}


def estimator() -> CycleEstimator:
    core = core_of("cortex-m3")
    assert core is not None
    return CycleEstimator(core, {at: ExecutedInstruction(at, 2, "nop") for at in range(0x100, 0x300, 2)}, FUNCTIONS)


def mark_of(path: list[Place]) -> Mark:
    blocks = [ExecutedBlock(*place) for place in path]
    rows: dict[ExecutedBlock, dict[ExecutedBlock, int]] = {block: {} for block in blocks}
    for before, block in pairwise(blocks):
        rows[block][before] = rows[block].get(before, 0) + 1
    return Mark(0, tuple(Executed(block, blocks.count(block), before) for block, before in rows.items()))


@pytest.mark.parametrize("row", list(ROWS))
def test_loops_are_found_and_what_they_take(row: str) -> None:
    path, wanted = ROWS[row]
    mark, by = mark_of(path), estimator()
    found = hot_spots(by, mark)
    told = {(spot.function, spot.offset, spot.loop): (spot.instructions, spot.times) for spot in found}
    assert told == {place: (instructions, times) for place, (instructions, times, _) in wanted.items()}
    for spot in found:
        own = wanted[spot.function, spot.offset, spot.loop][2]
        assert own <= spot.cycles <= 5 * own, "a nop takes a cycle, a jump three more at the most"
    assert sum(spot.cycles for spot in found) == pytest.approx(by.of([mark]))
    assert sum(spot.share for spot in found) == pytest.approx(1)
    assert [spot.cycles for spot in found] == sorted((spot.cycles for spot in found), reverse=True)


def test_a_loop_is_listed_and_a_function_is_not() -> None:
    inner, _, function = hot_spots(estimator(), mark_of(ROWS["a loop in a loop"][0]))
    assert inner.listing == ("108  nop", "10a  nop")
    assert function.listing == ()
    long = hot_spots(estimator(), mark_of([(0x100, 60), (0x100, 60)]))[0]
    assert len(long.listing) == 49
    assert long.listing[-1] == "... 12 more"


def test_nothing_is_said_of_code_that_the_listing_lacks() -> None:
    assert hot_spots(estimator(), mark_of([(0x400, 2), (0x400, 2)])) == ()


def test_names_of_functions() -> None:
    listing = "firmware.elf:\n\n00000100 <f>:\n     100:\tbf00      \tnop\n00000200 <layer_a.constprop.0>:\n"
    assert functions_in(listing) == {0x100: "f", 0x200: "layer_a.constprop.0"}
