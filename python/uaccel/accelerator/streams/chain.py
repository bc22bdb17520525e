"""Layers that pass rows on through the memories of the chip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations, islice, pairwise
from typing import Final

from uaccel.accelerator.machine import Box, Memory, Shape, extents, promising
from uaccel.accelerator.streams.emitter import Constants, Emitter
from uaccel.accelerator.streams.machine import Layer, Machine, Part, Placed, Places, inside
from uaccel.accelerator.streams.tiling import Home, LayerPlan, Residents, Slots, Taken, Where
from uaccel.accelerator.streams.timeline import Cost, Key
from uaccel.errors import InternalError
from uaccel.memory import Block, lowest_free
from uaccel.util.text import pieces, round_up

# Successive layers that pass some rows at a time through the chip: what lies between them never leaves it.
#
# A chain computes a band of its last output's rows after the other. For each of them every layer computes the rows that
# the layers behind it read. What two neighbouring bands both read is computed for each of them.

Rows = dict[str, range]  # Of tensors: what a band computes or reads.


@dataclass(frozen=True)
class Links:
    """The layers of a chain. Only the last one's output is read by others."""

    layers: tuple[Layer, ...]

    @property
    def output(self) -> Layer:
        """Whose rows are cut into bands."""
        return self.layers[-1]

    @cached_property
    def inner(self) -> frozenset[str]:
        """What never leaves the chip."""
        return frozenset(layer.output for layer in self.layers[:-1])

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """Of inputs, as their first readers see them, and of what is made."""
        seen: dict[str, Shape] = {}
        for layer in self.layers:
            for name, shape in zip(layer.inputs, layer.shapes, strict=True):
                seen.setdefault(name, shape)
            seen[layer.output] = layer.shape
        return seen

    @cached_property
    def spans(self) -> dict[str, tuple[int, int]]:
        """From which layer to which one a band has rows of a tensor on chip."""
        spans: dict[str, tuple[int, int]] = {}
        for number, layer in enumerate(self.layers):
            for name in (*layer.inputs, layer.output):
                spans[name] = (spans.get(name, (number, number))[0], number)
        return spans

    def rows(self, band: range) -> Rows:
        """What a band of the last output needs of every tensor."""
        needed = {self.output.output: band}
        for layer in reversed(self.layers):
            part = whole_width(layer, needed[layer.output])
            for index, name in enumerate(layer.inputs):
                rows, before = layer.needs(index, part).rows, needed.get(name)
                needed[name] = rows if before is None else _hull(rows, before)
        return needed

    def bands(self, height: int) -> Iterator[Rows]:
        """One after the other."""
        whole = self.output.shape.rows
        for begin in range(0, whole, height):
            yield self.rows(range(begin, min(begin + height, whole)))


def whole_width(layer: Layer, rows: range, blocks: range | None = None) -> Part:
    """All columns of these rows."""
    return Part(0, rows, range(layer.shape.columns), blocks or range(layer.blocks), range(layer.steps))


def linked(layers: Sequence[Layer], others: Iterable[Layer]) -> bool:
    """Whether ``layers`` can pass rows to each other: all see rows of a tensor alike, and they alone read what lies
    between them."""
    inner = {layer.output for layer in layers[:-1]}
    if any(inner.intersection(layer.inputs) for layer in others):
        return False
    read = {name for layer in layers for name in layer.inputs}
    rows: dict[str, tuple[int, int]] = {}
    for layer in layers:
        for name, shape in zip((*layer.inputs, layer.output), (*layer.shapes, layer.shape), strict=True):
            if shape.images > 1 or rows.setdefault(name, (shape.rows, shape.row_pitch)) != (
                shape.rows,
                shape.row_pitch,
            ):
                return False
    return inner <= read


def _hull(one: range, other: range) -> range:
    return range(min(one.start, other.start), max(one.stop, other.stop))


@dataclass(frozen=True)
class Weights:
    """Of a layer of a chain: so many blocks at a time, in these slots. What is still there is not loaded again."""

    blocks: int
    slots: Slots


@dataclass(frozen=True)
class Chain:
    """With everything that has been decided of it: rows of a band, and where tensors and each layer's weights lie."""

    links: Links
    height: int
    places: Mapping[str, Where]
    weights: tuple[Weights, ...]


# The commands of a chain: band after band, in each of them layer after layer.


def emit_chain(emitter: Emitter, chain: Chain) -> None:
    run = _Run(emitter, chain)
    emitter.weights.forget()
    for number, rows in enumerate(chain.links.bands(chain.height)):
        origins = {name: where for name, where in chain.places.items() if isinstance(where, int)}
        for layer, weights in zip(chain.links.layers, chain.weights, strict=True):
            run.layer(layer, weights, rows, origins, backwards=number % 2 == 1)


