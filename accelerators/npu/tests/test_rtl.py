"""The machine in Amaranth: its numbers, whole networks, random layers, and bugs that random layers must find."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

import uaccel
from support.device.planted import NETWORKS, Bug, reference_network, verified
from uaccel.accelerator import load_accelerator
from uaccel.testing import check_accelerator

needs_tools = pytest.mark.skipif(
    shutil.which("verilator") is None or importlib.util.find_spec("amaranth") is None,
    reason="verilator or amaranth is not installed",
)
FOLDER = Path(__file__).resolve().parents[1]
SMALL, FLASH = (FOLDER.parent / name for name in ("npu_small", "npu_flash"))
MACHINES = pytest.mark.parametrize("folder", [FOLDER, SMALL, FLASH], ids=["npu", "npu_small", "npu_flash"])
MODELS = FOLDER.parents[1] / "tests/models"
BESIDE_A_CORE = [(name, "rtl_vexriscv") for name in ("ad", "ic", "kws", "sww", "vww")]
OPERATIONS = {"conv2d", "depthwise_conv2d", "fully_connected", "average_pool2d", "max_pool2d", "add"}


@needs_tools
@pytest.mark.slow
def test_the_small_machine_and_its_model_are_what_they_mean() -> None:
    report = check_accelerator(SMALL, layers=12)
    assert {one.operation for one in report.operations} == OPERATIONS


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("stalls", [None, 1, 2])
@MACHINES
def test_fifty_layers(folder: Path, stalls: int | None) -> None:
    check_accelerator(folder, layers=50, seed=stalls or 0, stalls=stalls)


@needs_tools
@pytest.mark.long
def test_five_hundred_layers() -> None:
    check_accelerator(FOLDER, layers=500, seed=1)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("board", ["host", "mps2_an386", "qemu_riscv32"])
@pytest.mark.parametrize("name", ["gesture", "residual"])
def test_own_networks(name: str, board: str) -> None:
    assert verified(FOLDER, MODELS / f"{name}.tflite", board)


@needs_tools
@pytest.mark.long
@MACHINES
@pytest.mark.parametrize(("name", "board"), [*NETWORKS, *BESIDE_A_CORE])
def test_reference_networks(folder: Path, name: str, board: str) -> None:
    assert verified(folder, reference_network(name), board, "--samples", "1")


BUGS = {
    "wrong rounding at ties": Bug(
        "npu_rtl/output.py", "whole + (half & (~even | (rest != 0) | whole[0]))", "whole + half", r"\w+"
    ),
    "an addition without rounding": Bug("npu_rtl/addition.py", "moved[32:] + moved[31]", "moved[32:]", "add"),
    "a byte too many is inside": Bug(
        "npu_rtl/feeder.py", "input_bytes - at, width", "input_bytes - at + 1, width", "conv2d"
    ),
    "a column too many slides in": Bug(
        "npu_rtl/sliding.py", "(self._x < high(w[4]))", "(self._x <= high(w[4]))", r"depthwise_conv2d|\w+_pool2d"
    ),
    "nobody waits for a token": Bug("npu_rtl/queues.py", "(~head.words[bit] | (self._tokens[fifo] != 0))", "1", r"\w+"),
}


OF_CODES = {
    "a sign that is no part of a code": Bug("npu_rtl/unpacker.py", "bit ^ value[0]", "bit", r"\w+"),
    "one kind for all blocks of a code": Bug("npu_rtl/unpacker.py", "(place == 0)", "(self._number == 0)", r"\w+"),
    "a low bit too few": Bug("npu_rtl/unpacker.py", "((1 << kind) - 1)", "((1 << kind >> 1) - 1)", r"\w+"),
}


def planted(bug: str, above: Path) -> Path:
    """The small machine, or one that unpacks, upon an npu with it."""
    machine = SMALL if bug in BUGS else FLASH
    (BUGS | OF_CODES)[bug].plant(FOLDER, above)
    shutil.copytree(machine, above / machine.name)
    return above / machine.name


@pytest.mark.parametrize("bug", BUGS | OF_CODES)
def test_each_can_still_be_planted(bug: str, tmp_path: Path) -> None:
    folder = planted(bug, tmp_path)
    assert load_accelerator(str(folder)).name == folder.name


@needs_tools
@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS | OF_CODES)
def test_bugs_are_found(bug: str, tmp_path: Path) -> None:
    with pytest.raises(uaccel.UaccelError) as raised:
        check_accelerator(planted(bug, tmp_path), layers=50)
    found = rf"operation ({(BUGS | OF_CODES)[bug].operation}), \w+ \(.*(height|depth|units) \d.*\) on the rtl: "
    assert re.search(found, str(raised.value)), str(raised.value)
