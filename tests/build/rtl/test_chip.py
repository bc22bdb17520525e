"""The stored cycles of whole chips: what is promised of them, the page that shows them, and that a row is still so."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.models.networks import network_named
from support.run.scripts import script_of

ROOT = Path(__file__).resolve().parents[3]
STORED: dict[str, dict[str, dict[str, Any]]] = json.loads((ROOT / "benchmarks" / "chip.json").read_text())
ALONE = "core alone"
ROWS = [(network, chip) for network, rows in STORED.items() for chip in rows]
TOLERANCE = {ALONE: 0.03, "dot4": 0.05}
"""How far estimated cycles with the waiting may be from the core's own."""
POLLED = 0.08
"""The same where the core speaks with an accelerator on its bus."""
MISSING = [name for name in ("verilator", "riscv64-unknown-elf-gcc") if shutil.which(name) is None]
MISSING += [] if importlib.util.find_spec("pythondata_cpu_vexriscv") else ["pythondata-cpu-vexriscv"]


def benchmark() -> ModuleType:
    return script_of("benchmarks/chip.py")


def test_each_network_ran_on_each_chip() -> None:
    module = benchmark()
    assert [(network, chip) for network in module.NETWORKS for chip in module.CHIPS] == ROWS
    for network, chip in ROWS:
        row = STORED[network][chip]
        assert row["bit_exact"]
        assert row["accelerator"] == module.CHIPS[chip][1]
        assert chip == ALONE or 2 * row["cycles"] < STORED[network][ALONE]["cycles"]


@pytest.mark.parametrize(("network", "chip"), ROWS)
def test_estimates_are_near_the_cores_own_cycles(network: str, chip: str) -> None:
    row = STORED[network][chip]
    estimated = row["cycles_estimated"] + sum(row["waited"].values())
    assert abs(estimated / row["cycles"] - 1) < TOLERANCE.get(chip, POLLED)


def test_the_page_shows_the_stored_figures() -> None:
    page = (ROOT / "docs" / "reference" / "chip.md").read_text(encoding="utf-8")
    assert script_of("scripts/figures.py").PAGES["docs/reference/chip.md"](page) == page, "run scripts/figures.py"


def test_a_row_that_nobody_knows() -> None:
    with pytest.raises(SystemExit) as caught:
        benchmark().asked(["kws:npu", "kws:tpu"])
    assert str(caught.value) == "no such row: kws:tpu; a row is NETWORK:CHIP, such as kws:dot4"


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
@pytest.mark.parametrize("chip", ["npu model", pytest.param("npu_small", marks=pytest.mark.long)])
def test_a_row_is_still_so(chip: str) -> None:
    module = benchmark()
    row = module.measure(network_named("kws").path, chip)
    assert module.differences("kws", chip, row, STORED) == []
