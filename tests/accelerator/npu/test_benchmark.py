"""The stored benchmark: what is asked for, and that a network still gives it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.device.boards import board_with_tools
from support.models.networks import network_named
from support.run.scripts import script_of

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"
STORED: dict[str, dict[str, dict[str, Any]]] = json.loads((FOLDER / "npu.json").read_text())["accelerators"]
ASKED = {"ic": (0.90, 100), "vww": (0.50, 40), "kws": (0.65, 40), "sww": (0.35, 40)}
"""Utilisation of the array, and how much faster than the CPU alone."""
MOST_LEFT = 0.02
OWN = ("residual", "branches", "mixed")
PAGE = Path(__file__).resolve().parents[3] / "docs/reference/npu.md"


def benchmark() -> Any:
    return script_of("benchmarks/npu.py")


@pytest.mark.parametrize("name", ASKED)
def test_the_stored_figures_are_what_is_asked_for(name: str) -> None:
    row = STORED["npu"][name]
    utilisation, faster = ASKED[name]
    assert row["bit_exact"]
    assert row["utilisation"] >= utilisation
    assert row["faster"] >= faster
    assert row["left"] < MOST_LEFT
    assert row["faster_than_tvm"] >= faster


@pytest.mark.slow
@pytest.mark.parametrize("accelerator", STORED)
@pytest.mark.parametrize(
    "name",
    [
        "gesture",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("residual", "branches", "mixed", *ASKED, "ad")),
    ],
)
def test_a_network_still_gives_the_stored_figures(name: str, accelerator: str) -> None:
    board_with_tools("mps2_an386")
    path = network_named(name).path
    module = benchmark()
    alone = module.uaccel("run", str(path), "--board", module.BOARD)["instructions"]
    row = module.measure(path, accelerator, alone)
    assert module.differences({accelerator: {name: row}}, STORED) == []


def test_the_page_tells_the_stored_figures() -> None:
    rows = re.findall(r"^\| (npu\w*) \| (\w+) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == len(STORED) * 5 * 2  # a table of cycles and one of gains
    for accelerator, name, cells in rows:
        row = STORED[accelerator][name]
        shown = [f"{row[key]:,}" for key in ("alone", "instructions", "cycles")] + [f"{row['utilisation']:.1%}"]
        if cells.endswith(" x"):
            shown = [f"{row[key]:,.0f} x" for key in ("faster", "faster_than_microtvm", "faster_than_tflm")]
        assert cells.split(" | ") == shown
