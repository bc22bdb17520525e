"""npu in front of a flash: another machine by its memory alone. On another board: --uaccel-board mps2_an386."""

from __future__ import annotations

from pathlib import Path

import pytest

from uaccel.accelerator import load_accelerator
from uaccel.testing import BoardUnderTest, DriverUnderTest, compile_with_each

FOLDER = Path(__file__).resolve().parents[1]
MODEL = FOLDER.parents[1] / "tests" / "models" / "gesture.tflite"
FLASH, SRAM = load_accelerator(str(FOLDER)), load_accelerator("npu")


def test_it_is_npu_with_another_memory() -> None:
    assert (FLASH.name, FLASH.base, FLASH.memories) == ("npu_flash", SRAM.folder, SRAM.memories)
    assert [operation.name for operation in FLASH.operations] == [operation.name for operation in SRAM.operations]


@pytest.mark.slow
def test_every_compiler_takes_it(tmp_path: Path) -> None:
    assert compile_with_each(FLASH, tmp_path)


@pytest.mark.slow
def test_driver_and_model_are_of_the_same_machine() -> None:
    driver = DriverUnderTest(FLASH)
    assert (driver.activate(), driver.open(), driver.close(), driver.deactivate()) == (0, 0, 0, 0), driver.failure


@pytest.mark.slow
@pytest.mark.sample(1)
def test_a_whole_model(uaccel_board: BoardUnderTest) -> None:
    outcome = uaccel_board.check(MODEL, accelerators=[FOLDER])
    assert sum(outcome.calls.values()) >= 7
