"""Plans chains: successive layers that pass rows to each other on chip, so that tensors between them stay there.

The module describes a chain, emits its commands, places its tensors and weights on chip, and searches which layers
cost less as chains (:func:`with_chains`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate, combinations, islice, pairwise
from typing import Final, NamedTuple

from uaccel.accelerator.machine import Box, Memory, Shape, extents, promising
from uaccel.accelerator.streams.constants import StreamConstants
from uaccel.accelerator.streams.emitter import CommandEmitter
from uaccel.accelerator.streams.machine import Layer, Machine, Part, Placed, Places, inside
from uaccel.accelerator.streams.tiling import Home, LayerPlan, Residents, Round, Slots, Taken, Where, round_of
from uaccel.accelerator.streams.timeline import Cost, Key
from uaccel.errors import InternalError
from uaccel.memory import Block, lowest_free
from uaccel.util.text import pieces, round_up

# What a chain is.
#
# A chain computes its last output in bands of rows, one after the other. For each band every layer computes the rows
# that the layers behind it read. Nothing between the layers lasts from one band to the next, so rows that two
# neighbouring bands read are computed for each of them.

Rows = dict[str, range]  # The rows of each tensor that a band computes or reads.


@dataclass(frozen=True)
class Links:
    """Holds the layers of a chain. Only the last one's output is read by others."""

    layers: tuple[Layer, ...]

    @property
    def output(self) -> Layer:
        """The layer whose rows are cut into bands."""
        return self.layers[-1]

    @cached_property
    def inner(self) -> frozenset[str]:
        """The tensors that never leave the chip."""
        return frozenset(layer.output for layer in self.layers[:-1])

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The shapes of the inputs, as their first readers see them, and of all outputs."""
        seen: dict[str, Shape] = {}
        for layer in self.layers:
            for name, shape in zip(layer.inputs, layer.shapes, strict=True):
                seen.setdefault(name, shape)
            seen[layer.output] = layer.shape
        return seen

    @cached_property
    def spans(self) -> dict[str, tuple[int, int]]:
        """The first and the last layer that uses each tensor: a band's rows of it are on chip between them."""
        spans: dict[str, tuple[int, int]] = {}
        for number, layer in enumerate(self.layers):
            for name in (*layer.inputs, layer.output):
                spans[name] = (spans.get(name, (number, number))[0], number)
        return spans

    @cached_property
    def known(self) -> dict[int, tuple[Rows, ...]]:
        """The bands of each height that was asked for."""
        return {}

    def rows(self, band: range) -> Rows:
        """The rows of every tensor that a band of the last output needs, found from the last layer to the first."""
        needed = {self.output.output: band}
        for layer in reversed(self.layers):
            part = whole_width(layer, needed[layer.output])
            for index, name in enumerate(layer.inputs):
                rows, before = layer.needs(index, part).rows, needed.get(name)
                needed[name] = rows if before is None else _hull(rows, before)
        return needed

    def bands(self, height: int) -> tuple[Rows, ...]:
        """The rows of each band, one band after the other."""
        if height not in self.known:
            whole = self.output.shape.rows
            bands = (range(begin, min(begin + height, whole)) for begin in range(0, whole, height))
            self.known[height] = tuple(map(self.rows, bands))
        return self.known[height]


def whole_width(layer: Layer, rows: range, blocks: range | None = None) -> Part:
    """The part that has all columns and steps of these rows."""
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
    """States how a layer of a chain has its weights on chip: so many blocks at a time, in these slots.

    Blocks that are still in their slot are not loaded again.
    """

    blocks: int
    slots: Slots


@dataclass(frozen=True)
class Chain:
    """Holds everything that has been decided of a chain.

    ``height``: the rows of a band of the last output; ``places`` and ``weights``: where tensors and each layer's
    weights lie.
    """

    links: Links
    height: int
    places: Mapping[str, Where]
    weights: tuple[Weights, ...]


# The commands of a chain: band after band, in each of them layer after layer.


