"""The unit in Amaranth: whole networks, random layers, and bugs that random layers must find."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.device.planted import NETWORKS, Bug, build_quickly, reference_network, verified
from uaccel.testing import DeviceLibrary, check_accelerator

pytestmark = [
    pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed"),
    pytest.mark.skipif(importlib.util.find_spec("amaranth") is None, reason="amaranth is not installed"),
]
FOLDER = Path(__file__).resolve().parents[1]
MODELS = FOLDER.parents[1] / "tests/models"


def test_model_and_rtl_are_what_it_means(monkeypatch: pytest.MonkeyPatch) -> None:
    build_quickly(monkeypatch)
    report = check_accelerator(FOLDER, layers=12)
    assert {one.operation: one.layers for one in report.operations} == {"conv2d": 4, "depthwise_conv2d": 4, "dense": 4}
    for one in report.operations:
        assert one.cycles["rtl"] <= one.cycles["model"] < 1.5 * one.cycles["rtl"]


@pytest.mark.long
def test_so_they_are_on_a_thousand_layers() -> None:
    check_accelerator(FOLDER, layers=1000, seed=1)


@pytest.mark.slow
def test_one_that_never_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queues fill up, or it stays busy; nothing that it has not computed is taken for a result."""
    monkeypatch.setenv("UACCEL_DEVICE_FAULT", "matrix8:hang@3")
    words = ["run", str(MODELS / "gesture.tflite"), "-a", str(FOLDER), "--device", "rtl"]
    done = subprocess.run([sys.executable, "-m", "uaccel", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "the device did not finish" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_memory_that_lets_it_wait(seed: int) -> None:
    check_accelerator(FOLDER, layers=20, seed=seed, stalls=seed)


@pytest.mark.slow
@pytest.mark.parametrize("board", ["host", "mps2_an386", "qemu_riscv32"])
@pytest.mark.parametrize("name", ["gesture", "residual"])
def test_own_networks(name: str, board: str) -> None:
    assert verified(FOLDER, MODELS / f"{name}.tflite", board)


@pytest.mark.long
@pytest.mark.parametrize(("name", "board"), NETWORKS)
def test_reference_networks(name: str, board: str) -> None:
    assert verified(FOLDER, reference_network(name), board, "--samples", "2")


STATUS, ERROR, ERROR_AT, COMMAND, CONTROL, DONE, ARGUMENTS, WINDOW = 0x08, 0x0C, 0x10, 0x14, 0x18, 0x1C, 0x40, 0x60
FAILED, BUS = 4, 4
LOAD, FILL, MULTIPLY, STORE = 1, 2, 3, 4
# Commands, each with its arguments, and what is told of the last one: an error of matrix8_registers.h.
REFUSED: dict[str, tuple[list[tuple[int, ...]], int]] = {
    "no such command": ([(5,)], 1),
    "a command beyond 32": ([(33,)], 1),
    "no such memory": ([(FILL, 4, 0, 8, 0)], 3),
    "nothing to fill": ([(FILL, 0, 0, 0, 0)], 2),
    "beyond the end": ([(FILL, 3, 6080, 65, 0)], 2),
    "far beyond it": ([(LOAD, 0, 0, 1 << 31, 0x1000, 8, 1 << 31, 8)], 2),
    "not aligned": ([(FILL, 1, 32, 64, 0)], 2),
    "rows over each other": ([(LOAD, 0, 0, 7, 0x1000, 8, 2, 8)], 3),
    "more weights than there are": ([(MULTIPLY, 0, 0, 0, 1, 1, 257, 0)], 2),
    "no pixel": ([(MULTIPLY, 0, 0, 0, 0, 1, 1, 0)], 3),
    "memory that is not there": ([(LOAD, 0, 0, 8, 0x9000, 8, 1, 8)], 4),
    "a shift beyond 30": ([(FILL, 3, 0, 96, 31), (STORE, 0x1000, 8, 0, 0, 1, 8)], 3),
    "memory that cannot be written": ([(FILL, 3, 0, 96, 0), (STORE, 0x9000, 8, 0, 0, 1, 8)], 4),
}


@pytest.mark.slow
def test_what_it_refuses() -> None:
    """The command that is wrong is told, and those before it are done. One after it is not, unless it had begun."""
    device = DeviceLibrary.of_rtl("matrix8", FOLDER)
    for case, (commands, error) in REFUSED.items():
        device.memory.pieces = {0x1000: bytearray(64)}
        device.write(CONTROL, 1)
        for i, value in enumerate((1, 1, 8, 0, 0, 0, 0, 0, 0, 255, 0)):
            device.write(WINDOW + 4 * i, value)
        for what, *arguments in (*commands, (FILL, 0, 0, 8, 0)):
            for i, value in enumerate(arguments):
                device.write(ARGUMENTS + 4 * i, value)
            device.write(COMMAND, what)
        device.tick(1000)
        last = len(commands) - 1
        assert [device.read(register) for register in (STATUS, ERROR, ERROR_AT)] == [FAILED, error, last], case
        assert device.read(DONE) in ((last, last + 1) if error == BUS else (last,)), case
        assert not any(device.memory.pieces[0x1000]), case


BUGS = {
    "wrong rounding at ties": Bug(
        "matrix8_rtl/output.py",
        "whole + (half & (~even | (rest != 0) | whole[0]))",
        "whole + (half & ((rest != 0) | whole[0]))",
        "depthwise_conv2d",
    ),
    "commands that do not wait for each other": Bug(
        "matrix8_rtl/queues.py", "& ((banks & self.banks) != 0)", "& 0", r"\w+"
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_each_can_still_be_planted(bug: str, tmp_path: Path) -> None:
    assert BUGS[bug].plant(FOLDER, tmp_path).is_dir()


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_found(bug: str, tmp_path: Path) -> None:
    BUGS[bug].is_found(FOLDER, tmp_path)
