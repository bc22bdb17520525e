"""The driver against numpy, what is wrong with a device, and a whole model on a board."""

from pathlib import Path

import numpy as np
import pytest

import uaccel
from uaccel.accelerator import load_accelerator
from uaccel.testing import BoardUnderTest, DriverUnderTest

FOLDER = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built() -> DriverUnderTest:
    """The driver and the model of the device, compiled into this process."""
    return DriverUnderTest(load_accelerator(str(FOLDER)))


def translate(driver: DriverUnderTest, size: int) -> tuple[int, bool]:
    """What the driver returns, and whether each byte is right."""
    rng = np.random.default_rng(size)
    x, table = rng.integers(-128, 128, size, np.int8), rng.integers(-128, 128, 256, np.int8)
    y = np.zeros(size, np.int8)
    code = driver.call("lookup_unit_translate", x, table, y, size)
    return code, np.array_equal(y, table[x.view(np.uint8)])


@pytest.mark.parametrize("size", [1, 3, 4, 1000, 65536])
def test_every_byte_is_looked_up(built: DriverUnderTest, size: int) -> None:
    built.reset()
    assert built.activate() == 0, built.failure
    assert translate(built, size) == (0, True), built.failure
    assert (built.calls, built.cycles) == (1, 20 + 64 + 2 * -(-size // 4))


@pytest.mark.parametrize(("fault", "code"), [("hang", 1), ("error", 2), ("vanish", 3), ("version", 5), ("dma", 6)])
def test_faults_are_errors(built: DriverUnderTest, fault: str, code: int) -> None:
    built.let_fail(fault)
    assert (built.activate() or translate(built, 8)[0]) == code
    assert built.failure


def test_impossible_sizes(built: DriverUnderTest) -> None:
    built.reset()
    assert built.activate() == 0
    x = np.zeros(8, np.int8)
    for size in (0, 65537):
        assert built.call("lookup_unit_translate", x, x, x, size) == 8
        assert built.failure == "lookup_unit: a tensor is empty or too large"


def test_a_whole_model(uaccel_board: BoardUnderTest) -> None:
    """Every output byte is right, and each layer was the device's once."""
    outcome = uaccel_board.check(uaccel.models()["branches"], accelerators=[FOLDER])
    assert outcome.calls == {"hard_swish_7": 1, "tanh_18": 1, "logistic_20": 1}
