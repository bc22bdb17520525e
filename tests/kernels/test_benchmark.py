"""The stored benchmark of the CPU alone: what is asked for, and that networks still give it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.device.boards import board_with_tools
from support.models.networks import network_named
from support.run.scripts import script_of

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks"
BENCHMARK: dict[str, dict[str, dict[str, dict[str, Any]]]] = json.loads((FOLDER / "cpu.json").read_text())
STORED, FAVOURED = BENCHMARK["boards"], BENCHMARK["favours"]
FASTER = {
    "mps2_an386": {"kws": 0.38, "ic": 0.37, "vww": 0.24, "sww": 0.38, "ad": 0.50},
    "mps3_an547": {"kws": 0.35, "ic": 0.40, "vww": 0.20, "sww": 0.41, "ad": 0.28},
}
"""Instructions, as a part of what TensorFlow Lite Micro with CMSIS-NN takes: at most so much."""
QUICKER = {
    "mps2_an386": {"ic": 0.41, "sww": 0.42, "ad": 0.50, "kws": 0.42, "vww": 0.26},
    "mps3_an547": {"kws": 0.36, "ic": 0.45, "vww": 0.20, "sww": 0.42, "ad": 0.30},
}
"""Estimated cycles, as a part of what CMSIS-NN's functions take."""
RAM = {"ad": 800, "kws": 9_800, "ic": 25_000, "vww": 29_000, "sww": 4_600}
FLASH = {"kws": 0.33, "ic": 0.33, "vww": 0.33, "sww": 0.33, "ad": 0.16}
WHOLE = {"ad": 0.91, "ic": 0.61, "sww": 0.502, "kws": 0.33, "vww": 0.142, "mobilenet": 0.70}
SMALLEST = {"ad": 0.91, "ic": 0.565, "sww": 0.485, "kws": 0.305, "vww": 0.139, "mobilenet": 0.695}
"""Weights, tables, code and start-up code on a Cortex-M4, of TensorFlow Lite Micro's: balanced, and favouring size.
Balanced ``ic`` and ``vww`` run by rows: at most 3 % of the time and 6 KB for a quarter of the RAM."""
UNPRUNED = {"mps2_an386": 0.38, "mps3_an547": 0.29}
"""Instructions of a network none of whose channels is dead."""
MOST_STACK = 2048


def benchmark() -> Any:
    return script_of("benchmarks/cpu.py")


@pytest.mark.parametrize(("board", "model", "part"), [(b, m, p) for b, ms in FASTER.items() for m, p in ms.items()])
def test_the_stored_instructions_are_what_is_asked_for(board: str, model: str, part: float) -> None:
    row = STORED[board][model]
    assert row["bit_exact"]
    assert row["of_tflm"]["instructions"] <= part
    assert row["of_tflm"]["cycles_estimated"] <= QUICKER[board][model]


@pytest.mark.parametrize("model", RAM)
def test_the_stored_bytes_are_what_is_asked_for(model: str) -> None:
    row = STORED["mps2_an386"][model]
    assert row["ram"] <= RAM[model]
    assert row["stack"] < MOST_STACK
    assert row["of_tflm"]["flash"] <= FLASH[model]


@pytest.mark.parametrize("model", WHOLE)
def test_the_stored_flash_is_what_is_asked_for(model: str) -> None:
    rows = [STORED["mps2_an386"][model], *(rows[model] for rows in FAVOURED.values())]
    balanced, speed, size = (row["of_tflm"] for row in rows)
    assert all(row["bit_exact"] for row in rows)
    assert balanced["whole"] <= WHOLE[model]
    assert size["whole"] <= min(SMALLEST[model], balanced["whole"])
    assert speed["cycles_estimated"] <= balanced["cycles_estimated"] * 1.02
    assert size["cycles_estimated"] <= min(1, 2.6 * balanced["cycles_estimated"])


def test_speed_buys_a_fifth_of_the_cycles_of_windows_of_3x3() -> None:
    assert FAVOURED["speed"]["ic"]["of_tflm"]["cycles_estimated"] <= 0.38


@pytest.mark.parametrize("board", UNPRUNED)
def test_a_network_without_dead_channels_is_fast_too(board: str) -> None:
    row = STORED[board]["mobilenet"]
    assert row["bit_exact"]
    assert row["macs"] > 7_000_000
    assert row["of_tflm"]["instructions"] <= UNPRUNED[board]


@pytest.mark.slow
def test_the_network_without_dead_channels_still_gives_the_stored_figures(tmp_path: Path) -> None:
    board_with_tools("mps2_an386")
    module = benchmark()
    results = {"mps2_an386": {"mobilenet": module.measure(module.unpruned(tmp_path), "mps2_an386")}}
    assert module.differences(results, STORED) == []


@pytest.mark.slow
@pytest.mark.parametrize(("model", "favour"), [("kws", "size"), ("ic", "speed")])
def test_a_favour_still_gives_the_stored_figures(model: str, favour: str) -> None:
    board_with_tools("mps2_an386")
    module = benchmark()
    results = {favour: {model: module.measure(network_named(model).path, "mps2_an386", favour)}}
    assert module.differences(results, FAVOURED) == []


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


@pytest.mark.parametrize("page", ["docs/kernels.md", "docs/reference/kernels.md", "docs/reference/npu.md", "README.md"])
def test_pages_show_the_stored_figures(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert script_of("scripts/figures.py").PAGES[page](text) == text, "run scripts/figures.py"
