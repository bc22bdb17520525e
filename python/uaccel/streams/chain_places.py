"""Where the tensors and the weights of a chain lie on chip while its bands pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from uaccel.basics.numbers import pieces, round_up
from uaccel.machines.machine import Memory
from uaccel.machines.tiling import extents
from uaccel.memory import Block, lowest_free
from uaccel.streams.chain import Chain, Links, Weights
from uaccel.streams.decided import Slots, Where
from uaccel.streams.layer import Layer
from uaccel.streams.machine import Machine
from uaccel.streams.residency import Taken

WAYS: Final = 3
"""To share the weight memory that are compared."""


def placed(
    machine: Machine,
    links: Links,
    height: int,
    buffered: bool,
    weights: tuple[Weights, ...],
    residents: Mapping[str, int],
    taken: Taken,
) -> Chain | None:
    """Bands of this height, if they fit beside what stays. ``buffered``: what comes and goes has two slots."""
    most = _most_rows(links, height)
    wanted = []
    for name, (first, last) in links.spans.items():
        if name not in residents:
            size = round_up(most[name] * links.shapes[name].row_pitch, machine.activations.alignment)
            two = buffered and name not in links.inner
            span = (0, len(links.layers)) if two else (first, last)
            wanted += [Block(f"{name} {slot}", size, *span, machine.activations.alignment) for slot in range(1 + two)]
    addresses = _fitted(machine.activations, wanted, taken)
    if addresses is None:
        return None
    places: dict[str, Where] = {name: residents[name] for name in links.spans if name in residents}
    rooms = {block.name: block.size for block in wanted}
    for name in links.spans:
        if name not in residents:
            slots = [slot for slot in (f"{name} 0", f"{name} 1") if slot in addresses]
            places[name] = Slots(tuple(addresses[slot] for slot in slots), rooms[slots[0]])
    return Chain(links, height, places, weights)


def weight_places(machine: Machine, layers: Sequence[Layer]) -> list[tuple[Weights, ...]]:
    """Ways to share the weight memory between those that stay for all bands, each in a place of its own, and the others
    in what is left: the few that load least for every band."""
    found = [weights for staying in _subsets(len(layers)) if (weights := _staying(machine, layers, staying))]
    return sorted(found, key=lambda some: again(machine, layers, some))[:WAYS]


def again(machine: Machine, layers: Sequence[Layer], weights: Sequence[Weights]) -> int:
    """Cycles that each band's weights take to come. Blocks come forwards and backwards in turn, so the last ones are
    still there if nobody else has the same slots."""
    cycles, slots = 0, [some.slots for some in weights]
    for layer, some in zip(layers, weights, strict=True):
        blocks, steps = range(some.blocks), range(layer.steps)
        size = layer.weight_bytes(blocks, steps) - layer.made_bytes(blocks, steps)
        there = len(some.slots.addresses) if slots.count(some.slots) == 1 else 0
        cycles += max(0, pieces(layer.blocks, some.blocks) - there) * machine.constants.cycles(size) if size else 0
    return cycles


def _subsets(count: int) -> Iterator[tuple[int, ...]]:
    for size in range(count, -1, -1):
        yield from combinations(range(count), size)


def _staying(machine: Machine, layers: Sequence[Layer], staying: tuple[int, ...]) -> tuple[Weights, ...] | None:
    memory, end = machine.weights, 0
    found: dict[int, Weights] = {}
    for number in staying:
        layer = layers[number]
        size = round_up(layer.weight_bytes(range(layer.blocks), range(layer.steps)), memory.alignment)
        found[number] = Weights(layer.blocks, Slots((end,), size))
        end += size
    room = (memory.bytes - end) // memory.banks // memory.alignment * memory.alignment
    slots = Slots(tuple(end + room * bank for bank in range(memory.banks)), room)
    for number, layer in enumerate(layers):
        if number not in found:
            sizes = extents(layer.blocks, sparsely=True)
            blocks = next((n for n in sizes if layer.weight_bytes(range(n), range(layer.steps)) <= room), None)
            if blocks is None:
                return None
            found[number] = Weights(blocks, slots)
    return tuple(found[number] for number in range(len(layers))) if end <= memory.bytes else None


def _most_rows(links: Links, height: int) -> dict[str, int]:
    most: dict[str, int] = {}
    for rows in links.bands(height):
        for name, some in rows.items():
            most[name] = max(len(some), most.get(name, 0))
    return most


def _fitted(memory: Memory, wanted: Sequence[Block], taken: Taken) -> Mapping[str, int] | None:
    """Large ones first, each as low as it can lie."""
    addresses: dict[str, int] = {}
    there: list[Block] = []
    for block in sorted(wanted, key=lambda block: -block.size):
        beside = [other for other in there if other.first <= block.last and block.first <= other.last]
        busy = [*taken, *((addresses[other.name], addresses[other.name] + other.size) for other in beside)]
        address = lowest_free(block.size, block.alignment, busy)
        if address + block.size > memory.bytes:
            return None
        addresses[block.name] = address
        there.append(block)
    return addresses
