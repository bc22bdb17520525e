"""Random layers of npu's family in this process: planned, and played on the device's model and on its RTL, with places
that begin anywhere."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.accelerator import ROUNDINGS, Accelerator, Region, load_accelerator
from uaccel.model import Array
from uaccel.streams import LATENCY, Planned, plan_network
from uaccel.testing import DeviceLibrary
from uaccel.testing.accelerator_check import draw_layers, region_for
from uaccel.testing.layers import Example, Layers, example

HEADER: Final = 32
"""Bytes of a stream before its commands."""
CONTROL, STATUS, CYCLES, COMMANDS, LENGTH, PLACE, BASE, LIMIT = 0x18, 0x1C, 0x30, 0x28, 0x2C, 0x48, 0x4C, 0x50
STREAM_AT, SPACING = 0x70000000, 0x1000000
BEHIND: Final = 8
"""Bytes from the commands to the constants, both in flash."""
LONGEST: Final = 100_000
"""Of a job, in ticks of 50 cycles."""

OF_ONNX: dict[str, tuple[int, Callable[..., Any]]] = {
    "weighted_sum": (2, Layers.weighted_sum),
    "scaled_sum": (1, Layers.real_mean),
    "window_mean": (1, Layers.window_mean),
    "window_max": (1, Layers.window_max),
    "lookup": (1, Layers.lookup),
    "batch_matmul": (2, partial(Layers.batch_matmul, adj_x=False, adj_y=True)),
}
"""Operators that are not drawn: of how many tensors, and a layer of each."""


@dataclass(frozen=True)
class Compared:
    """Cycles of one layer, and the bytes that it gave."""

    layer: str
    model: int
    rtl: int
    predicted: int
    outputs: list[bytes]

    @property
    def unlike(self) -> float:
        return abs(self.model / self.rtl - 1)

    @property
    def missed(self) -> float:
        return abs(self.predicted / self.rtl - 1)

    def __str__(self) -> str:
        return f"model {self.model}, RTL {self.rtl}, predicted {self.predicted}: {self.layer}"


class Machine:
    """``folder`` holds a machine of the family, with ``rtl/``; the model is compiled into ``library``."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.accelerator: Accelerator = load_accelerator(str(folder))
        self.model = DeviceLibrary(folder.name, list(self.accelerator.devices), library)
        self.rtl = DeviceLibrary.of_rtl(folder.name, folder)
        self._npu = self._part("machine").read_machine(folder)

    def _part(self, name: str) -> Any:
        assert self.accelerator.stream is not None
        return importlib.import_module(f"{self.accelerator.stream.__module__.rpartition('.')[0]}.{name}")

    def compared(self, count: int, seed: int) -> Iterator[Compared]:
        """Layers drawn as ``uaccel check`` draws them."""
        random = np.random.default_rng(seed)
        for _, case in draw_layers(self.accelerator, count, seed, {}):
            region = region_for(case)
            assert region is not None
            yield self.both(str(case), region, case.inputs(), random)

    def both(self, layer: str, region: Region, inputs: Sequence[Array], random: np.random.Generator) -> Compared:
        """Bytes are equal, or it fails."""
        planned = plan_network(self._npu.machine, self._part("network").network_of(region, self._npu), LATENCY)
        offsets = [16 * int(offset) for offset in random.integers(0, 64, 8)]
        given = [array.tobytes() for array in inputs]
        model, rtl = (self._played(device, planned, region, given, offsets) for device in (self.model, self.rtl))
        assert model[1] == rtl[1], layer
        return Compared(layer, model[0], rtl[0], planned.timeline.total, rtl[1])

    def _played(
        self, device: DeviceLibrary, planned: Planned, region: Region, inputs: list[bytes], offsets: list[int]
    ) -> tuple[int, list[bytes]]:
        """Cycles and outputs."""
        stream = self._part("stream").packed(planned, self._npu)[HEADER:]
        outputs = [bytes(tensor.info.size) for tensor in region.outputs]
        places = [*inputs, *outputs, bytes(planned.scratch)]
        begin = -(-(HEADER + len(stream) + BEHIND) // 16) * 16
        flash = bytearray(HEADER) + stream + bytes(begin - HEADER - len(stream)) + planned.constants
        device.reset()
        bases = [STREAM_AT + begin, *(SPACING * (number + 2) + offset for number, offset in enumerate(offsets))]
        device.memory.pieces = {STREAM_AT: flash, **dict(zip(bases[1:], map(bytearray, places), strict=False))}
        device.memory.constants = {STREAM_AT}
        for number, data in enumerate((planned.constants, *places)):
            for register, value in ((PLACE, number), (BASE, bases[number]), (LIMIT, len(data))):
                device.write(register, value)
        device.write(COMMANDS, STREAM_AT + HEADER)
        device.write(LENGTH, len(stream))
        device.write(CONTROL, 1)
        for _ in range(LONGEST if device is self.rtl else 0):
            if device.read(STATUS) & 1:
                break
            device.tick(50)
        assert device.read(STATUS) == 1, planned.labels
        results = bases[1 + len(inputs) : 1 + len(inputs) + len(outputs)]
        return device.read(CYCLES), [bytes(device.memory.pieces[base]) for base in results]


def of_onnx(name: str, number: int, random: np.random.Generator) -> tuple[Example, list[Any]]:
    count, build = OF_ONNX[name]
    layers = Layers(number, ROUNDINGS[number % len(ROUNDINGS)])
    shape = (1, *(int(extent) for extent in random.integers(1, 12, 2)), int(random.integers(1, 40)))
    made = example([shape] * count, lambda block, *xs: [block.emit(build(layers, *xs), "layer")])
    return made, [layers.int8(*shape) for _ in range(count)]
