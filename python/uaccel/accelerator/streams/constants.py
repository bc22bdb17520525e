"""Holds the bytes that loads read and that are known ahead of time, and where weights lie on chip."""

from __future__ import annotations

from dataclasses import dataclass, field

from uaccel.accelerator.streams.machine import Layer, Machine, Part, packed
from uaccel.util.text import round_up


@dataclass
class StreamConstants:
    """Collects the bytes that loads read and that are known ahead of time, equal chunks once."""

    data: bytearray = field(default_factory=bytearray)
    offsets: dict[bytes, int] = field(default_factory=dict)
    alignment: int = 16

    def offset(self, layer: Layer, part: Part, coded: bool) -> int:
        """Where the weights of a part lie; ``coded``: compressed."""
        weights = layer.weights(part.blocks, part.steps)
        return self.add(packed(weights) if coded else weights)

    def add(self, chunk: bytes) -> int:
        if chunk not in self.offsets:
            self.data += bytes(-len(self.data) % self.alignment)
            self.offsets[chunk] = len(self.data)
            self.data += chunk
        return self.offsets[chunk]


class UnreadConstants(StreamConstants):
    """Stands for constants where only the time of a stream is asked for: no byte of them is packed."""

    def offset(self, layer: Layer, part: Part, coded: bool) -> int:
        return 0


class WeightMemory:
    """Allocates the weight memory as a ring: chunks lie one behind the other, and begin at 0 again at the end.

    ``there`` holds the chunks that nothing has overwritten, so that they need not be loaded again. A load
    overwrites what was loaded longest ago, so it rarely has to wait for a computation that still reads it.
    A layer whose weights all fit begins where it need not wrap. Without a second bank every layer begins at 0.
    """

    def __init__(self, machine: Machine) -> None:
        self.memory = machine.weights
        self.next = 0
        self.there: dict[tuple[str, range, range], tuple[int, int]] = {}

    def begin(self, total: int) -> None:
        """Prepares for a layer with so many bytes of weights."""
        if self.memory.banks == 1 or self.next + total > self.memory.bytes >= total:
            self.next = 0

    def forget(self) -> None:
        """Drops all chunks, since others use the memory."""
        self.next = 0
        self.there.clear()

    def find(self, key: tuple[str, range, range]) -> int | None:
        found = self.there.get(key)
        return None if found is None else found[0]

    def take(self, key: tuple[str, range, range], size: int) -> int:
        """Allocates a chunk: the result is its address. Chunks that it overlaps are there no more."""
        size = round_up(size, self.memory.alignment)
        begin = self.next if self.next + size <= self.memory.bytes else 0
        end = begin + size
        self.there = {k: place for k, place in self.there.items() if place[1] <= begin or end <= place[0]}
        self.there[key] = (begin, end)
        self.next = end
        return begin
