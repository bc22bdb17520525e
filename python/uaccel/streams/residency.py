"""Which tensors stay on chip between layers, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uaccel.memory import Block, plan
from uaccel.streams.layer import Layer
from uaccel.streams.machine import Machine
from uaccel.streams.tiling import Tiling, input_bytes, output_bytes


@dataclass(frozen=True)
class Life:
    """A tensor inside of a region: from the layer that makes it to the last one that reads it."""

    name: str
    bytes: int
    first: int
    last: int


def lives(layers: Sequence[Layer]) -> list[Life]:
    """Of everything that one layer gives another."""
    made = {layer.output: number for number, layer in enumerate(layers)}
    last = {name: number for number, layer in enumerate(layers) for name in layer.inputs if name in made}
    sizes = {layer.output: layer.shape.bytes for layer in layers}
    return [Life(name, sizes[name], made[name], last[name]) for name in made if name in last]


@dataclass(frozen=True)
class Residents:
    """Addresses of the tensors that stay, and when they are there."""

    addresses: Mapping[str, int]
    lives: Mapping[str, Life]
    size: int

    def gaps(self, layer: int) -> list[tuple[int, int]]:
        """What is free of the memory while this layer runs."""
        there = [life for life in self.lives.values() if life.first <= layer <= life.last]
        gaps, begin = [], 0
        for life in sorted(there, key=lambda life: self.addresses[life.name]):
            address = self.addresses[life.name]
            if address > begin:
                gaps.append((begin, address))
            begin = max(begin, address + life.bytes)
        return [*gaps, (begin, self.size)] if begin < self.size else gaps


def choose_residents(machine: Machine, layers: Sequence[Layer], alive: Sequence[Life], reserve: int) -> Residents:
    """Small ones first, as long as ``reserve`` bytes are left for layers some tensor of which passes through in pieces,
    or as many as their smallest pieces need."""
    size, alignment = machine.activations.bytes, machine.activations.alignment
    chosen: list[Life] = []
    placed: Mapping[str, int] = {}
    for life in sorted(alive, key=lambda life: (life.bytes, life.first)):
        names = {other.name for other in (*chosen, life)}
        blocks = [Block(other.name, other.bytes, other.first, other.last, alignment) for other in (*chosen, life)]
        for number, layer in enumerate(layers):
            pieces = _pieces(machine, layer, names, reserve)
            blocks += [Block(f"pieces {number}", pieces, number, number, alignment)] if pieces else []
        if _peak(blocks, len(layers)) > size:
            continue
        offsets = plan(blocks)
        if offsets.size <= size:
            chosen.append(life)
            placed = offsets.offsets
    return Residents({life.name: placed[life.name] for life in chosen}, {life.name: life for life in chosen}, size)


def _pieces(machine: Machine, layer: Layer, residents: set[str], reserve: int) -> int:
    """What to leave for pieces of what does not stay: enough for the smallest ones."""
    tiling = Tiling(1, 1, 1, layer.steps, False, False)
    alignment = machine.activations.alignment
    sizes = [input_bytes(layer, i, tiling) for i, name in enumerate(layer.inputs) if name not in residents]
    sizes += [output_bytes(layer, tiling)] if layer.output not in residents else []
    return max(reserve, sum(size + -size % alignment for size in sizes)) if sizes else 0


def _peak(blocks: Sequence[Block], steps: int) -> int:
    return max(sum(b.size for b in blocks if b.first <= step <= b.last) for step in range(steps))
