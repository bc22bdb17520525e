"""Runs with a limit: what begins first, what is left out, and that it is told."""

from __future__ import annotations

import time
from fnmatch import fnmatch
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.run import tiers

ROOT = Path(__file__).resolve().parents[2]
FILES = ["accelerators/a.py", "tests/cli/b.py", "tests/networks/c.py", "tests/ops/d.py", "tests/unit/e.py"]


def order(rotation: int) -> list[str]:
    items: list[Any] = [SimpleNamespace(location=(file, number, "")) for file in FILES for number in range(2)]
    return [item.location[0] for item in tiers.in_order(items, rotation)]


@pytest.mark.parametrize(("strength", "fewest", "most"), [(1, 4, 4), (2, 12, 14)])
def test_each_combination_of_values_is_covered(strength: int, fewest: int, most: int) -> None:
    rows = [{"a": a, "b": b, "c": c} for a, b, c in product(range(4), range(3), range(2))]
    chosen = [rows[number] for number in tiers.cover(rows, strength)]
    wanted = {each for row in rows for each in combinations(row.items(), strength)}
    assert {each for row in chosen for each in combinations(row.items(), strength)} == wanted
    assert fewest <= len(chosen) <= most


@pytest.mark.parametrize(("count", "wanted", "chosen"), [(10, 3, {0, 4, 9}), (10, 1, {0}), (2, 5, {0, 1}), (1, 2, {0})])
def test_a_sample_is_spread(count: int, wanted: int, chosen: set[int]) -> None:
    assert tiers.spread(count, wanted) == chosen


@pytest.mark.parametrize(("count", "wanted"), [(120, 2), (7, 3), (1, 1), (2, 5)])
def test_all_have_their_turn(count: int, wanted: int) -> None:
    turns = [tiers.turn(count, wanted, rotation) for rotation in range(5, 5 + -(-count // wanted))]
    assert set().union(*turns) == set(range(count))
    assert all(len(turn) <= wanted for turn in turns)


def test_each_row_of_a_long_function_is_quick_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    long, count = min(tiers.BY_TURNS), 2 * tiers.TURNS + 1
    quick = []
    for rotation in range(4, 4 + tiers.TURNS):
        monkeypatch.setenv(tiers.ROTATION, str(rotation))
        items: list[Any] = [_Item(each, number) for each in (long, f"{long}_other") for number in range(count)]
        tiers.take_turns(items)
        quick += [item.location[1] for item in items[:count] if not item.marks]
        assert not any(item.marks for item in items[count:])
    assert sorted(quick) == list(range(count))


def test_the_functions_that_take_turns_are_there() -> None:
    named = [name.split("::") for name in tiers.BY_TURNS]
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file, *_ in named if (ROOT / file).is_file()}
    assert [file for file, *_, name in named if f"def {name}(" not in texts.get(file, "")] == []


class _Item:
    """As much of a test as is asked for."""

    def __init__(self, function: str, number: int) -> None:
        self.nodeid, self.marks = f"{function}[{number}]", list[str]()
        self.location = (function.partition("::")[0], number, "")

    def get_closest_marker(self, _name: str) -> None:
        return None

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.name)


def test_guards_come_first_and_files_stay_whole() -> None:
    for rotation in range(8):
        files = order(rotation)
        assert files[:2] == ["tests/networks/c.py"] * 2
        assert files[::2] == files[1::2]
        assert sorted(files[::2]) == FILES


def test_a_handful_of_runs_begins_everywhere() -> None:
    assert {order(rotation)[2] for rotation in range(7)} == set(FILES) - {"tests/networks/c.py"}


def test_what_the_change_touched_comes_first_the_long_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tiers.TOUCHED, "tests/ops/d.py\nREADME.md")
    for rotation in range(3):
        assert order(rotation)[1::2][:2] == ["tests/ops/d.py", "tests/networks/c.py"]
    marked: list[Any] = []
    items: list[Any] = [SimpleNamespace(location=(file, 0, ""), add_marker=marked.append) for file in FILES]
    tiers.mark_touched(items)
    assert [mark.name for mark in marked] == ["touched"]


def test_what_comes_too_late_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tiers.UNTIL, raising=False)
    tiers.leave_out_when_late()
    monkeypatch.setenv(tiers.UNTIL, str(time.time() + 60))
    tiers.leave_out_when_late()
    monkeypatch.setenv(tiers.UNTIL, str(time.time() - 1))
    with pytest.raises(pytest.skip.Exception, match="no time left for it"):
        tiers.leave_out_when_late()


def test_no_folder_of_tests_is_passed_over(pytestconfig: pytest.Config) -> None:
    """Pytest passes over folders by their names, without a word."""
    folders = {part for path in ROOT.glob("tests/**/test_*.py") for part in path.relative_to(ROOT).parts[:-1]}
    assert {"build", "cli"} <= folders
    assert [
        name for name in folders for pattern in pytestconfig.getini("norecursedirs") if fnmatch(name, pattern)
    ] == []


def test_it_is_counted_by_file() -> None:
    reports: list[Any] = [
        SimpleNamespace(location=("a.py", 1, ""), longrepr=("a.py", 1, "Skipped: no time left for it")),
        SimpleNamespace(location=("a.py", 2, ""), longrepr=("a.py", 2, "Skipped: no board")),
        SimpleNamespace(location=("b.py", 1, ""), longrepr=("b.py", 1, "Skipped: no time left for it")),
    ]
    assert tiers.left_out(reports) == {"a.py": 1, "b.py": 1}
