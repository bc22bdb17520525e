"""A core that issues two instructions at a time gets loops in an order of their own: the same bytes in fewer cycles."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN
from support.run.command import is_exact, process

PLAIN = "from uaccel.codegen import generate\ngenerate.DUAL_ISSUE = ()"
ONE_AT_A_TIME, TWO = 586_841, 551_480
"""Cycles that are estimated for a Cortex-M7, but for what another compiler changes around the loops; with two products
of a word in a row it was 657,731."""


def cycles(cache: Path, prelude: str = "") -> int:
    board_with_tools("mps2_an500")
    words = ("run", OWN / "residual.tflite", "--board", "mps2_an500", "--verify", "--json")
    report = process(*words, prelude=prelude, env={**os.environ, "UACCEL_CACHE": str(cache)}).report
    assert is_exact(report, 1)
    taken: int = report["cycles_estimated"]
    return taken


def test_loads_beside_products_take_fewer_cycles(tmp_path: Path) -> None:
    assert cycles(tmp_path / "plain", PLAIN) == pytest.approx(ONE_AT_A_TIME, rel=0.02)
    assert cycles(tmp_path / "own") == pytest.approx(TWO, rel=0.02)
