"""An object is put together from its pieces, in whatever order and how often they come, in memory that is bounded."""

from __future__ import annotations

import random

import pytest

from uaccel.session.link import MOST_GAPS, Pieces

WHOLE = bytes(range(1, 101))


def put(pieces: Pieces, *ranges: tuple[int, int]) -> list[int]:
    return [pieces.add(begin, WHOLE[begin:end]) for begin, end in ranges]


@pytest.mark.parametrize(
    ("ranges", "new", "missing"),
    [
        ([], [], [(0, 100)]),
        ([(0, 100)], [100], []),
        ([(10, 20), (10, 20)], [10, 0], [(0, 10), (20, 80)]),
        ([(10, 20), (20, 30)], [10, 10], [(0, 10), (30, 70)]),
        ([(20, 30), (10, 20)], [10, 10], [(0, 10), (30, 70)]),
        ([(10, 60), (20, 30)], [50, 0], [(0, 10), (60, 40)]),
        ([(20, 30), (10, 60)], [10, 40], [(0, 10), (60, 40)]),
        ([(10, 20), (40, 50), (15, 45)], [10, 10, 20], [(0, 10), (50, 50)]),
        ([(10, 20), (30, 40), (50, 60), (0, 100)], [10, 10, 10, 70], []),
        ([(30, 40), (35, 45)], [10, 5], [(0, 30), (45, 55)]),
        ([(5, 5)], [0], [(0, 100)]),
    ],
)
def test_what_is_new_and_what_is_missing(
    ranges: list[tuple[int, int]], new: list[int], missing: list[tuple[int, int]]
) -> None:
    pieces = Pieces(100)
    assert put(pieces, *ranges) == new
    assert pieces.missing() == missing


def test_any_pieces_make_the_whole() -> None:
    rng = random.Random(1)
    for _ in range(100):
        pieces, seen = Pieces(100), set[int]()
        while pieces.missing():
            begin = rng.randrange(100)
            end = min(100, begin + rng.randint(0, 20))
            before = len(seen)
            seen |= set(range(begin, end))
            assert put(pieces, (begin, end)) == [len(seen) - before]
            gaps = {at for offset, length in pieces.missing() for at in range(offset, offset + length)}
            assert gaps == set(range(100)) - seen
        assert pieces.value() == WHOLE


def test_what_lies_beyond_the_end_is_left_out() -> None:
    pieces = Pieces(10)
    assert [pieces.add(8, b"12345"), pieces.add(10, b"x"), pieces.add(2**32 - 1, b"x" * 64)] == [2, 0, 0]
    assert pieces.add(0, bytes(8)) == 8
    assert pieces.value() == bytes(8) + b"12"


def test_a_size_that_becomes_known_at_the_end() -> None:
    pieces = Pieces(most=100)
    put(pieces, (0, 10), (50, 60))
    pieces.size = 20
    assert pieces.missing() == [(10, 10)]
    put(pieces, (10, 20))
    assert pieces.missing() == []
    assert pieces.value() == WHOLE[:20]


def test_an_object_of_which_little_is_known_has_an_end_all_the_same() -> None:
    pieces = Pieces(most=1000)
    assert sum(pieces.add(64 * number, bytes(64)) for number in range(100_000)) == 1000


def test_gaps_are_counted() -> None:
    """They can be closed, but no more of them be made."""
    pieces = Pieces(1 << 20)
    added = [pieces.add(3 * number, b"x") for number in range(2 * MOST_GAPS)]
    assert added == [1] * MOST_GAPS + [0] * MOST_GAPS
    assert pieces.add(1, b"yy") == 2
    assert pieces.add(9 * MOST_GAPS, b"z") == 1
    assert pieces.add(10 * MOST_GAPS, b"z") == 0
