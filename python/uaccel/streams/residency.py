"""Which tensors stay on chip between layers, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from uaccel.basics.numbers import round_up
from uaccel.machines.tiling import Tiling
from uaccel.memory import Block, plan
from uaccel.streams.layer import Layer
from uaccel.streams.machine import Machine
from uaccel.streams.tiling import input_bytes, output_bytes

Taken = tuple[tuple[int, int], ...]
"""Memory on chip that is not free, from and to."""
Pieces = list[tuple[str, int]]
"""Tensors of a layer, and bytes of each."""


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


def lives_beside(alive: Sequence[Life], spans: Sequence[tuple[int, int]]) -> list[Life]:
    """Where the layers of each span, from and to, run side by side: what one of them reads or makes is there as long as
    all of them, and what only they see is nowhere."""
    lives = []
    for life in alive:
        inner = any(begin <= life.first and life.last < end for begin, end in spans)
        firsts = [begin for begin, end in spans if begin <= life.first < end]
        lasts = [end - 1 for begin, end in spans if begin <= life.last < end]
        if not inner:
            lives.append(replace(life, first=min([life.first, *firsts]), last=max([life.last, *lasts])))
    return lives


@dataclass(frozen=True)
class Residents:
    """Addresses of the tensors that stay, and when they are there."""

    addresses: Mapping[str, int]
    lives: Mapping[str, Life]

    def taken(self, begin: int, end: int) -> Taken:
        """What of the memory is not free while these layers run: from and to."""
        there = [life for life in self.lives.values() if life.first < end and begin <= life.last]
        return tuple((self.addresses[life.name], self.addresses[life.name] + life.bytes) for life in there)


def choose_residents(machine: Machine, smallest: Sequence[Pieces], alive: Sequence[Life], reserve: int) -> Residents:
    """Small ones first, as long as ``reserve`` bytes are left for layers some tensor of which passes through in pieces,
    or as many as their smallest pieces need, which ``smallest`` tells for every layer."""
    size, alignment = machine.activations.bytes, machine.activations.alignment
    ordered = sorted(alive, key=lambda life: (life.bytes, life.first))

    def placed(lives: Sequence[Life]) -> Mapping[str, int] | None:
        """Addresses, where they fit with all pieces of what does not stay."""
        names = {life.name for life in lives}
        blocks = [Block(life.name, life.bytes, life.first, life.last, alignment) for life in lives]
        for number, sizes in enumerate(smallest):
            streaming = [size for name, size in sizes if name not in names]
            pieces = max(reserve, sum(streaming)) if streaming else 0
            blocks += [Block(f"pieces {number}", pieces, number, number, alignment)] if pieces else []
        if _peak(blocks, len(smallest)) > size:
            return None
        planned = plan(blocks)
        return planned.offsets if planned.size <= size else None

    chosen, addresses = ordered, placed(ordered)
    if addresses is None:
        chosen, addresses = [], {}
        for life in ordered:
            more = placed([*chosen, life])
            if more is not None:
                chosen, addresses = [*chosen, life], more
    return Residents({life.name: addresses[life.name] for life in chosen}, {life.name: life for life in chosen})


def smallest_pieces(machine: Machine, layer: Layer) -> Pieces:
    """Each tensor of a layer, and what the smallest piece of it takes."""
    tiling = Tiling(1, 1, 1, layer.steps, False, False)
    alignment = machine.activations.alignment
    sizes = [(name, input_bytes(layer, index, tiling)) for index, name in enumerate(layer.inputs)]
    sizes.append((layer.output, output_bytes(layer, tiling)))
    return [(name, round_up(size, alignment)) for name, size in sizes]


def _peak(blocks: Sequence[Block], steps: int) -> int:
    changes = [0] * (steps + 1)
    for block in blocks:
        changes[block.first] += block.size
        changes[block.last + 1] -= block.size
    return max(accumulate(changes))
