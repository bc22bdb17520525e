"""The unit and its driver: what instructions mean, bugs that random programs must find, whole networks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import uaccel
from uaccel.accelerator import load_accelerator
from uaccel.testing import check_accelerator, compile_with_each

FOLDER = Path(__file__).resolve().parents[1]
MODELS = FOLDER.parents[1] / "tests/models"
verilates = pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed")


def test_the_header_is_what_the_description_says() -> None:
    text = load_accelerator("dot4").files["driver/dot4_instructions.h"].read_text()
    assert "UACCEL_INSTRUCTION(dot4_add7, 1, 7)" in text
    assert "UACCEL_INSTRUCTION(dot4_range, 3, 0)" in text
    assert "enum { DOT4_BEGIN = 0, DOT4_ADD = 1, DOT4_LANES = 2, DOT4_RANGE = 3, DOT4_FINISH = 4 };" in text


def test_driver_and_model_compile_without_a_warning(tmp_path: Path) -> None:
    assert compile_with_each(load_accelerator("dot4"), tmp_path)


def test_the_model_and_random_layers() -> None:
    report = check_accelerator(FOLDER, device="model", layers=9)
    assert {one.operator for one in report.operations} == {"conv2d", "depthwise_conv2d", "fully_connected"}
    assert report.instructions == 9 * 64


@verilates
@pytest.mark.slow
def test_model_and_rtl_are_what_the_instructions_mean() -> None:
    check_accelerator(FOLDER, layers=50)


@verilates
@pytest.mark.slow
def test_rtl_that_cannot_be_opened_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    waves = tmp_path / "none" / "wrong.vcd"
    with pytest.raises(uaccel.UaccelError, match="the RTL of dot4 cannot be opened; stderr says why"):
        check_accelerator(planted("a tie", tmp_path), layers=4, waves=waves)
    assert f"dot4: cannot write the waveform to {waves}" in capfd.readouterr().err


# What is changed in which file, and what is said of it.
BUGS: dict[str, tuple[str, str, str, str]] = {
    "a tie of the model": ("unit/dot4_unit.c", "> half ? 1", ">= half ? 1", "instruction finish"),
    "a sum of the model": ("unit/dot4_unit.c", "which < 8 && i < 4", "which < 8 && i < 3", "instruction add"),
    "a tie": ("rtl/dot4.sv", "(high & mask) > half", "(high & mask) >= half", "instruction finish"),
    "an unsigned byte": ("rtl/dot4.sv", "$signed(left[31:24]) *", "$signed({1'b0, left[31:24]}) *", "instruction add"),
    "a stale sum": ("rtl/dot4.sv", "sums[{1'b1, which[1:0]}] <= right;", ";", "instruction"),
    "a register too few": (
        "rtl/dot4.sv",
        "wire slow = operation == FINISH && which < 8",
        "wire slow = operation == FINISH && which < 7",
        "instruction finish7",
    ),
    "a lost back pressure": ("rtl/dot4.sv", "if (rsp_ready) answered", "answered", "instruction"),
    # What is wrong only while two are under way:
    "an answer that the next one takes the place of": (
        "rtl/dot4.sv",
        "step == IDLE && (!answered || rsp_ready)",
        "step == IDLE",
        r"instruction .* with back pressure",
    ),
    "a sum of the next one": (
        "rtl/dot4.sv",
        "answered ? result :",
        "answered ? (result == 0 ? 0 : sum) :",
        "instruction add",
    ),
}


def planted(bug: str, above: Path) -> Path:
    """The accelerator with it."""
    name, right, wrong, _ = BUGS[bug]
    folder = above / "dot4"
    shutil.copytree(FOLDER, folder)
    file = folder / name
    text = file.read_text()
    assert text.count(right) == 1
    file.write_text(text.replace(right, wrong))
    return folder


@pytest.mark.parametrize("bug", BUGS)
def test_each_can_still_be_planted(bug: str, tmp_path: Path) -> None:
    assert planted(bug, tmp_path).is_dir()


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, marks=[verilates, pytest.mark.slow] if row[0].startswith("rtl") else [])
        for bug, row in BUGS.items()
    ],
)
def test_bugs_are_found(bug: str, tmp_path: Path) -> None:
    folder, (name, *_, words) = planted(bug, tmp_path), BUGS[bug]
    rtl, waves = name.startswith("rtl"), tmp_path / "wrong.vcd"
    with pytest.raises(uaccel.UaccelError) as raised:
        check_accelerator(folder, device="rtl" if rtl else "model", layers=20, waves=waves)
    said = str(raised.value)
    assert re.search(f"dot4 is wrong: {words}", said)
    assert f" on the {'rtl' if rtl else 'model'}: it gives " in said
    assert waves.is_file() == rtl


def run(model: Path, board: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "uaccel", "run", str(model), "-a", str(FOLDER), "--board", board, "--verify"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["verify"]["bit_exact"] is True
    return report


@pytest.mark.slow
@pytest.mark.parametrize("board", ["host", "mps2_an386"])
def test_a_cpu_without_the_instructions_calls_their_model(board: str) -> None:
    report = run(MODELS / "residual.tflite", board)
    assert "dot4" in {layer["engine"] for layer in report["layers"]}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "board"),
    [
        *((name, "host") for name in ("ad", "ic", "kws", "sww", "vww")),
        *((name, "qemu_riscv32") for name in ("ad", "kws")),
        ("kws", "rtl_vexriscv"),
    ],
)
def test_reference_networks(name: str, board: str) -> None:
    path = Path(os.environ.get("UACCEL_MODELS") or os.devnull) / f"{name}.tflite"
    if not path.is_file():
        pytest.skip("MLPerf Tiny's models are in no folder that UACCEL_MODELS names")
    report = run(path, board)
    if board == "rtl_vexriscv":
        assert report["cycles"] < 7_000_000


def test_rtl_of_a_core_stands_behind_no_bus() -> None:
    command = [sys.executable, "-m", "uaccel", "run", str(MODELS / "gesture.tflite"), "-a", "dot4", "--device", "rtl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "dot4 is part of a core, and so its RTL runs on one; leave --device rtl away" in done.stderr
