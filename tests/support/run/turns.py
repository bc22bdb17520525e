"""Measures what quick tests take, and keeps the list of those that take turns.

``PYTHONPATH=tests python -m pytest -p support.run.turns -m "not slow and not long" tests/ops`` runs all quick tests
there and writes the functions that need ``SECONDS`` of a processor or more to ``by_turns.txt``. What it did not run
stays listed as it was. The time of a processor, for tests and what they start, is the same on a busy machine.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator

import pytest

from support.run import tiers

SECONDS = 0.5
CORE = ("tests/cli/test_demo.py", "tests/cli/test_run.py", "tests/cli/test_compile.py", "tests/mlperf/")
"""These run at every commit: whole runs on this computer and on emulated boards."""
_taken = defaultdict[str, float](float)


def pytest_configure() -> None:
    tiers.TURNS = 1  # each test has its turn


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = sum(os.times()[:4])
    result = yield
    _taken[tiers.function_of(item)] += sum(os.times()[:4]) - before
    return result


def pytest_sessionfinish() -> None:
    listed = (tiers.BY_TURNS - _taken.keys()) | {name for name, seconds in _taken.items() if seconds >= SECONDS}
    lines = [f"{name}\n" for name in sorted(listed) if not name.startswith(CORE)]
    tiers.TURNS_FILE.write_text("".join(lines), encoding="utf-8")