def emit_chain(emitter: CommandEmitter, chain: Chain) -> None:
    """Emits all bands of a chain. It allocates the weight memory itself, so what the emitter had there is gone."""
    run = _Run(emitter, chain)
    emitter.weights.forget()
    for number, rows in enumerate(chain.links.bands(chain.height)):
        origins = {name: where for name, where in chain.places.items() if isinstance(where, int)}
        for layer, weights in zip(chain.links.layers, chain.weights, strict=True):
            run.layer(layer, weights, rows, origins, backwards=number % 2 == 1)


class _Run:
    """Emits bands. ``loaded``: the layer and blocks whose weights lie at an address of the weight memory."""

    def __init__(self, emitter: CommandEmitter, chain: Chain) -> None:
        self.emitter = emitter
        self.chain = chain
        self.loaded: dict[int, tuple[str, range]] = {}
        self.loads = 0

    def layer(self, layer: Layer, weights: Weights, rows: Rows, origins: dict[str, int], backwards: bool) -> None:
        """Emits one layer of a band. ``origins``: the address that row 0 of a tensor would have if all of its rows were
        there; so parts address their rows as in a whole tensor. It may be negative. ``backwards``: begin with the
        blocks that the band before ended with, since their weights are still there."""
        emitter, whole = self.emitter, round_of(layer, whole_width(layer, rows[layer.output]))
        for index, (name, shape) in enumerate(zip(layer.inputs, layer.shapes, strict=True)):
            if name not in origins:
                origins[name] = self._origin(name, shape, rows[name])
                emitter.transfer(whole, index, _rows(origins[name], shape, rows[name]))
        if layer.output not in origins:
            origins[layer.output] = self._origin(layer.output, layer.shape, whole.part.rows)
        for part in _parts(layer, whole.part, weights.blocks, backwards):
            one = round_of(layer, part)
            inputs = tuple(
                inside(origins[name], shape, box)
                for name, shape, box in zip(layer.inputs, layer.shapes, one.needs, strict=True)
            )
            output = inside(origins[layer.output], layer.shape, one.result)
            emitter.compute(one, Places(inputs, output, self._weights(one, weights), 0))
        if layer is self.chain.links.output and layer.output in emitter.homes:
            stored = _rows(origins[layer.output], layer.shape, whole.part.rows)
            emitter.transfer(whole, len(layer.inputs), stored)

    def _origin(self, name: str, shape: Shape, rows: range) -> int:
        slots = self.chain.places[name]
        if isinstance(slots, int) or len(rows) * shape.row_pitch > slots.room:
            raise InternalError(f"rows {rows.start}:{rows.stop} of {name} have no room in {slots}")
        return self.emitter.turn(slots) - rows.start * shape.row_pitch

    def _weights(self, one: Round, weights: Weights) -> int:
        if one.weights == 0:
            return 0
        key = (one.layer.name, one.part.blocks)
        for address in weights.slots.addresses:
            if self.loaded.get(address) == key:
                return address
        address = weights.slots.addresses[self.loads % len(weights.slots.addresses)]
        self.loads += 1
        self.loaded[address] = key
        self.emitter.load_weights(one, address)
        return address


def _parts(layer: Layer, whole: Part, blocks: int, backwards: bool) -> Iterator[Part]:
    begins = range(0, layer.blocks, blocks)
    for begin in reversed(begins) if backwards else begins:
        yield whole_width(layer, whole.rows, range(begin, min(begin + blocks, layer.blocks)))


def _rows(origin: int, shape: Shape, rows: range) -> Placed:
    return inside(origin, shape, Box(0, rows, range(shape.columns), range(shape.channels)))


# Where the tensors and the weights of a chain lie on chip while its bands pass.

WAYS: Final = 3  # Ways to share the weight memory that are tried with each height of a band.


def placed(
    machine: Machine,
    links: Links,
    height: int,
    buffered: bool,
    weights: tuple[Weights, ...],
    residents: Mapping[str, int],
    taken: Taken,
) -> Chain | None:
    """Places bands of this height; None where they do not fit beside what stays.

    A tensor inside the chain is live only from the layer that makes it to its last reader, and others may use its
    bytes in the same band. With ``buffered``, what comes and goes has two slots for the whole chain: the next band's
    rows are loaded, and the last band's are stored, while this band is computed.
    """
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
    """The ways to share the weight memory that load least for every band. Each way chooses the layers whose weights
    stay for all bands, in places of their own; the others share the rest. All subsets of the layers are compared,
    2**MOST (64) at most."""
    found = [weights for staying in _subsets(len(layers)) if (weights := _staying(machine, layers, staying))]
    return sorted(found, key=lambda some: again(machine, layers, some))[:WAYS]


