"""The engine in Verilog: whole networks, random layers, and bugs that random layers must find."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import uaccel
from uaccel.testing import DeviceLibrary, check_accelerator

pytestmark = pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed")
FOLDER = Path(__file__).resolve().parents[1]
MODELS = FOLDER.parents[1] / "tests/models"


def test_model_and_rtl_are_what_it_means() -> None:
    report = check_accelerator(FOLDER, layers=50)
    assert {one.operator: one.layers for one in report.operations} == {
        "conv2d": 17,
        "depthwise_conv2d": 17,
        "fully_connected": 16,
    }
    assert all(one.cycles["rtl"] > 0 for one in report.operations)


@pytest.mark.long
def test_so_they_are_on_a_thousand_layers() -> None:
    check_accelerator(FOLDER, layers=1000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_memory_that_lets_it_wait(seed: int) -> None:
    check_accelerator(FOLDER, layers=20, seed=seed, stalls=seed)


CONTROL, STOP, STATUS, FEATURES = 0x08, 0x0C, 0x10, 0x1C
CONVOLUTION = (1, 8, 16, 16, 16, 1, 1, 1, 3, 3, 1, 1)
"""Batch, shape of the input, filters, groups, padding, kernel, strides."""


@pytest.mark.slow
def test_a_job_that_is_stopped_touches_no_memory_any_more() -> None:
    """The driver stops it, clears the status at once, and gives the memory to others."""
    device = DeviceLibrary.of_rtl("nuc_fpga", FOLDER)
    sums = bytearray(b"\x55" * (4 * 16 * 16 * 16))
    device.memory.pieces = {0x1000: bytearray(8 * 16 * 16), 0x4000: bytearray(16 * 8 * 9), 0x10000: sums}
    for number, value in enumerate((0x1000, 0x4000, 0x10000, *CONVOLUTION)):
        device.write(FEATURES + 4 * number, value)
    device.write(CONTROL, 1)
    device.tick(4000)
    device.write(STOP, 1)
    device.write(STATUS, 0)
    left = bytes(sums)
    device.tick(100_000)
    assert 0 < left.count(0x55) < len(left), "it was in the middle of it"
    assert bytes(sums) == left
    assert device.read(STATUS) == 0
    device.write(CONTROL, 1)
    device.tick(100_000)
    assert (device.read(STATUS), sums.count(0x55)) == (1, 0), "the next one does all of it"


def verified(model: Path, board: str, *words: str) -> bool:
    command = [sys.executable, "-m", "uaccel", "run", str(model), "-a", str(FOLDER), "--board", board, "--json", *words]
    done = subprocess.run([*command, "--device", "rtl", "--verify"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["verify"]["bit_exact"] is True


@pytest.mark.slow
@pytest.mark.parametrize("board", ["host", "mps2_an386", "qemu_riscv32"])
@pytest.mark.parametrize("name", ["gesture", "residual"])
def test_own_networks(name: str, board: str) -> None:
    assert verified(MODELS / f"{name}.tflite", board)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "board"),
    [
        *((name, "host") for name in ("ad", "ic", "kws", "sww", "vww")),
        *((name, board) for name in ("ad", "kws") for board in ("mps2_an386", "qemu_riscv32")),
    ],
)
def test_reference_networks(name: str, board: str) -> None:
    path = Path(os.environ.get("UACCEL_MODELS") or os.devnull) / f"{name}.tflite"
    if not path.is_file():
        pytest.skip("MLPerf Tiny's models are in no folder that UACCEL_MODELS names")
    assert verified(path, board, "--samples", "2")


# What is changed in which file, and what the report says of it.
BUGS: dict[str, tuple[str, str, str, str]] = {
    "the sign of a border": (
        "nuc_engine.v",
        "column_at <= -$signed({6'd0, pad_width[15:0]});",
        "column_at <= $signed({6'd0, pad_width[15:0]});",
        "conv2d",
    ),
    "a lost back pressure": (
        "nuc_writer.v",
        "wire        goes = wvalid && wready;",
        "wire        goes = wvalid;",
        "conv2d",
    ),
    "an off-by-one counter": (
        "nuc_engine.v",
        "wire        last_ky = ky + 5'd1 == kernel_height[4:0];",
        "wire        last_ky = ky + 5'd2 >= kernel_height[4:0];",
        "depthwise_conv2d",
    ),
    "a stale accumulator": ("nuc_engine.v", "touched <= 0;", "touched <= y[0];", "conv2d"),
    "a dropped last beat": (
        "nuc_writer.v",
        "left <= address[2] ? {1'b0, numbers[10:1]} + 11'd1",
        "left <= address[2] ? {1'b0, numbers[10:1]} + {10'd0, numbers[0]}",
        "dense",
    ),
}


def planted(bug: str, above: Path) -> Path:
    """The accelerator with it."""
    name, right, wrong, _ = BUGS[bug]
    folder = above / "nuc_fpga"
    shutil.copytree(FOLDER, folder)
    file = folder / "rtl" / name
    text = file.read_text()
    assert text.count(right) == 1
    file.write_text(text.replace(right, wrong))
    return folder


@pytest.mark.parametrize("bug", BUGS)
def test_each_can_still_be_planted(bug: str, tmp_path: Path) -> None:
    assert planted(bug, tmp_path).is_dir()


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_found(bug: str, tmp_path: Path) -> None:
    folder, operation = planted(bug, tmp_path), BUGS[bug][3]
    stalls = 1 if "pressure" in bug else None
    with pytest.raises(uaccel.UaccelError) as raised:
        check_accelerator(folder, layers=50, stalls=stalls, waves=tmp_path / "wrong.vcd")
    said = str(raised.value)
    assert f"operation {operation}, " in said
    assert ("depth" if operation == "dense" else "kernel_height") in said
    assert "on the rtl: " in said
    assert (tmp_path / "wrong.vcd").stat().st_size > 0
