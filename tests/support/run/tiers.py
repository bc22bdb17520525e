"""Which tests are slow, which run first, and when a run that has a limit stops.

A test with the mark ``covering`` is a cross product: ``make test`` runs rows in which each value of each parameter
comes up once, ``make test-full`` all of them. ``covering(2)``: each pair of values. Of a test with the mark
``sample(n)``, a list of cases of one kind, ``make test`` runs so many, spread over the list. With ``rotating(n)`` it
runs n, others where ``UACCEL_ROTATION`` is another number, and the rest is ``long``. Of the functions in
``by_turns.txt`` it runs one row of ``TURNS``, and where that number is the next one those beside them.

Continuous integration cannot run all. ``UACCEL_UNTIL`` (seconds since 1970): tests that would begin later are left out,
and listed at the end by file. ``UACCEL_ROTATION`` (a number): where among the files the run begins, so that a handful
of runs covers all of them. ``UACCEL_TOUCHED``: the files of the change, whose tests run first.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from math import gcd
from pathlib import Path

import pytest

UNTIL = "UACCEL_UNTIL"
ROTATION = "UACCEL_ROTATION"
TOUCHED = "UACCEL_TOUCHED"
GUARDS = ("tests/networks/", "tests/accelerator/", "tests/frontend/torch/", "tests/packaging/")
"""What guards most is not rotated: whole networks, on each accelerator, from each front end, as users install it."""
GOLDEN = 0.6180339887498949
"""Multiples of it fall far from each other, whatever the numbers of the runs."""
LEFT_OUT = "no time left for it"
TURNS = 8
"""So many commits run each of the tests that take turns once."""
TURNS_FILE = Path(__file__).with_name("by_turns.txt")
BY_TURNS = frozenset(TURNS_FILE.read_text(encoding="utf-8").split())
"""The functions whose quick rows take longest together; ``support/run/turns.py`` measures them and writes the list."""


def mark_slow(items: Sequence[pytest.Item]) -> None:
    """Leave to ``make test-full`` what ``make test`` has no time for.

    Tests of examples are copied to where nobody knows these marks: of them, those that ask for a board are slow."""
    tests: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and not any(map(item.get_closest_marker, ("slow", "long"))):
            tests.setdefault(function_of(item), []).append(item)
    for name, rows in tests.items():
        builds = name.startswith("examples/") and "uaccel_board" in rows[0].fixturenames
        chosen: Collection[int] = () if builds else range(len(rows))
        left = pytest.mark.slow
        for mark in rows[0].iter_markers() if len(rows) > 1 else ():
            if mark.name == "covering":
                chosen = cover([values_of(row) for row in rows], *mark.args)
            elif mark.name == "sample":
                chosen = spread(len(rows), *mark.args)
            elif mark.name == "rotating":
                rotation = int(os.environ.get(ROTATION, 0))
                chosen, left = turn(len(rows), mark.args[0], rotation), pytest.mark.long
        for number, row in enumerate(rows):
            if number not in chosen:
                row.add_marker(left)
    take_turns([item for rows in tests.values() for item in rows if item.get_closest_marker("slow") is None])


def take_turns(items: Iterable[pytest.Item]) -> None:
    """Make rows of the functions in ``BY_TURNS`` slow, but for one of each ``TURNS`` neighbours, whose turn it is."""
    rotation, seen = int(os.environ.get(ROTATION, 0)), Counter[str]()
    for item in items:
        file = item.location[0]
        if function_of(item) in BY_TURNS and item.get_closest_marker("long") is None:
            seen[file] += 1
            if (seen[file] + rotation) % TURNS:
                item.add_marker(pytest.mark.slow)


def function_of(item: pytest.Item) -> str:
    """Its file and name, without its parameters."""
    return item.nodeid.partition("[")[0]


def values_of(row: pytest.Function) -> dict[str, int | str]:
    """Of its parameters; objects by who they are."""
    return {name: value if isinstance(value, str) else id(value) for name, value in row.callspec.params.items()}


def spread(count: int, wanted: int) -> set[int]:
    """So many numbers below ``count``, the first and the last among them."""
    return {round(number * (count - 1) / max(1, wanted - 1)) for number in range(wanted)}


def turn(count: int, wanted: int, rotation: int) -> set[int]:
    """So many neighbours below ``count``; those of a rotation lie far from those of the one before, and all come up."""
    places = -(-count // wanted)
    step = next(step for step in range(round(places * GOLDEN), 2 * places + 2) if gcd(step, places) == 1)
    first = rotation * step % places * wanted
    return {min(first + number, count - 1) for number in range(wanted)}


def cover(rows: Sequence[Mapping[str, int | str]], strength: int = 1) -> set[int]:
    """Numbers of rows in which every combination of ``strength`` values of any row comes up: few, not the fewest."""
    left = [set(combinations(sorted(row.items()), min(strength, len(row)))) for row in rows]
    chosen: set[int] = set()
    while any(left):
        best = max(range(len(rows)), key=lambda number: (len(left[number]), -number))
        chosen.add(best)
        covered = set(left[best])
        left = [each - covered for each in left]
    return chosen


def touched() -> set[str]:
    """The files of the change, as Git names them."""
    return set(os.environ.get(TOUCHED, "").split("\n"))


def mark_touched(items: Iterable[pytest.Item]) -> None:
    files = touched()
    for item in items:
        if item.location[0] in files:
            item.add_marker(pytest.mark.touched)


def mark_drawn(items: Iterable[pytest.Item]) -> None:
    """What is quick has run before the slow ones, and needs no second run unless that draws other cases."""
    for item in items:
        if isinstance(item, pytest.Function) and getattr(item.obj, "is_hypothesis_test", False):
            item.add_marker(pytest.mark.drawn)


def in_order(items: list[pytest.Item], rotation: int) -> list[pytest.Item]:
    """What the change touched, the guards, the other files from where the rotation says; files stay together."""
    files = list(dict.fromkeys(item.location[0] for item in items))
    first = [file for file in files if file in touched()]
    guards = [file for file in files if file.startswith(GUARDS) and file not in first]
    others = [file for file in files if file not in first and file not in guards]
    start = int(rotation * GOLDEN % 1 * len(others))
    place = {file: number for number, file in enumerate([*first, *guards, *others[start:], *others[:start]])}
    return sorted(items, key=lambda item: place[item.location[0]])


def leave_out_when_late() -> None:
    """Skip the test that is about to begin where the run's time is over."""
    until = os.environ.get(UNTIL)
    if until is not None and time.time() > float(until):
        pytest.skip(LEFT_OUT)


def left_out(skipped: Iterable[pytest.TestReport]) -> Counter[str]:
    """How many tests of each file there was no time for."""
    return Counter(
        report.location[0]
        for report in skipped
        if isinstance(report.longrepr, tuple) and LEFT_OUT in str(report.longrepr[2])
    )
