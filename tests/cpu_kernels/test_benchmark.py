"""The stored benchmark of the CPU alone: what is asked for, and that networks still give it."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.boards import board_with_tools
from support.networks import network_named

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
STORED: dict[str, dict[str, dict[str, Any]]] = json.loads((FOLDER / "cpu.json").read_text())["boards"]
PAGE = FOLDER.parent / "docs" / "kernels.md"
FASTER = {
    "mps2_an386": {"ic": 0.50, "sww": 0.50, "ad": 0.65, "kws": 0.45, "vww": 0.38},
    "mps3_an547": {"kws": 0.55, "ic": 0.55, "vww": 0.55, "sww": 0.55, "ad": 0.55},
}
"""Instructions, as a part of what TensorFlow Lite Micro with CMSIS-NN takes: at most so much."""
RAM = {"ad": 1_600, "kws": 17_600, "ic": 52_000, "vww": 58_000, "sww": 8_500}
FLASH = {"kws": 0.33, "ic": 0.33, "vww": 0.33, "sww": 0.33, "ad": 0.16}
MOST_STACK = 2048


def benchmark() -> Any:
    spec = importlib.util.spec_from_file_location("benchmark_cpu", FOLDER / "cpu.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("board", "model", "part"), [(b, m, p) for b, ms in FASTER.items() for m, p in ms.items()])
def test_the_stored_instructions_are_what_is_asked_for(board: str, model: str, part: float) -> None:
    row = STORED[board][model]
    assert row["bit_exact"]
    assert row["of_tflm"]["instructions"] <= part


@pytest.mark.parametrize("model", RAM)
def test_the_stored_bytes_are_what_is_asked_for(model: str) -> None:
    row = STORED["mps2_an386"][model]
    assert row["ram"] <= RAM[model]
    assert row["stack"] < MOST_STACK
    assert row["of_tflm"]["flash"] <= FLASH[model]


@pytest.mark.slow
@pytest.mark.parametrize("board", STORED)
@pytest.mark.parametrize(
    "name",
    [
        "gesture",
        "kws",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("residual", "branches", "ad", "ic", "vww", "sww")),
    ],
)
def test_a_network_still_gives_the_stored_figures(name: str, board: str) -> None:
    board_with_tools(board)
    path = network_named(name).path
    module = benchmark()
    results = {board: {name: module.measure(path, board)}}
    assert module.differences(results, STORED) == []


@pytest.mark.parametrize("board", FASTER)
def test_the_page_shows_the_stored_figures(board: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for model in RAM:
        row = STORED[board][model]
        parts = row["of_tflm"]
        cells = [model, f"{row['instructions']:,}", f"{row['per_mac']:.2f}", f"{parts['instructions']:.2f}"]
        cells += [f"{row['cycles_estimated']:,}", f"{parts['cycles_estimated']:.2f}"]
        line = r" \| ".join(re.escape(cell) for cell in cells)
        assert re.search(rf"^\| {line} \|", text, re.MULTILINE), f"{board}: | {' | '.join(cells)} |"
