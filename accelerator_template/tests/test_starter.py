"""Run them with 'pytest starter', and on an emulated board with 'pytest starter --uaccel-board mps2_an386'."""

from pathlib import Path

import numpy as np
import pytest

from uaccel.accelerator import load_accelerator
from uaccel.testing import BoardUnderTest, DriverUnderTest

FOLDER = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built() -> DriverUnderTest:
    return DriverUnderTest(load_accelerator(str(FOLDER)))


@pytest.fixture
def driver(built: DriverUnderTest) -> DriverUnderTest:
    """The driver and the model of the device in this process, as after power-on."""
    built.reset()
    assert built.activate() == 0, built.failure
    return built


def multiply(driver: DriverUnderTest) -> tuple[int, bool]:
    """What the driver returns, and whether the sums are right."""
    rng = np.random.default_rng(1)
    x, weights = rng.integers(-128, 128, (3, 40), np.int8), rng.integers(-128, 128, (7, 40), np.int8)
    sums = np.zeros((3, 7), np.int32)
    code = driver.call("starter_multiply", x, weights, sums, 3, 40, 7)
    return code, np.array_equal(sums, x.astype(np.int32) @ weights.T.astype(np.int32))


def test_it_multiplies(driver: DriverUnderTest) -> None:
    assert multiply(driver) == (0, True), driver.failure
    assert (driver.calls, driver.cycles) == (1, driver.busy)


CODES = {"hang": 1, "error": 2, "vanish": 3, "version": 5, "dma": 6}
"""What can be wrong with the device, and what the driver makes of it: codes of uaccel_accelerator.h."""


@pytest.mark.parametrize("fault", CODES)
def test_faults_are_errors(built: DriverUnderTest, fault: str) -> None:
    built.let_fail(fault)
    code = built.activate() or multiply(built)[0]
    assert code == CODES[fault]
    assert built.failure


def test_a_whole_model(uaccel_board: BoardUnderTest) -> None:
    """Every output byte is right, and the driver counted its calls."""
    outcome = uaccel_board.check("model.tflite", accelerators=[FOLDER])
    assert list(outcome.calls.values()) == [1, 1, 1]
