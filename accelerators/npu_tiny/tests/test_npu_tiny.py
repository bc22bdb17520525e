"""The tiny machine: an addition has more numbers than a tile. On another board: --uaccel-board mps2_an386."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from uaccel.accelerator import load_accelerator
from uaccel.testing import BoardUnderTest, DriverUnderTest, check_accelerator, compile_with_each

FOLDER = Path(__file__).resolve().parents[1]
MODELS = FOLDER.parents[1] / "tests" / "models"
TINY, LARGE = load_accelerator(str(FOLDER)), load_accelerator("npu")
needs_tools = pytest.mark.skipif(
    shutil.which("verilator") is None or importlib.util.find_spec("amaranth") is None,
    reason="verilator or amaranth is not installed",
)


def test_it_is_npu_with_other_numbers() -> None:
    assert (TINY.name, TINY.base) == ("npu_tiny", LARGE.folder)
    assert TINY.memories == {"activations": 16384, "weights": 16384, "sums": 4096}
    assert [operation.name for operation in TINY.operations] == [operation.name for operation in LARGE.operations]


@pytest.mark.slow
def test_every_compiler_takes_it(tmp_path: Path) -> None:
    assert compile_with_each(TINY, tmp_path)


@pytest.mark.slow
def test_driver_and_model_are_of_the_same_machine() -> None:
    driver = DriverUnderTest(TINY)
    assert (driver.activate(), driver.open(), driver.close(), driver.deactivate()) == (0, 0, 0, 0), driver.failure


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", ["residual", pytest.param("gesture", marks=pytest.mark.slow)])
def test_whole_models(model: str, uaccel_board: BoardUnderTest) -> None:
    assert uaccel_board.check(MODELS / f"{model}.tflite", accelerators=[FOLDER]).calls


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("stalls", [None, 1])
def test_fifty_layers_on_the_rtl(stalls: int | None) -> None:
    check_accelerator(FOLDER, layers=50, seed=stalls or 0, stalls=stalls)