def again(machine: Machine, layers: Sequence[Layer], weights: Sequence[Weights]) -> int:
    """The cycles that the weights of each band take to come. Bands go through the blocks forwards and backwards in
    turn. So the blocks with which a band ended, one a slot, are still there for the next band, if no other layer uses
    the same slots."""
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
    """Places the weights of the staying layers one behind the other, and splits the rest into a slot for each bank. The
    other layers have the most blocks at a time that fit a slot; None where not even one fits."""
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
    """Places blocks, the largest first, each at the lowest address that is free while it is live; None if one fails."""
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


# Which successive layers cost less as chains, and how high their bands are.
#
# For each stretch of layers that can be a chain, the best-looking bands are simulated and compared with the layers one
# by one. Dynamic programming then picks the stretches, and the whole result must beat the layers without chains.

MOST: Final = 6  # Layers of a chain; it bounds the stretches, and the subsets in weight_places.
TRIED: Final = 4  # Chains of the same layers that are simulated.
SLACK: Final = 1.1  # A chain whose estimate exceeds the layers one by one by more than this factor is not simulated.
LONGEST: Final = 400  # Bands times layers of a chain that is still simulated, to bound the time.

Step = LayerPlan | Chain  # A step of a region: a layer on its own, or layers that pass rows to each other.


@dataclass(frozen=True)
class StreamRegion:
    """Holds a region of layers that is planned for chains.

    ``inside``: tensors that only layers of the region see, and that go to memory and come back without chains.
    """

    machine: Machine
    layers: tuple[Layer, ...]
    inside: frozenset[str]
    residents: Residents
    homes: Mapping[str, Home]
    objective: str


def emit(emitter: CommandEmitter, step: Step) -> CommandEmitter:
    """Emits the commands of a step; the result is the emitter."""
    if isinstance(step, Chain):
        emit_chain(emitter, step)
    else:
        emitter.layer(step)
    return emitter


def emitted(
    machine: Machine, steps: Sequence[Step], homes: Mapping[str, Home], constants: StreamConstants | None = None
) -> CommandEmitter:
    """Emits the commands of steps, one after the other."""
    return reduce(emit, steps, CommandEmitter(machine, homes, constants))


