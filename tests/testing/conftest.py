"""Runs of pytest within the test: in a process and a folder of their own, with the plugin as it is installed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.device.boards import board_with_tools
from uaccel.session.emulated_board import Desk

LONGEST = 300.0
Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``run(source, "--uaccel-board", "host")`` runs one test file; ``conftest`` stands beside it."""
    monkeypatch.delenv("UACCEL_PORT", raising=False)
    monkeypatch.setenv("COLUMNS", "400")

    def run_file(source: str, *options: str | Path, conftest: str = "") -> pytest.RunResult:
        pytester.makepyfile(test_it=source)
        pytester.makeconftest(conftest)
        try:
            return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-rA", *options, timeout=LONGEST)
        except subprocess.TimeoutExpired as error:
            raise AssertionError("the run hangs") from error

    return run_file


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    board_with_tools("netduino_plus_2")
    with Desk(tmp_path / "desk") as desk:
        yield desk