class _Run:
    """``loaded``: which blocks of which layer lie at an address of the weight memory."""

    def __init__(self, emitter: Emitter, chain: Chain) -> None:
        self.emitter = emitter
        self.chain = chain
        self.loaded: dict[int, tuple[str, range]] = {}
        self.loads = 0

    def layer(self, layer: Layer, weights: Weights, rows: Rows, origins: dict[str, int], backwards: bool) -> None:
        """``origins``: where row 0 of a tensor would lie, if all of its rows were there. ``backwards``: begin with the
        blocks that the band before ended with."""
        emitter, whole = self.emitter, whole_width(layer, rows[layer.output])
        for name, shape in zip(layer.inputs, layer.shapes, strict=True):
            if name not in origins:
                origins[name] = self._origin(name, shape, rows[name])
                emitter.transfer("load", layer, whole, name, shape, _rows(origins[name], shape, rows[name]))
        if layer.output not in origins:
            origins[layer.output] = self._origin(layer.output, layer.shape, whole.rows)
        for part in _parts(layer, whole, weights.blocks, backwards):
            inputs = tuple(
                inside(origins[name], shape, layer.needs(index, part))
                for index, (name, shape) in enumerate(zip(layer.inputs, layer.shapes, strict=True))
            )
            output = inside(origins[layer.output], layer.shape, layer.result(part))
            places = Places(inputs, output, self._weights(layer, part, weights), 0)
            for compute in layer.commands(part, places):
                emitter.compute(layer, part, compute, places)
        if layer is self.chain.links.output and layer.output in emitter.homes:
            stored = _rows(origins[layer.output], layer.shape, whole.rows)
            emitter.transfer("store", layer, whole, layer.output, layer.shape, stored)

    def _origin(self, name: str, shape: Shape, rows: range) -> int:
        slots = self.chain.places[name]
        if isinstance(slots, int) or len(rows) * shape.row_pitch > slots.room:
            raise InternalError(f"rows {rows.start}:{rows.stop} of {name} have no room in {slots}")
        return self.emitter.turn(slots) - rows.start * shape.row_pitch

    def _weights(self, layer: Layer, part: Part, weights: Weights) -> int:
        if layer.weight_bytes(part.blocks, part.steps) == 0:
            return 0
        key = (layer.name, part.blocks)
        for address in weights.slots.addresses:
            if self.loaded.get(address) == key:
                return address
        address = weights.slots.addresses[self.loads % len(weights.slots.addresses)]
        self.loads += 1
        self.loaded[address] = key
        self.emitter.load_weights(layer, part, address)
        return address


def _parts(layer: Layer, whole: Part, blocks: int, backwards: bool) -> Iterator[Part]:
    begins = range(0, layer.blocks, blocks)
    for begin in reversed(begins) if backwards else begins:
        yield whole_width(layer, whole.rows, range(begin, min(begin + blocks, layer.blocks)))


def _rows(origin: int, shape: Shape, rows: range) -> Placed:
    return inside(origin, shape, Box(0, rows, range(shape.columns), range(shape.channels)))


# Where the tensors and the weights of a chain lie on chip while its bands pass.

WAYS: Final = 3  # To share the weight memory that are compared.


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


# Which successive layers pay as chains, and how high their bands are.

MOST: Final = 6  # Layers of a chain.
TRIED: Final = 4  # Chains of the same layers that are played through.
SLACK: Final = 1.1  # By how much estimates may be wrong.
LONGEST: Final = 400  # Bands times layers of a chain that is still tried.

Step = LayerPlan | Chain  # Of a region, in order: a layer on its own, or some of them that pass rows to each other.


@dataclass(frozen=True)
class StreamRegion:
    """``inside``: tensors that only layers of the region see, and that have to go to memory and come back."""

    machine: Machine
    layers: tuple[Layer, ...]
    inside: frozenset[str]
    residents: Residents
    homes: Mapping[str, Home]
    objective: str


def emitted(
    machine: Machine, steps: Sequence[Step], homes: Mapping[str, Home], constants: Constants | None = None
) -> Emitter:
    emitter = Emitter(machine, homes, constants)
    for step in steps:
        if isinstance(step, Chain):
            emit_chain(emitter, step)
        else:
            emitter.layer(step)
    return emitter