def spans(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """The numbers of the layers of each chain, from the first up to the one behind the last."""
    counts = [len(step.links.layers) if isinstance(step, Chain) else 1 for step in steps]
    ends = list(accumulate(counts))
    return [(end - count, end) for end, count in zip(ends, counts, strict=True) if count > 1]


def with_chains(region: StreamRegion, decided: Sequence[LayerPlan]) -> list[Step]:
    """The layers with chains where those cost less. The steps are those with the least sum of costs. A chain's cost is
    what it adds behind the layers before it as they were. What is behind it may gain or lose by it, so the layers as
    they were stay if all steps together are not better."""
    if not region.inside:
        return list(decided)
    before = [CommandEmitter(region.machine, region.homes)]
    for one in decided:
        before.append(emit(before[-1].copy(), one))
    keys = [emitter.cost().key(region.objective) for emitter in before]
    steps = _least(decided, keys, _chains(region, before, keys))
    cost = emitted(region.machine, steps, region.homes).cost()
    return steps if cost.key(region.objective) < keys[-1] else list(decided)


Found = dict[tuple[int, int], tuple[Key, Chain]]


def _least(decided: Sequence[LayerPlan], keys: Sequence[Key], found: Found) -> list[Step]:
    """The steps with the least sum of costs, by dynamic programming. ``best[end]`` has the best steps for the layers
    before ``end``: their last step is a single layer or a chain that ends there, and what comes before that is itself
    best. ``keys``: what all layers up to each cost one by one."""
    best: list[tuple[Key, list[Step]]] = [((0, 0), [])]
    for end in range(1, len(decided) + 1):
        alone = _difference(keys[end], keys[end - 1])
        options = [(_sum(best[end - 1][0], alone), [*best[end - 1][1], decided[end - 1]])]
        for begin in range(max(0, end - MOST), end):
            if (begin, end) in found:
                key, chain = found[begin, end]
                options.append((_sum(best[begin][0], key), [*best[begin][1], chain]))
        best.append(min(options, key=lambda option: option[0]))
    return best[-1][1]


def _chains(region: StreamRegion, before: Sequence[CommandEmitter], keys: Sequence[Key]) -> Found:
    """The best chain of each stretch of layers, where it costs less than they do one by one."""
    found: Found = {}
    for begin, end in stretches(region):
        one_by_one = _difference(keys[end], keys[begin])
        tried = [
            (_difference(emit(before[begin].copy(), chain).cost().key(region.objective), keys[begin]), chain)
            for estimated, chain in islice(chains_of(region, begin, end), TRIED)
            if estimated[0] <= SLACK * one_by_one[0]
        ]
        cost, chain = min(tried, key=lambda pair: pair[0], default=(one_by_one, None))
        if chain is not None and cost < one_by_one:
            found[begin, end] = (cost, chain)
    return found


def stretches(region: StreamRegion) -> Iterator[tuple[int, int]]:
    """The stretches of layers, from and up to, that can be chains and save a tensor the way through memory."""
    layers = region.layers
    for begin in range(len(layers)):
        for end in range(begin + 2, min(begin + MOST, len(layers)) + 1):
            if layers[end - 2].output not in region.inside:
                break
            if linked(layers[begin:end], (*layers[:begin], *layers[end:])):
                yield begin, end


def chains_of(region: StreamRegion, begin: int, end: int) -> Iterator[tuple[Key, Chain]]:
    """The chains of a stretch that fit on chip, with estimates of their costs, the best ones first. There are none if
    two tensors that stay share bytes because different layers use them: a chain runs its layers side by side, so that
    both would be live at once."""
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
    works = {height: _work(region, links, height) for height, *_ in options}
    yield from promising(
        options,
        lambda option: _estimate(machine, works[option[0]], option[1], option[3]).key(region.objective),
        lambda option: placed(machine, links, *option[:3], region.residents.addresses, taken),
    )


class _Work(NamedTuple):
    """Holds how many bands there are, and what the one in the middle takes: bytes of its loads and stores, and cycles
    to load, to store and to compute."""

    bands: int
    moved: int
    load: int
    store: int
    compute: int


def _work(region: StreamRegion, links: Links, height: int) -> _Work:
    machine, whole = region.machine, links.output.shape.rows
    count = pieces(whole, height)
    begin = (count - 1) // 2 * height
    rows = links.rows(range(begin, min(begin + height, whole)))
    made = {layer.output for layer in links.layers}
    sizes = {name: len(some) * links.shapes[name].row_pitch for name, some in rows.items()}
    loads = [sizes[name] for name in rows if name not in made and name not in region.residents.addresses]
    stores = [sizes[links.output.output]] if links.output.output in region.homes else []
    load, store = sum(map(machine.load.cycles, loads)), sum(map(machine.store.cycles, stores))
    compute = sum(layer.cycles(whole_width(layer, rows[layer.output])) for layer in links.layers)
    return _Work(count, sum(loads) + sum(stores), load, store, compute)


def _estimate(machine: Machine, work: _Work, buffered: bool, weights: int) -> Cost:
    """Estimates a chain as if all bands were like the one in the middle. ``weights``: the cycles that each band's
    weights take to come. Without a second slot engines do not overlap."""
    load = weights + work.load
    moved = work.bands * (machine.brought(weights) + work.moved)
    overlap = buffered and work.bands > 1
    each = max(load, work.store, work.compute) if overlap else load + work.compute + work.store
    return Cost(work.bands * each, moved)


def _sum(one: Key, other: Key) -> Key:
    return one[0] + other[0], one[1] + other[1]


def _difference(one: Key, other: Key) -> Key:
    return one[0] - other[0], one[1] - other[1]
