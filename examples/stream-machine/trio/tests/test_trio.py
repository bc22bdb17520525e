"""Streams of random layers on the model of the device: every byte, and every cycle that was predicted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import uaccel
from uaccel.accelerator import Constant, Input, Lowered, Output, load_accelerator
from uaccel.testing import BoardUnderTest, DeviceLibrary, DriverUnderTest, Example, Layers, example

FOLDER = Path(__file__).parents[1]
TRIO = load_accelerator(str(FOLDER))
START, STATUS, CYCLES, STREAM, COMMANDS, PLACES = 0x08, 0x0C, 0x10, 0x18, 0x1C, 0x20


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> DeviceLibrary:
    return DeviceLibrary("trio", TRIO.devices, tmp_path_factory.mktemp("trio"))


@pytest.fixture(scope="module")
def driver() -> DriverUnderTest:
    return DriverUnderTest(TRIO)


def lowered(made: Example) -> Lowered:
    assert TRIO.stream is not None
    result = TRIO.stream(made.region)
    assert isinstance(result, Lowered)
    return result


def play(device: DeviceLibrary, region: Lowered, inputs: Sequence[NDArray[Any]], sizes: Sequence[int]) -> list[bytes]:
    """What the driver does, without the driver: places, stream, start. The outputs."""
    device.reset()
    outputs: list[bytearray] = []
    for at, call in enumerate(region.calls):
        memory = next(argument for argument in call.arguments if not isinstance(argument, int))
        data = bytearray(region.scratch)
        if isinstance(memory, Input):
            data = bytearray(inputs[memory.index].tobytes())
        elif isinstance(memory, Constant):
            data = bytearray(memory.data.tobytes())
        elif isinstance(memory, Output):
            data = bytearray(sizes[memory.index])
            outputs.append(data)
        device.memory.pieces[0x01000000 * (at + 1)] = data
        device.write(STREAM if call.function == "trio_play" else PLACES + 4 * at, 0x01000000 * (at + 1))
    _, commands, *_ = region.calls[-1].arguments
    assert isinstance(commands, int)
    device.write(COMMANDS, commands)
    device.write(START, 1)
    assert device.read(STATUS) == 1
    return [bytes(output) for output in outputs]


def network(seed: int) -> tuple[Example, list[NDArray[np.int8]]]:
    """A chain of layers with a branch, of any sizes."""
    layers = Layers(seed)
    shape = (1, layers.integer(1, 9), layers.integer(1, 9), layers.integer(1, 40))

    def build(block: Any, x: Any) -> list[Any]:
        first = block.emit(layers.same(x, layers.integer(1, 70), kernel=1), "first")
        second = block.emit(layers.same(first, layers.integer(1, 30), kernel=1), "second")
        third = block.emit(layers.same(first, layers.integer(1, 9), kernel=1), "third")
        return [second, third]

    return example([shape], build), [layers.int8(*shape)]


@pytest.mark.parametrize("seed", range(4))
def test_every_byte_and_every_cycle(device: DeviceLibrary, seed: int) -> None:
    made, inputs = network(seed)
    region = lowered(made)
    outputs = play(device, region, inputs, [tensor.info.size for tensor in made.region.outputs])
    assert outputs == [wanted.tobytes() for wanted in made.expected(inputs)]
    assert device.read(CYCLES) == region.cycles


def test_engines_work_side_by_side(device: DeviceLibrary) -> None:
    """More than the machine holds goes through it in parts: one is loaded while another is computed."""
    layers = Layers(7)
    made = example([(512, 64)], lambda block, x: [block.emit(layers.fully_connected(x, units=48), "y")])
    region = lowered(made)
    play(device, region, [layers.int8(512, 64)], [512 * 48])
    busy = sum(span.end - span.begin for span in device.spans)
    assert busy > 1.2 * device.read(CYCLES)


def test_what_does_not_fit_is_refused() -> None:
    layers = Layers(1)
    made = example([(1, 5000)], lambda block, x: [block.emit(layers.fully_connected(x), "y")])
    assert TRIO.operations[0].check(made.region) == (
        "its smallest part needs 40096 bytes of weights on chip, and there are 4096"
    )


@pytest.mark.parametrize(("fault", "code"), [("hang", 1), ("error", 2), ("vanish", 3), ("version", 5)])
def test_faults_are_errors(driver: DriverUnderTest, fault: str, code: int) -> None:
    driver.let_fail(fault)
    assert (driver.activate() or driver.call("trio_play", np.zeros(32, np.uint8), 1, 1, 100)) == code
    assert driver.failure


def test_a_whole_model(uaccel_board: BoardUnderTest) -> None:
    """Two convolutions and a fully connected layer of the gesture classifier."""
    outcome = uaccel_board.check(uaccel.models()["gesture"], accelerators=[FOLDER])
    assert outcome.calls == {"conv_2d_2": 1, "conv_2d_4": 1, "fully_connected_7": 1}