def spans(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """Of the layers of each chain, from and to."""
    counts = [len(step.links.layers) if isinstance(step, Chain) else 1 for step in steps]
    ends = list(accumulate(counts))
    return [(end - count, end) for end, count in zip(ends, counts, strict=True) if count > 1]


def with_chains(region: StreamRegion, decided: Sequence[LayerPlan]) -> list[Step]:
    """The layers with chains where those cost less: the least sum of what all steps cost on their own, if it holds for
    all of them together."""
    if not region.inside:
        return list(decided)
    steps = _least(region, decided)
    return steps if _cost(region, steps) < _cost(region, decided) else list(decided)


def _least(region: StreamRegion, decided: Sequence[LayerPlan]) -> list[Step]:
    alone = [_cost(region, [one]) for one in decided]
    best: list[tuple[Key, list[Step]]] = [((0, 0), [])]
    found = _chains(region, decided)
    for end in range(1, len(decided) + 1):
        options = [(_sum(best[end - 1][0], alone[end - 1]), [*best[end - 1][1], decided[end - 1]])]
        for begin in range(end):
            if (begin, end) in found:
                key, chain = found[begin, end]
                options.append((_sum(best[begin][0], key), [*best[begin][1], chain]))
        best.append(min(options, key=lambda option: option[0]))
    return best[-1][1]


def _chains(region: StreamRegion, decided: Sequence[LayerPlan]) -> dict[tuple[int, int], tuple[Key, Chain]]:
    """The best one of each stretch of layers, where it costs less than they do one by one."""
    found = {}
    for begin, end in stretches(region):
        one_by_one = _cost(region, decided[begin:end])
        tried = [
            (_cost(region, [chain]), chain)
            for estimated, chain in islice(chains_of(region, begin, end), TRIED)
            if estimated[0] <= SLACK * one_by_one[0]
        ]
        cost, chain = min(tried, key=lambda pair: pair[0], default=(one_by_one, None))
        if chain is not None and cost < one_by_one:
            found[begin, end] = (cost, chain)
    return found


def stretches(region: StreamRegion) -> Iterator[tuple[int, int]]:
    layers = region.layers
    for begin in range(len(layers)):
        for end in range(begin + 2, min(begin + MOST, len(layers)) + 1):
            if layers[end - 2].output not in region.inside:
                break
            if linked(layers[begin:end], (*layers[:begin], *layers[end:])):
                yield begin, end


def chains_of(region: StreamRegion, begin: int, end: int) -> Iterator[tuple[Key, Chain]]:
    """Those of a stretch that fit on chip, with estimates of what they cost; the best ones first."""
    machine, links = region.machine, Links(region.layers[begin:end])
    taken = region.residents.taken(begin, end)
    if any(one[1] > other[0] for one, other in pairwise(sorted(taken))):
        return  # bands read the first ones as long as they write the last ones
    ways = [(weights, again(machine, links.layers, weights)) for weights in weight_places(machine, links.layers)]
    options = [
        (height, buffered, *way)
        for height in extents(links.output.shape.rows, sparsely=True)
        for buffered in ((True, False) if machine.activations.banks > 1 else (False,))
        for way in ways
        if pieces(links.output.shape.rows, height) * len(links.layers) <= LONGEST
    ]
    yield from promising(
        options,
        lambda option: _estimate(region, links, option[0], option[1], option[3]).key(region.objective),
        lambda option: placed(machine, links, *option[:3], region.residents.addresses, taken),
    )


def _estimate(region: StreamRegion, links: Links, height: int, buffered: bool, weights: int) -> Cost:
    """As if all bands were alike; ``weights``: cycles that those of each band take to come."""
    machine, whole = region.machine, links.output.shape.rows
    count = pieces(whole, height)
    begin = (count - 1) // 2 * height
    rows = links.rows(range(begin, min(begin + height, whole)))
    made = {layer.output for layer in links.layers}
    sizes = {name: len(some) * links.shapes[name].row_pitch for name, some in rows.items()}
    loads = [sizes[name] for name in rows if name not in made and name not in region.residents.addresses]
    stores = [sizes[links.output.output]] if links.output.output in region.homes else []
    load = weights + sum(machine.load.cycles(size) for size in loads)
    store = sum(machine.store.cycles(size) for size in stores)
    compute = sum(layer.cycles(whole_width(layer, rows[layer.output])) for layer in links.layers)
    moved = count * (machine.brought(weights) + sum(loads) + sum(stores))
    each = max(load, store, compute) if buffered and count > 1 else load + compute + store
    return Cost(count * each, moved)


def _cost(region: StreamRegion, steps: Sequence[Step]) -> Key:
    return emitted(region.machine, steps, region.homes).cost().key(region.objective)


def _sum(one: Key, other: Key) -> Key:
    return one[0] + other[0], one[1] + other[1]
