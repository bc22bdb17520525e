"""Cuts a layer into parts, and chooses the tensors that stay on chip between layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate

from uaccel.accelerator.machine import Box, Tiling, span
from uaccel.accelerator.streams.machine import Command, Compute, Layer, Machine, Move, Part
from uaccel.accelerator.streams.timeline import Cost
from uaccel.memory import Block, plan
from uaccel.util.text import pieces, round_up

# The parts that a tiling cuts a layer into: their order, and what they need.


def parts(layer: Layer, tiling: Tiling) -> Iterator[Part]:
    """The parts of a layer in the order of execution; steps of one sum follow each other."""
    places = [
        (image, rows, columns)
        for image in range(layer.shape.images)
        for rows in _cut(layer.shape.rows, tiling.rows)
        for columns in _cut(layer.shape.columns, tiling.columns)
    ]
    chunks, steps = _cut(layer.blocks, tiling.blocks), _cut(layer.steps, tiling.steps)
    pairs = (
        ((p, c) for c in chunks for p in places) if tiling.weights_stay else ((p, c) for p in places for c in chunks)
    )
    for (image, rows, columns), chunk in pairs:
        for some in steps:
            yield Part(image, rows, columns, chunk, some)


def typical_part(layer: Layer, tiling: Tiling) -> Part:
    """A part in the middle of the layer, which no border makes smaller."""
    blocks, steps = range(min(tiling.blocks, layer.blocks)), range(min(tiling.steps, layer.steps))
    rows, columns = (_middle(*sizes) for sizes in _extents(layer, tiling))
    return Part(0, rows, columns, blocks, steps)


def input_bytes(layer: Layer, index: int, tiling: Tiling) -> int:
    """The most bytes that a part needs of an input. Rows, columns and channels of the needed box do not depend on each
    other, so the largest of each are multiplied."""
    part = typical_part(layer, tiling)
    rows, columns = (_cut(*sizes) for sizes in _extents(layer, tiling))
    image, blocks, steps = part.image, part.blocks, part.steps
    height = max(len(layer.needs(index, Part(image, some, part.columns, blocks, steps)).rows) for some in rows)
    width = max(len(layer.needs(index, Part(image, part.rows, some, blocks, steps)).columns) for some in columns)
    return height * width * _widest(layer, index, tiling)


def output_bytes(layer: Layer, tiling: Tiling) -> int:
    """The most bytes of the output that a part gives."""
    chunks = _cut(layer.blocks, tiling.blocks)
    return tiling.rows * tiling.columns * max(len(layer.channels(chunk)) for chunk in chunks)


def total_weights(layer: Layer, tiling: Tiling, alignment: int) -> int:
    """The bytes of all chunks of weights, one behind the other."""
    chunks, steps = _cut(layer.blocks, tiling.blocks), _cut(layer.steps, tiling.steps)
    sizes = [layer.weight_bytes(chunk, some) for chunk in chunks for some in steps]
    return sum(round_up(size, alignment) for size in sizes)


def _widest(layer: Layer, index: int, tiling: Tiling) -> int:
    part = typical_part(layer, tiling)
    chunks = _cut(layer.blocks, tiling.blocks)
    return max(len(layer.needs(index, replace(part, blocks=chunk)).channels) for chunk in chunks)


def _extents(layer: Layer, tiling: Tiling) -> tuple[tuple[int, int], tuple[int, int]]:
    return (layer.shape.rows, tiling.rows), (layer.shape.columns, tiling.columns)


def count(layer: Layer, tiling: Tiling) -> int:
    """How many parts there are."""
    chunks = pieces(layer.blocks, tiling.blocks) * pieces(layer.steps, tiling.steps)
    return tiling.pixel_pieces(layer.shape) * chunks


def _cut(whole: int, size: int) -> list[range]:
    return [range(begin, min(begin + size, whole)) for begin in range(0, whole, size)]


def _middle(whole: int, size: int) -> range:
    """The piece in the middle of a cut."""
    begin = (pieces(whole, size) - 1) // 2 * size
    return range(begin, min(begin + size, whole))


# What has been decided of a layer: how it is cut, and where its tensors lie.


@dataclass(frozen=True)
class Home:
    """Holds where a tensor lies in memory: ``offset`` bytes into a place."""

    place: int
    offset: int


@dataclass(frozen=True)
class Slots:
    """Holds memory on chip for pieces of a tensor, which take turns; each slot has room for so many bytes."""

    addresses: tuple[int, ...]
    room: int


Where = int | Slots  # The address of a tensor that is on chip as a whole, or the slots that its pieces pass through.


@dataclass(frozen=True)
class Round:
    """Holds what a part of a layer reads and gives, the bytes of weights that it needs, and how many it makes itself.

    A plan is tried in many places, and its rounds are the same in all of them. So ``moves`` keeps those of the inputs
    by number, and of the output behind them; ``computes`` keeps the commands as they were at some addresses, for their
    times. ``known`` keeps commands by what they are emitted for, and by the addresses in them.
    """

    layer: Layer
    part: Part
    needs: tuple[Box, ...]
    result: Box
    weights: int
    made: int
    moves: dict[int, Move] = field(default_factory=dict, compare=False)
    computes: list[Compute] = field(default_factory=list, compare=False)
    known: dict[tuple[object, ...], tuple[Command, ...]] = field(default_factory=dict, compare=False)

    @property
    def is_last(self) -> bool:
        """Whether it completes its sums."""
        return self.part.steps.stop == self.layer.steps

    @cached_property
    def where(self) -> str:
        """The layer's name and, for each loop that is cut, the range of the part: a label for readers."""
        layer, part = self.layer, self.part
        loops = [("image", layer.shape.images, range(part.image, part.image + 1))]
        loops += [("rows", layer.shape.rows, part.rows), ("columns", layer.shape.columns, part.columns)]
        loops += [("blocks", layer.blocks, part.blocks), ("steps", layer.steps, part.steps)]
        return layer.name + "".join(f" {name} {span(some)}" for name, whole, some in loops if len(some) < whole)


