"""A small machine with one kind of layer, and an interpreter of its streams: what planning does, without any device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from uaccel.streams import (
    Box,
    Command,
    Compute,
    Dma,
    Layer,
    Machine,
    Memory,
    Network,
    Part,
    Places,
    Planned,
    Shape,
    Window,
)

BLOCK = 3
MACHINE = Machine(
    Memory(96, 2), Memory(12, 2), Memory(64), Dma(4, 5), Dma(4, 5), Dma(4, 5), queue=4, transfer_size=8, sync_size=4
)


@dataclass(frozen=True)
class Mix(Layer):
    """Every output channel is the sum of all bytes under the window, with a number of its own for each of ``steps``
    (modulo 256); and of a second input, where there is one."""

    window: Window = field(default_factory=Window)

    def channels(self, blocks: range) -> range:
        return range(blocks.start * BLOCK, min(blocks.stop * BLOCK, self.shape.channels))

    def needs(self, index: int, part: Part) -> Box:
        if index > 0:
            return self.result(part)
        rows = self.window.covered(0, part.rows, self.shapes[0].rows)
        columns = self.window.covered(1, part.columns, self.shapes[0].columns)
        return Box(part.image, rows, columns, range(self.shapes[0].channels))

    def weight_bytes(self, blocks: range, steps: range) -> int:
        return len(blocks) * len(steps)

    def weights(self, blocks: range, steps: range) -> bytes:
        return bytes(self.number(block, step) for block in blocks for step in steps)

    @staticmethod
    def number(block: int, step: int) -> int:
        return 1 + (7 * block + 3 * step) % 50

    def sum_bytes(self, part: Part) -> int:
        return part.pixels * len(part.blocks)

    def cycles(self, part: Part) -> int:
        return 2 + part.pixels * len(part.blocks) * len(part.steps)

    def commands(self, part: Part, places: Places) -> Sequence[Compute]:
        at = [(name, *pair) for name, pair in enumerate((p.address, p.row_pitch, p.pixel_pitch) for p in places.inputs)]
        fields = {
            f"{name} {number}": value for number, *values in at for name, value in zip("arp", values, strict=True)
        }
        read, out = places.inputs[0].box, places.output
        fields |= {"rows": len(part.rows), "columns": len(part.columns), "blocks": len(part.blocks)}
        fields |= {
            "steps": len(part.steps),
            "first": int(part.steps.start == 0),
            "last": int(part.steps.stop == self.steps),
        }
        fields |= {"height": len(read.rows), "width": len(read.columns), "depth": len(read.channels)}
        fields |= {"channels": len(out.box.channels), "weights": places.weights, "sums": places.sums}
        fields |= {"out": out.address, "out row": out.row_pitch, "out pixel": out.pixel_pitch, "inputs": len(at)}
        for axis, name in enumerate(("row", "column")):
            box, outputs = (read.rows, part.rows) if axis == 0 else (read.columns, part.columns)
            window = self.window
            fields[f"first {name}"] = outputs.start * window.strides[axis] - window.padding[axis] - box.start
            fields |= {f"kernel {name}": window.kernel[axis], f"stride {name}": window.strides[axis]}
        return [Compute("mix", fields, self.cycles(part), 16)]


def expected(network: Network, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the layers mean, without any machine."""
    values = dict(inputs)
    for layer in network.layers:
        assert isinstance(layer, Mix)
        values[layer.output] = _mixed(layer, values)
    return values


def _mixed(layer: Mix, values: Mapping[str, np.ndarray]) -> np.ndarray:
    shape, data = layer.shape, values[layer.inputs[0]].reshape(_extents(layer.shapes[0])).astype(np.int64)
    result = np.zeros(_extents(shape), np.int64)
    sums = data.sum(axis=3)
    for row in range(shape.rows):
        for column in range(shape.columns):
            for y, x in _taps(layer.window, row, column):
                if 0 <= y < sums.shape[1] and 0 <= x < sums.shape[2]:
                    result[:, row, column] += sums[:, y, x, None]
    blocks = np.arange(shape.channels) // BLOCK
    result += np.array([sum(layer.number(int(b), s) for s in range(layer.steps)) for b in blocks])
    for name in layer.inputs[1:]:
        result += values[name].reshape(result.shape)
    return result.astype(np.uint8)


