"""The RTL takes the cycles that docs/reference/npu.md states of each command, and nearly the model's for a network."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.planted import Bug, reference_network
from support.device.played import OF_ONNX, Machine, of_onnx

needs_tools = pytest.mark.skipif(
    shutil.which("verilator") is None or importlib.util.find_spec("amaranth") is None,
    reason="verilator or amaranth is not installed",
)
FOLDER = Path(__file__).resolve().parents[1]
SMALL, FLASH, TINY = (FOLDER.parent / name for name in ("npu_small", "npu_flash", "npu_tiny"))
PAGE = FOLDER.parents[1] / "docs/reference/npu.md"
WINDOWED = {"stride_y": 1, "stride_x": 1, "dilation_y": 1, "dilation_x": 1, "clamp_min": -128, "clamp_max": 127}
TEXT = PAGE.read_text() if PAGE.is_file() else ""
BY_HAND = re.findall(r"^\| `(\w[^:`]*)` \| .* \| (\d+) \|$", TEXT, re.MULTILINE)
OF_FLASH = re.findall(r"^\| npu_flash: `load ([^`]+)` \| .* \| (\d+) \|$", TEXT, re.MULTILINE)
NEAR, PREDICTED = 0.02, 0.03
LATE = 0.1
"""On npu_tiny, where stores and windows of two rows want the same port, which nobody counts."""
STANDS = Bug("npu_rtl/windows.py", "deep & ~self.single & near & (stride", "0 & ~self.single & near & (stride", "")
"""No window slides: all bytes are right, and depthwise convolutions take longer."""

MACHINES = (FOLDER, SMALL, FLASH)
EACH = 10
"""Layers of an operator of ONNX, on each machine."""
SLOWER = {
    "a load runs less far ahead": (SMALL, Bug("npu_rtl/loader.py", "AHEAD = 8", "AHEAD = 2", "")),
    "half as many words are fetched at once": (
        SMALL,
        Bug("npu_rtl/fetch.py", "BEATS, BURST = 16, 8", "BEATS, BURST = 8, 8", ""),
    ),
    "a token arrives later": (
        SMALL,
        Bug(
            "npu_rtl/queues.py",
            "goes.eq(self._free[engine] & ~self.stop)",
            "goes.eq(self._free[engine] & ~self.stop & (last[0] | ~self.active.any()))",
            "",
        ),
    ),
    "fewer ones are looked at": (FLASH, Bug("npu_rtl/unpacker.py", "ONES: Final = 16", "ONES: Final = 4", "")),
    "a byte a cycle": (FLASH, Bug("npu_rtl/unpacker.py", "fits[-1] & ((place", "0 & ((place", "")),
}
"""Bugs that leave all bytes right, and the machine on which they are looked for."""


@dataclass(frozen=True)
class Taken:
    """Cycles of a network."""

    model: int
    rtl: int
    predicted: int

    @property
    def unlike(self) -> float:
        return abs(self.model / self.rtl - 1)


def taken(accelerator: Path, network: Path) -> Taken:
    cycles, predicted = {}, 0
    for device in ("model", "rtl"):
        command = [sys.executable, "-m", "uaccel", "run", str(network), "-a", str(accelerator), "--device", device]
        done = subprocess.run([*command, "--board", "host", "--json"], capture_output=True, text=True, check=True)
        report = json.loads(done.stdout)
        cycles[device] = report["accelerator_cycles"]
        regions = [layer for layer in report["graph"]["layers"] if layer["engine"] == accelerator.name]
        predicted = sum(region["estimate"]["cycles"] for region in regions)
    return Taken(cycles["model"], cycles["rtl"], predicted)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize(("text", "cycles"), BY_HAND)
def test_a_duration_by_hand(rtl: Any, text: str, cycles: str) -> None:
    kind, *words = text.split()
    fields = {name: int(value) for name, value in (word.split("=") for word in words)}
    common = WINDOWED if kind in ("convolve", "depthwise", "pool") else {}
    played = rtl.play([(kind, common | fields)], [bytes(65536)])
    assert (played.error, sum(played.busy)) == (0, int(cycles))


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize(("text", "cycles"), OF_FLASH)
def test_a_duration_in_front_of_a_flash_by_hand(flash_rtl: Any, text: str, cycles: str) -> None:
    fields = {name: int(value) for name, value in (word.split("=") for word in text.split())}
    played = flash_rtl.play([("load", {"runs": 1, "planes": 1} | fields)], [bytes(1000), bytes(1000)])
    assert (played.error, sum(played.busy)) == (0, int(cycles))


@needs_tools
@pytest.mark.long
@pytest.mark.parametrize("folder", [FOLDER, SMALL, FLASH], ids=["npu", "npu_small", "npu_flash"])
@pytest.mark.parametrize("name", ["ad", "ic", "kws", "sww", "vww"])
def test_a_network(folder: Path, name: str) -> None:
    found = taken(folder, reference_network(name))
    assert found.unlike <= NEAR
    assert abs(found.predicted / found.rtl - 1) <= PREDICTED


@needs_tools
@pytest.mark.long
def test_a_planted_bug_is_seen(tmp_path: Path) -> None:
    STANDS.plant(FOLDER, tmp_path)
    shutil.copytree(SMALL, tmp_path / SMALL.name)
    found = taken(tmp_path / SMALL.name, reference_network("kws"))
    assert found.rtl > found.model * (1 + NEAR)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("folder", MACHINES, ids=[folder.name for folder in MACHINES])
def test_each_of_five_hundred_random_layers(folder: Path, tmp_path: Path) -> None:
    found = list(Machine(folder, tmp_path).compared(500, 5))
    assert len(found) >= 480
    assert max(found, key=lambda one: one.unlike).unlike <= NEAR, str(max(found, key=lambda one: one.unlike))
    assert max(found, key=lambda one: one.missed).missed <= PREDICTED, str(max(found, key=lambda one: one.missed))


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("folder", [*MACHINES, TINY], ids=lambda folder: folder.name)
@pytest.mark.parametrize("name", OF_ONNX)
def test_what_onnx_means(name: str, folder: Path, tmp_path: Path) -> None:
    """The bytes are those of the meaning, too."""
    machine, random = Machine(folder, tmp_path), np.random.default_rng(5)
    described = {operation.name: operation for operation in machine.accelerator.operations}[name]
    seen = Counter[bool]()
    for number in range(EACH):
        made, inputs = of_onnx(name, number, random)
        takes = described.check(made.region) is None
        seen[takes] += 1
        if takes:
            found = machine.both(f"{name} {number}", made.region, inputs, random)
            assert found.outputs == [array.tobytes() for array in made.expected(inputs)], str(found)
            assert found.unlike <= (NEAR if folder != TINY else LATE), str(found)
            assert found.missed <= (PREDICTED if folder != TINY else LATE), str(found)
    assert seen[True] >= EACH // 2


@needs_tools
@pytest.mark.long
@pytest.mark.parametrize("bug", SLOWER)
def test_a_planted_delay_is_seen_in_random_layers(bug: str, tmp_path: Path) -> None:
    machine, planted = SLOWER[bug]
    planted.plant(FOLDER, tmp_path)
    shutil.copytree(machine, tmp_path / machine.name)
    found = Machine(tmp_path / machine.name, tmp_path / "library").compared(60, 5)
    assert any(one.unlike > NEAR for one in found)