def round_of(layer: Layer, part: Part) -> Round:
    """What a part needs."""
    needs = tuple(layer.needs(index, part) for index in range(len(layer.inputs)))
    weights = layer.weight_bytes(part.blocks, part.steps)
    made = layer.made_bytes(part.blocks, part.steps) if weights else 0
    return Round(layer, part, needs, layer.result(part), weights, made)


@dataclass(frozen=True)
class LayerPlan:
    """Holds everything that has been decided of a layer: its tiling, and where each input and the output lie.

    ``weights``: the bytes of all chunks of weights; ``estimated``: what it costs by the typical part.
    """

    layer: Layer
    tiling: Tiling
    inputs: tuple[Where, ...]
    output: Where
    weights: int
    estimated: Cost

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """Its parts in the order of execution. Plans share them that differ only in the addresses of the tensors."""
        known, whole = self.layer.known, (isinstance(where, int) for where in (*self.inputs, self.output))
        key = ("rounds", replace(self.tiling, buffered=True), *whole)
        if key not in known:
            known[key] = tuple(round_of(self.layer, part) for part in parts(self.layer, self.tiling))
        found: tuple[Round, ...] = known[key]
        return found


# Which tensors stay on chip between layers, and where.

Taken = tuple[tuple[int, int], ...]  # Ranges of memory on chip that are not free, each from an address up to another.
Pieces = list[tuple[str, int]]  # The tensors of a layer, and the bytes of each one's smallest piece.


@dataclass(frozen=True)
class ResidentRange:
    """Holds the live range of a tensor inside a region: from the layer that makes it to the last that reads it."""

    name: str
    bytes: int
    first: int
    last: int


def lives(layers: Sequence[Layer]) -> list[ResidentRange]:
    """The live ranges of all tensors that one layer gives another."""
    made = {layer.output: number for number, layer in enumerate(layers)}
    last = {name: number for number, layer in enumerate(layers) for name in layer.inputs if name in made}
    sizes = {layer.output: layer.shape.bytes for layer in layers}
    return [ResidentRange(name, sizes[name], made[name], last[name]) for name in made if name in last]


def lives_beside(alive: Sequence[ResidentRange], spans: Sequence[tuple[int, int]]) -> list[ResidentRange]:
    """The live ranges if the layers of each span run side by side, as in a chain. What one of them reads or makes is
    live as long as all of them. What only they see is left out: it never reaches memory."""
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
    """Holds the addresses of the tensors that stay on chip, and their live ranges."""

    addresses: Mapping[str, int]
    lives: Mapping[str, ResidentRange]

    def taken(self, begin: int, end: int) -> Taken:
        """The memory that is not free while the layers from ``begin`` up to ``end`` run."""
        there = [life for life in self.lives.values() if life.first < end and begin <= life.last]
        return tuple((self.addresses[life.name], self.addresses[life.name] + life.bytes) for life in there)


def choose_residents(
    machine: Machine, smallest: Sequence[Pieces], alive: Sequence[ResidentRange], reserve: int
) -> Residents:
    """Chooses the tensors that stay: all if they fit, else greedily, small ones first, each that still fits.

    Each one that stays saves its store and its loads, and small ones leave most room for others. A layer with a tensor
    that does not stay keeps room for pieces: ``reserve`` bytes, or as many as its ``smallest`` pieces take if that is
    more, so that it can still be cut to fit.
    """
    size, alignment = machine.activations.bytes, machine.activations.alignment
    ordered = sorted(alive, key=lambda life: (life.bytes, life.first))

    def placed(lives: Sequence[ResidentRange]) -> Mapping[str, int] | None:
        """Addresses of these tensors; None where they do not fit beside the pieces of what does not stay. The most
        bytes that are live at once are a lower bound, which saves most calls of the planner."""
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
    """Each tensor of a layer, and the bytes of the smallest piece of it."""
    tiling = Tiling(1, 1, 1, layer.steps, False, False)
    alignment = machine.activations.alignment
    sizes = [(name, input_bytes(layer, index, tiling)) for index, name in enumerate(layer.inputs)]
    sizes.append((layer.output, output_bytes(layer, tiling)))
    return [(name, round_up(size, alignment)) for name, size in sizes]


def _peak(blocks: Sequence[Block], steps: int) -> int:
    """The most bytes that are live at one step: a running sum of what begins and ends there."""
    changes = [0] * (steps + 1)
    for block in blocks:
        changes[block.first] += block.size
        changes[block.last + 1] -= block.size
    return max(accumulate(changes))
