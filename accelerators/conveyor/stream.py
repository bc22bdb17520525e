"""A region becomes one command stream: a command per layer, and memory for what one layer gives another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.accelerator import Constant, Input, Lowered, Output, Region, Scratch, library_call
from uaccel.streams import Block, plan

from .commands import At, Command, Place, Stream
from .encode import VIEW, Encoded, Held, encode
from .packed import pack
from .readable import to_json

ALIGNMENT = 16
"""Of every tensor in a place: where bursts on the bus begin."""


def lower_region(region: Region) -> Lowered:
    """The calls of the driver that tell it where everything lies and play the stream; and files for a reader."""
    layout = _Layout(region)
    stream, constants = layout.stream(), layout.constants()
    packed = pack(stream)
    arguments: dict[str, Constant | Scratch] = {
        "constants": Constant("constants", np.frombuffer(constants, np.uint8)),
        "scratch": Scratch(),
    }
    calls = [
        library_call("conveyor_place", number, arguments.get(place.kind) or layout.border[number])
        for number, place in enumerate(stream.places)
    ]
    calls.append(library_call("conveyor_play", Constant("stream", np.frombuffer(packed, np.uint8)), len(packed)))
    files: dict[str, str | bytes] = {"stream.bin": packed, "stream.json": to_json(stream, constants)}
    if constants:
        files["constants.bin"] = constants
    labels = tuple(command.layer for command in stream.commands)
    return Lowered(
        tuple(calls),
        layout.scratch,
        artefacts=files,
        labels=labels,
        cycles=stream.cycles,
        instructions=830 + 203 * len(stream.places) + 1280 * len(stream.commands),  # most of it the checksum's
    )


@dataclass(frozen=True)
class _Step:
    """A command before its tensors have places."""

    layer: str
    encoded: Encoded


class _Layout:
    """Where everything of a region lies. Places: constants, inputs, outputs, scratch; the first and last if needed."""

    def __init__(self, region: Region) -> None:
        self.views = {call.results[0]: str(call.sources[0]) for call in region.calls if call.op == VIEW}
        self.steps = [_Step(call.name, encode(call)) for call in region.calls if call.op != VIEW]
        self.packed: list[NDArray[Any]] = []
        self.packed_bytes = 0
        self.at: dict[str, At] = {}
        self.border: dict[int, Input | Output] = {}
        known = [value for step in self.steps for value in step.encoded.tensors.values() if not isinstance(value, str)]
        self.places = [Place("constants", 0)] if known else []
        for index, tensor in enumerate(region.inputs):
            self._at_border(tensor.name, Place("input", tensor.info.size), Input(index))
        for index, tensor in enumerate(region.outputs):
            self._at_border(tensor.name, Place("output", tensor.info.size), Output(index))
        sizes = {tensor.name: tensor.info.size for tensor in region.interior if tensor.name not in self.views}
        self.scratch = self._place_interior(sizes)
        self.commands = tuple(self._command(step) for step in self.steps)

    def stream(self) -> Stream:
        places = [Place("constants", self.packed_bytes), *self.places[1:]] if self.packed else self.places
        return Stream(tuple(places), self.commands)

    def constants(self) -> bytes:
        return b"".join(_padded(array.tobytes()) for array in self.packed)

    def _at_border(self, name: str, place: Place, argument: Input | Output) -> None:
        self.border[len(self.places)] = argument
        self.at[name] = At(len(self.places), 0)
        self.places.append(place)

    def _place_interior(self, sizes: dict[str, int]) -> int:
        """Bytes of scratch memory; what is needed no more makes room for what comes."""
        used = [[self._viewed(n) for n in _names(step.encoded)] for step in self.steps]
        blocks = []
        for name, size in sizes.items():
            steps = [number for number, names in enumerate(used) if name in names]
            blocks.append(Block(name, size, steps[0], steps[-1], ALIGNMENT))
        planned = plan(blocks)
        if blocks:
            self.at |= {name: At(len(self.places), offset) for name, offset in planned.offsets.items()}
            self.places.append(Place("scratch", planned.size))
        return planned.size

    def _viewed(self, name: str) -> str:
        """The tensor whose bytes these are."""
        while name in self.views:
            name = self.views[name]
        return name

    def _command(self, step: _Step) -> Command:
        tensors = {role: self._at(value) for role, value in step.encoded.tensors.items()}
        return Command(step.encoded.operation, tensors, step.encoded.fields, step.layer)

    def _at(self, value: Held) -> At:
        if isinstance(value, str):
            return self.at[self._viewed(value)]
        offset = self.packed_bytes
        self.packed.append(value)
        self.packed_bytes += len(_padded(value.tobytes()))
        return At(0, offset)


def _names(encoded: Encoded) -> Sequence[str]:
    return [value for value in encoded.tensors.values() if isinstance(value, str)]


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)
