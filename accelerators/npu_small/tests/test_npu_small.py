"""The small machine: another one than npu by its numbers alone. On another board: --uaccel-board mps2_an386."""

from __future__ import annotations

from pathlib import Path

import pytest

from uaccel.accelerator import AcceleratorError, load_accelerator
from uaccel.testing import BoardUnderTest, DriverUnderTest, compile_with_each

FOLDER = Path(__file__).resolve().parents[1]
MODELS = FOLDER.parents[1] / "tests" / "models"
SMALL, LARGE = load_accelerator(str(FOLDER)), load_accelerator("npu")
CODES = {"vanish": 3, "version": 5}


def test_it_is_npu_with_other_numbers() -> None:
    assert (SMALL.name, SMALL.base) == ("npu_small", LARGE.folder)
    assert SMALL.memories == {"activations": 8192, "weights": 6144, "sums": 2048}
    assert sum(SMALL.memories.values()) == 16384
    assert [operation.name for operation in SMALL.operations] == [operation.name for operation in LARGE.operations]
    own = [path for path in FOLDER.rglob("*") if path.suffix in (".c", ".h")]
    assert {path.suffix for path in own} == {".h"}


@pytest.mark.slow
def test_every_compiler_takes_it(tmp_path: Path) -> None:
    assert compile_with_each(SMALL, tmp_path)


def test_driver_and_model_are_of_the_same_machine() -> None:
    driver = DriverUnderTest(SMALL)
    assert (driver.activate(), driver.open(), driver.close(), driver.deactivate()) == (0, 0, 0, 0), driver.failure
    for fault, code in CODES.items():
        driver.let_fail(fault)
        assert driver.activate() == code, driver.failure


@pytest.mark.sample(1)
@pytest.mark.parametrize("objective", ["latency", "energy"])
def test_a_whole_model(objective: str, uaccel_board: BoardUnderTest) -> None:
    outcome = uaccel_board.check(MODELS / "gesture.tflite", accelerators=[FOLDER], objective=objective)
    assert sum(outcome.calls.values()) >= 7


def test_an_objective_that_there_is_not(uaccel_board: BoardUnderTest) -> None:
    with pytest.raises(AcceleratorError, match=r"^objective 'speed' is unknown; wanted latency or energy$"):
        uaccel_board.check(MODELS / "gesture.tflite", accelerators=[FOLDER], objective="speed")


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", ["residual", "mixed", "branches"])
def test_the_projects_own_models(model: str, uaccel_board: BoardUnderTest) -> None:
    assert uaccel_board.check(MODELS / f"{model}.tflite", accelerators=[FOLDER]).calls
