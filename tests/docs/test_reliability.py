"""docs/reference/reliability.md has the stored figures, and they name files and tests that are there."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from support.run.docblocks import ROOT

BENCHMARKS = ROOT / "benchmarks"


def test_the_page_is_as_its_script_writes_it() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "reliability.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


@pytest.fixture
def mutation() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((BENCHMARKS / "mutation.json").read_text())
    return stored


def test_files_and_tests_of_planted_faults_are_there(mutation: dict[str, Any]) -> None:
    named = [name for row in mutation.values() for name in (row["file"], *row["tests"])]
    files = [name.removeprefix("--deselect=").partition("::")[0] for name in named]
    assert [name for name in files if not (ROOT / name).is_file()] == []


def test_every_survivor_is_counted_and_has_a_reason(mutation: dict[str, Any]) -> None:
    for name, row in mutation.items():
        assert row["found"] + len(row["survived"]) == row["tried"], name
        assert [one["was"] for one in row["survived"] if not one.get("reason")] == [], name


def test_faults_are_where_a_language_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from mutants import mutants  # type: ignore[import-not-found]

    python = 'def f(x: "int | None" = 1) -> int:\n    """1 + 1"""\n    return x + 1 if x < 2 and not x else 0\n'
    told = [one.told(python)["becomes"] for one in mutants(python, python=True)]
    assert told == [
        'def f(x: "int | None" = 2) -> int:',
        "return x - 1 if x < 2 and not x else 0",
        "return x + 2 if x < 2 and not x else 0",
        "return x + 1 if x <= 2 and not x else 0",
        "return x + 1 if x < 3 and not x else 0",
        "return x + 1 if x < 2 or not x else 0",
        "return x + 1 if x < 2 and  x else 0",
        "return x + 1 if x < 2 and not x else 1",
    ]
    c = "/* 1 + 1 */\n#define ONE 1\nint f(const uint8_t *p) { return p->size << 1u; }\n"
    assert [one.told(c)["becomes"][-16:] for one in mutants(c, python=False)] == [
        "p->size >> 1u; }",
        "p->size << 2u; }",
    ]
