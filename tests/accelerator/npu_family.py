"""Machines of npu's family in this process: a region is planned, packed, played on the device model, and compared."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.accelerator import Accelerator, Region, load_accelerator
from uaccel.streams import LATENCY, Planned, plan_network
from uaccel.testing.device_library import DeviceLibrary
from uaccel.testing.layers import Example

Array = NDArray[Any]

SMALL = {
    "NAME": '"npu_small"',
    "ROWS": 8,
    "COLUMNS": 8,
    "PORTS": 2,
    "BUFFERS": 1,
    "ACTIVATION_BYTES": 8192,
    "WEIGHT_BYTES": 6144,
    "SUM_BYTES": 2048,
    "BUS_BYTES": 2,
    "DMA_START": 100,
    "QUEUE": 4,
}
"""Another machine, by its numbers alone."""
FLASH = {"NAME": '"npu_flash"', "FLASH_FIRST": 20, "FLASH_NEXT": 7, "UNPACK": 2}
"""Constants and commands of a byte a cycle, and a load engine that unpacks them."""
TINY = {**SMALL, "NAME": '"npu_tiny"', "ACTIVATION_BYTES": 512, "WEIGHT_BYTES": 512, "SUM_BYTES": 256, "BUFFERS": 2}
"""Memories in which hardly anything fits as a whole."""
ODD = {**TINY, "NAME": '"npu_odd"', "ROWS": 5, "COLUMNS": 3, "PORTS": 1, "ACTIVATION_BYTES": 992, "WEIGHT_BYTES": 480}

CONTROL, STATUS, ERROR, ERROR_COMMAND, COMMANDS, LENGTH = 0x18, 0x1C, 0x20, 0x24, 0x28, 0x2C
BUSY, PLACE, BASE, LIMIT = 0x38, 0x48, 0x4C, 0x50
START, DONE = 1, 1
PLACE_SPACING = 0x1000000


def npu() -> Accelerator:
    return load_accelerator("npu")


def part(name: str) -> Any:
    """A module of the accelerator's folder."""
    stream = npu().stream
    assert stream is not None
    package = stream.__module__.rpartition(".")[0]
    return importlib.import_module(f"{package}.{name}")


@dataclass(frozen=True)
class Played:
    outputs: list[bytes]
    planned: Planned
    cycles: int
    busy: tuple[int, int, int]


class Family:
    """A machine with some numbers changed in its header, compiled into ``folder``."""

    def __init__(self, folder: Path, numbers: Mapping[str, Any]) -> None:
        header = next(path for path in npu().devices if path.name == "npu_machine.h")
        text = header.read_text()
        for name, value in numbers.items():
            text = re.sub(rf"(#define NPU_{name} )\S+", rf"\g<1>{value}", text)
        own = folder / "machine" / "device" / "npu_machine.h"
        own.parent.mkdir(parents=True)
        own.write_text(text)
        self.npu = part("machine").read_machine(folder / "machine")
        self.device = DeviceLibrary("npu", [*npu().devices, own], folder / "library")

    def planned(self, region: Region, objective: str = LATENCY) -> Planned:
        return plan_network(self.npu.machine, part("network").network_of(region, self.npu), objective)

    def accelerator(self) -> Accelerator:
        """With the checks and costs of this machine."""
        found: Accelerator = part("describe").describe_machine(self.npu, LATENCY)
        return found

    def play(self, region: Region, inputs: Sequence[Array], objective: str = LATENCY) -> Played:
        planned = self.planned(region, objective)
        stream = part("stream").packed(planned, self.npu)
        outputs = [bytes(tensor.info.size) for tensor in region.outputs]
        data = [planned.constants, *(x.tobytes() for x in inputs), *outputs, bytes(planned.scratch)]
        error = self.start(stream[32:], data)
        assert error == (0, 0xFFFFFFFF), planned.labels[error[1]]
        places = list(self.device.memory.pieces.values())[1 + len(inputs) : 1 + len(inputs) + len(outputs)]
        busy = tuple(self.device.read(BUSY + 4 * engine) for engine in range(3))
        return Played([bytes(place) for place in places], planned, self.device.cycles, (busy[0], busy[1], busy[2]))

    def start(self, commands: bytes, places: Sequence[bytes]) -> tuple[int, int]:
        """The error and its command; what was in the places before is what they hold now."""
        device = self.device
        device.reset()
        device.memory.pieces = {(number + 1) * PLACE_SPACING: bytearray(data) for number, data in enumerate(places)}
        for number, (base, data) in enumerate(list(device.memory.pieces.items())):
            for register, value in ((PLACE, number), (BASE, base), (LIMIT, len(data))):
                device.write(register, value)
        device.memory.pieces[0x70000000] = bytearray(commands)
        device.write(COMMANDS, 0x70000000)
        device.write(LENGTH, len(commands))
        device.write(CONTROL, START)
        assert device.read(STATUS) & DONE
        return device.read(ERROR), device.read(ERROR_COMMAND)


def check(family: Family, example: Example, inputs: Sequence[Array], objective: str = LATENCY) -> Played:
    """The bytes are the meaning's, and the times those that were predicted."""
    played = family.play(example.region, inputs, objective)
    for tensor, got, wanted in zip(example.region.outputs, played.outputs, example.expected(inputs), strict=True):
        np.testing.assert_array_equal(np.frombuffer(got, np.int8).reshape(wanted.shape), wanted, err_msg=tensor.name)
    timeline = played.planned.timeline
    assert played.cycles == timeline.total
    assert played.busy == tuple(timeline.busy.values())
    spans = sorted(family.device.spans, key=lambda span: span.command)
    assert [(span.begin, span.end) for span in spans] == [tuple(span) for span in timeline.spans]
    return played
