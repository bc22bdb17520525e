"""The best tiling of a layer: all sensible ones estimated, the most promising ones played through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from uaccel.basics.numbers import pieces
from uaccel.machines.machine import Dma
from uaccel.machines.search import promising
from uaccel.machines.tiling import Tiling, extents
from uaccel.memory import lowest_free
from uaccel.streams.cost import Cost, Key
from uaccel.streams.decided import Decided, Home, Slots, Where
from uaccel.streams.emitter import Emitter
from uaccel.streams.layer import Layer
from uaccel.streams.machine import Machine
from uaccel.streams.residency import Taken
from uaccel.streams.tiling import count, input_bytes, output_bytes, total_weights, typical_part

LONGEST: Final = 400
"""Parts of a layer that is still played through; beyond, the estimate decides."""


@dataclass(frozen=True)
class Effort:
    """How hard to look: so many tilings of a layer are ``played`` through, of ``every`` size or of some."""

    played: int = 5
    every: bool = False


USUAL: Final = Effort()


@dataclass(frozen=True)
class Question:
    """A layer with what is decided of its tensors: their address where they stay on chip, None where they stream.

    ``homes`` of those that stream, and of an output that has to reach memory as well."""

    layer: Layer
    inputs: tuple[int | None, ...]
    output: int | None
    taken: Taken
    homes: Mapping[str, Home]
    effort: Effort = USUAL


def best(machine: Machine, question: Question, objective: str) -> list[Decided]:
    """The most promising ones, best first; none where not even the smallest part fits."""
    played = [
        (_played(machine, question, decided, objective) or estimated, decided)
        for estimated, decided in islice(feasible(machine, question, objective), question.effort.played)
    ]
    return [decided for _, decided in sorted(played, key=lambda pair: pair[0])]


def feasible(machine: Machine, question: Question, objective: str) -> Iterator[tuple[Key, Decided]]:
    """The tilings to try, with places for their pieces: the best estimates first."""
    stays = None not in (*question.inputs, question.output) and question.layer.output not in question.homes
    tilings = candidates(machine, question.layer, whole=stays, sparsely=not question.effort.every)
    return promising(
        tilings,
        lambda tiling: estimate(machine, question, tiling).key(objective),
        lambda tiling: decide(machine, question, tiling),
    )


def candidates(machine: Machine, layer: Layer, *, whole: bool, sparsely: bool) -> Iterator[Tiling]:
    """Those whose weights and sums fit. ``whole``: there is nothing to gain from cutting the image."""
    buffering = (True, False) if machine.activations.banks > 1 else (False,)
    extent = (layer.shape.rows, layer.shape.columns)
    for blocks, steps in _chunks(machine, layer, sparsely):
        for rows, columns in [extent] if whole and steps == layer.steps else _pieces(*extent, sparsely):
            orders = (
                (False, True)
                if steps == layer.steps and blocks < layer.blocks and (rows, columns) != extent
                else (False,)
            )
            tilings = [Tiling(rows, columns, blocks, steps, stay, two) for stay in orders for two in buffering]
            if steps == layer.steps or _sums_fit(machine, layer, tilings[0]):
                yield from tilings


def _pieces(rows: int, columns: int, sparsely: bool) -> Iterator[tuple[int, int]]:
    """Whole rows as long as one fits."""
    yield from ((some, columns) for some in extents(rows, sparsely=sparsely))
    yield from ((1, some) for some in extents(columns, sparsely=sparsely) if some < columns)


def _chunks(machine: Machine, layer: Layer, sparsely: bool) -> Iterator[tuple[int, int]]:
    """Blocks and steps of one chunk of weights: fewer steps only where one block is too much."""
    memory = machine.weights
    for blocks in extents(layer.blocks, sparsely=sparsely):
        most = memory.bytes if blocks == layer.blocks else memory.bank_bytes
        if layer.weight_bytes(range(blocks), range(layer.steps)) <= most:
            yield blocks, layer.steps
    if layer.weight_bytes(range(1), range(layer.steps)) > memory.bank_bytes:
        steps = [s for s in extents(layer.steps, sparsely=sparsely) if _last_fits(layer, s, memory.bank_bytes)]
        yield from ((1, some) for some in steps[:2])


def _last_fits(layer: Layer, steps: int, most: int) -> bool:
    """A sum's last steps bring the output's parameters as well."""
    first = (layer.steps - 1) // steps * steps
    usual, last = range(steps), range(first, layer.steps)
    return max(layer.weight_bytes(range(1), usual), layer.weight_bytes(range(1), last)) <= most


def _sums_fit(machine: Machine, layer: Layer, tiling: Tiling) -> bool:
    return layer.sum_bytes(typical_part(layer, tiling)) <= machine.sums.bytes


def decide(machine: Machine, question: Question, tiling: Tiling) -> Decided | None:
    """Places for whatever streams beside what is there; largest first."""
    layer = question.layer
    wanted: list[tuple[int, int]] = []
    for index, address in enumerate(question.inputs):
        if address is None:
            wanted.append((input_bytes(layer, index, tiling), index))
    if question.output is None:
        wanted.append((output_bytes(layer, tiling), len(question.inputs)))
    banks = 2 if tiling.buffered and count(layer, tiling) > 1 else 1
    memory, taken, slots = machine.activations, list(question.taken), {}
    for size, index in sorted(wanted, reverse=True):
        addresses: list[int] = []
        for _ in range(banks):
            address = lowest_free(size, memory.alignment, taken)
            if address + size > memory.bytes:
                return None
            taken.append((address, address + size))
            addresses.append(address)
        slots[index] = Slots(tuple(addresses), size)
    places: list[Where] = []
    for index, resident in enumerate((*question.inputs, question.output)):
        places.append(slots[index] if resident is None else resident)
    return Decided(layer, tiling, tuple(places[:-1]), places[-1])


def estimate(machine: Machine, question: Question, tiling: Tiling) -> Cost:
    """As if all parts were alike; the engines side by side but for the first part's load and the last one's store."""
    rounds = count(question.layer, tiling)
    loads, stores = _loads(machine, question, tiling), _stores(question, tiling)
    load = sum(times * dma.cycles(size) for dma, size, times in loads)
    store = sum(times * machine.store.cycles(size) for size, times in stores)
    compute = rounds * question.layer.cycles(typical_part(question.layer, tiling))
    moved = sum(times * size for _, size, times in loads) + sum(times * size for size, times in stores)
    if not tiling.buffered and rounds > 1:
        return Cost(load + compute + store, moved)
    first = sum(dma.cycles(size) for dma, size, _ in loads)
    last = sum(machine.store.cycles(size) for size, _ in stores)
    return Cost(max(load, store, compute) + first + last, moved)


def _loads(machine: Machine, question: Question, tiling: Tiling) -> list[tuple[Dma, int, int]]:
    """What brings it, bytes of a load, and how often there is one like it."""
    layer, part = question.layer, typical_part(question.layer, tiling)
    rounds = count(layer, tiling)
    chunks, steps = pieces(layer.blocks, tiling.blocks), pieces(layer.steps, tiling.steps)
    images = tiling.pixel_pieces(layer.shape)
    size = layer.weight_bytes(part.blocks, part.steps) - layer.made_bytes(part.blocks, part.steps)
    stay = tiling.weights_stay or total_weights(layer, tiling, machine.weights.alignment) <= machine.weights.bytes
    loads = [(machine.constants, size, chunks * steps if stay else rounds)] if size else []
    for index, address in enumerate(question.inputs):
        box = layer.needs(index, part)
        again = len(box.channels) < layer.shapes[index].channels or (tiling.weights_stay and images > 1)
        if address is None:
            loads.append((machine.load, box.bytes, images * chunks if again else images))
    return loads


def _stores(question: Question, tiling: Tiling) -> list[tuple[int, int]]:
    layer, part = question.layer, typical_part(question.layer, tiling)
    if layer.output not in question.homes:
        return []
    return [(layer.result(part).bytes, count(layer, tiling) // pieces(layer.steps, tiling.steps))]


def _played(machine: Machine, question: Question, decided: Decided, objective: str) -> Key | None:
    """What the layer takes on its own; None where it is too long."""
    if count(question.layer, decided.tiling) > LONGEST:
        return None
    emitter = Emitter(machine, question.homes)
    emitter.layer(decided)
    return emitter.cost().key(objective)