def _taps(window: Window, row: int, column: int) -> list[tuple[int, int]]:
    first = (row * window.strides[0] - window.padding[0], column * window.strides[1] - window.padding[1])
    return [(first[0] + y, first[1] + x) for y in range(window.kernel[0]) for x in range(window.kernel[1])]


def _extents(shape: Shape) -> tuple[int, int, int, int]:
    return shape.images, shape.rows, shape.columns, shape.channels


def play(machine: Machine, network: Network, planned: Planned, inputs: Mapping[str, np.ndarray]) -> list[bytes]:
    """The outputs, after the commands were executed one by one; accesses beyond what they say are an error."""
    sizes = {layer.output: layer.shape.bytes for layer in network.layers}
    places = [bytearray(planned.constants), *(bytearray(inputs[name].tobytes()) for name in network.inputs)]
    places += [bytearray(sizes[name]) for name in network.outputs] + [bytearray(planned.scratch)]
    chip = {name: bytearray(b"\xee" * machine.memory(name).bytes) for name in ("activations", "weights", "sums")}
    for command in planned.stream.commands:
        if command.kind in ("load", "store"):
            _transfer(command, places, chip)
        elif command.kind == "mix":
            _compute(command.fields, chip)
    first = 1 + len(network.inputs)
    return [bytes(place) for place in places[first : first + len(network.outputs)]]


def _transfer(command: Command, places: list[bytearray], chip: dict[str, bytearray]) -> None:
    f = command.fields
    memory, place = chip["weights" if f["memory"] else "activations"], places[f["place"]]
    for plane in range(f["planes"]):
        for run in range(f["runs"]):
            outside = f["offset"] + plane * f["stride_plane"] + run * f["stride_run"]
            inside = f["address"] + plane * f["pitch_plane"] + run * f["pitch_run"]
            assert outside + f["run"] <= len(place), command.label
            assert inside + f["run"] <= len(memory), command.label
            if command.kind == "load":
                memory[inside : inside + f["run"]] = place[outside : outside + f["run"]]
            else:
                place[outside : outside + f["run"]] = memory[inside : inside + f["run"]]


def _compute(f: Mapping[str, int], chip: dict[str, bytearray]) -> None:
    memory, pixel = chip["activations"], 0
    for row in range(f["rows"]):
        for column in range(f["columns"]):
            total = _window_sum(f, memory, row, column) if f["first"] else 0
            for block in range(f["blocks"]):
                at = f["sums"] + pixel * f["blocks"] + block
                value = (total if f["first"] else chip["sums"][at]) + sum(
                    chip["weights"][f["weights"] + block * f["steps"] + step] for step in range(f["steps"])
                )
                if f["last"]:
                    _write(f, memory, row, column, block, value)
                else:
                    chip["sums"][at] = value % 256
            pixel += 1


def _window_sum(f: Mapping[str, int], memory: bytearray, row: int, column: int) -> int:
    total = 0
    for ky in range(f["kernel row"]):
        for kx in range(f["kernel column"]):
            y, x = f["first row"] + row * f["stride row"] + ky, f["first column"] + column * f["stride column"] + kx
            if 0 <= y < f["height"] and 0 <= x < f["width"]:
                at = f["a 0"] + y * f["r 0"] + x * f["p 0"]
                total += sum(memory[at : at + f["depth"]])
    return total


def _write(f: Mapping[str, int], memory: bytearray, row: int, column: int, block: int, value: int) -> None:
    for channel in range(block * BLOCK, min((block + 1) * BLOCK, f["channels"])):
        extra = 0
        for index in range(1, f["inputs"]):
            extra += memory[f[f"a {index}"] + row * f[f"r {index}"] + column * f[f"p {index}"] + channel]
        memory[f["out"] + row * f["out row"] + column * f["out pixel"] + channel] = (value + extra) % 256


def with_banks(machine: Machine, banks: int) -> Machine:
    return replace(
        machine,
        activations=replace(machine.activations, banks=banks),
        weights=replace(machine.weights, banks=banks),
    )
