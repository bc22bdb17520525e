"""The engine in Verilog: whole networks, random layers, and bugs that random layers must find."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.device.planted import NETWORKS, Bug, build_quickly, reference_network, verified
from uaccel.testing import DeviceLibrary, check_accelerator

pytestmark = pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed")
FOLDER = Path(__file__).resolve().parents[1]
MODELS = FOLDER.parents[1] / "tests/models"


def test_model_and_rtl_are_what_it_means(monkeypatch: pytest.MonkeyPatch) -> None:
    build_quickly(monkeypatch)
    report = check_accelerator(FOLDER, layers=12)
    assert {one.operator: one.layers for one in report.operations} == {
        "conv2d": 4,
        "depthwise_conv2d": 4,
        "fully_connected": 4,
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


@pytest.mark.slow
@pytest.mark.parametrize("board", ["host", "mps2_an386", "qemu_riscv32"])
@pytest.mark.parametrize("name", ["gesture", "residual"])
def test_own_networks(name: str, board: str) -> None:
    assert verified(FOLDER, MODELS / f"{name}.tflite", board)


@pytest.mark.long
@pytest.mark.parametrize(("name", "board"), NETWORKS)
def test_reference_networks(name: str, board: str) -> None:
    assert verified(FOLDER, reference_network(name), board, "--samples", "2")


BUGS = {
    "the sign of a border": Bug(
        "nuc_engine.v",
        "column_at <= -$signed({6'd0, pad_width[15:0]});",
        "column_at <= $signed({6'd0, pad_width[15:0]});",
        "conv2d",
    ),
    "a lost back pressure": Bug(
        "nuc_writer.v",
        "wire        goes = wvalid && wready;",
        "wire        goes = wvalid;",
        "conv2d",
        stalls=1,
    ),
    "an off-by-one counter": Bug(
        "nuc_engine.v",
        "wire        last_ky = ky + 5'd1 == kernel_height[4:0];",
        "wire        last_ky = ky + 5'd2 >= kernel_height[4:0];",
        "(depthwise_)?conv2d",
    ),
    "a stale accumulator": Bug("nuc_engine.v", "touched <= 0;", "touched <= y[0];", "conv2d"),
    "a dropped last beat": Bug(
        "nuc_writer.v",
        "left <= address[2] ? {1'b0, numbers[10:1]} + 11'd1",
        "left <= address[2] ? {1'b0, numbers[10:1]} + {10'd0, numbers[0]}",
        "dense",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_each_can_still_be_planted(bug: str, tmp_path: Path) -> None:
    assert BUGS[bug].plant(FOLDER, tmp_path).is_dir()


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_found(bug: str, tmp_path: Path) -> None:
    BUGS[bug].is_found(FOLDER, tmp_path)
