"""Emits the commands of a layer, and searches its best tiling.

The search estimates every sensible tiling, and simulates the few that look best (:func:`best`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final

from uaccel.accelerator.machine import Box, Dma, Tiling, extents, promising
from uaccel.accelerator.streams.commands import Synchronised, Synchroniser, Waiting, with_tokens
from uaccel.accelerator.streams.machine import (
    Access,
    Code,
    Command,
    Layer,
    Machine,
    Part,
    Placed,
    Places,
    dense,
    inside,
    move_of,
    packed,
    place_name,
)
from uaccel.accelerator.streams.tiling import (
    Home,
    LayerPlan,
    Round,
    Slots,
    Taken,
    Where,
    count,
    input_bytes,
    output_bytes,
    total_weights,
    typical_part,
)
from uaccel.accelerator.streams.timeline import NOTHING, Cost, Estimate, Key, Work, fetching
from uaccel.errors import InternalError
from uaccel.memory import lowest_free
from uaccel.util.text import pieces, round_up

# The commands of layers, one part after the other: bring what it needs, compute it, take the result away.


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


ZEROS: Final = dict.fromkeys(("stride_run", "stride_plane", "pitch_run", "pitch_plane"), 0)
_TIMED: Final[tuple[dict[str, int], str]] = ({}, "")  # Fields and label of a command whose time alone is asked for.


LONGEST: Final = 128  # Parts of a layer that is still simulated.


class CommandEmitter:
    """Collects the commands of layers. ``homes``: where tensors lie in memory; ``constants`` are place 0.

    ``held``: the tensor and box that each slot on chip holds. ``turns``: how often the slots of a tensor were used.
    Without constants commands have no fields of their own and no label: they only serve to compute their time.
    """

    def __init__(self, machine: Machine, homes: Mapping[str, Home], constants: StreamConstants | None = None) -> None:
        self.machine = machine
        self.homes = homes
        self.constants = constants
        self.weights = WeightMemory(machine)
        self.commands: list[Waiting] = []
        self.held: dict[int, tuple[str, Box]] = {}
        self.turns: dict[tuple[int, ...], int] = {}
        self.synchroniser = Synchroniser(partial(relay, machine))
        self.estimate = Estimate(machine)
        self.moved = 0

    def copy(self) -> CommandEmitter:
        """The same but for the commands, which only serve to compute the time from here on."""
        other = CommandEmitter(self.machine, self.homes)
        other.weights.next, other.weights.there = self.weights.next, dict(self.weights.there)
        other.held, other.turns, other.moved = dict(self.held), dict(self.turns), self.moved
        other.synchroniser, other.estimate = self.synchroniser.copy(), self.estimate.copy()
        return other

    def layer(self, decided: LayerPlan) -> None:
        """Emits a layer: each part's loads, its computations, and its store after the last step of the sums. Where only
        the time is asked for, a layer of many parts counts by its estimate: they hardly depend on other layers."""
        if self.constants is None and count(decided.layer, decided.tiling) > LONGEST:
            self.estimate.skip(decided.estimated.cycles)
            self.moved += decided.estimated.bytes
            return
        self.weights.begin(total_weights(decided.layer, decided.tiling, self.machine.weights.alignment))
        self.held.clear()
        for one in decided.rounds:
            inputs = tuple(self._input(decided, index, one) for index in range(len(one.needs)))
            weights = self._weights(one)
            output = self._output(decided, one)
            self.compute(one, Places(inputs, output, weights, 0), one.is_last)
            if one.is_last and decided.layer.output in self.homes:
                self.transfer(one, len(one.needs), output)

    def synchronised(self) -> Synchronised:
        return with_tokens(self.commands)

    def cost(self, behind: Work = NOTHING) -> Cost:
        """What all commands so far cost by estimate, where the engines have at least the work ``behind`` to do after
        them."""
        return Cost(self.estimate.end(behind.busy), self.moved + behind.moved)

    @property
    def work(self) -> Work:
        """What the engines have to do so far."""
        return Work(dict(self.estimate.engines.busy), self.moved)

    def _append(self, command: Command) -> None:
        self.moved += command.moved
        for one in self.synchroniser.take(command):
            self.commands.append(one)
            self.estimate.run(*one)

    def _input(self, decided: LayerPlan, index: int, one: Round) -> Placed:
        layer, where = decided.layer, decided.inputs[index]
        name, shape, box = layer.inputs[index], layer.shapes[index], one.needs[index]
        if isinstance(where, int):
            return inside(where, shape, box)
        for address in where.addresses:
            if self.held.get(address) == (name, box):
                return dense(address, box)
        address = self.turn(where)
        self.held[address] = (name, box)
        placed = _fitting(where, address, box)
        self.transfer(one, index, placed)
        return placed

    def _output(self, decided: LayerPlan, one: Round) -> Placed:
        if isinstance(decided.output, int):
            return inside(decided.output, decided.layer.shape, one.result)
        first = one.part.steps.start == 0
        address = self.turn(decided.output) if first else self._current(decided.output)
        return _fitting(decided.output, address, one.result)

    def turn(self, slots: Slots) -> int:
        """The address of the next slot; slots are used one after the other."""
        number = self.turns.get(slots.addresses, -1) + 1
        self.turns[slots.addresses] = number
        return slots.addresses[number % len(slots.addresses)]

    def _current(self, slots: Slots) -> int:
        return slots.addresses[self.turns[slots.addresses] % len(slots.addresses)]

    def _weights(self, one: Round) -> int:
        if one.weights == 0:
            return 0
        key = (one.layer.name, one.part.blocks, one.part.steps)
        found = self.weights.find(key)
        if found is not None:
            return found
        address = self.weights.take(key, one.weights)
        self.load_weights(one, address)
        return address

    def load_weights(self, one: Round, address: int) -> None:
        size, address = one.weights - one.made, address + one.made
        cycles, run, code = self.machine.constants.cycles(size), size, None
        if self.machine.unpacker is not None:
            code = self.machine.unpacker.code(one.layer, one.part)
            cycles, run = min((cycles, run), (self.machine.unpacked_cycles(size, code.size), code.size))
        coded = run < size
        touched = (Access("weights", address, address + size, True),)
        fields, label = _TIMED
        if self.constants is not None:
            offset = self.constants.offset(one.layer, one.part, coded)
            fields = {"place": 0, "memory": 1, "offset": offset, "address": address, "run": run}
            fields |= {"runs": 1, "planes": 1, **({"coded": 1, "pitch_run": size} if coded else {})}
            label = f"{one.where}: load weights"
        self._transferred("load", one.layer, fields, touched, cycles, label, run, code if coded else None)

    def compute(self, one: Round, places: Places, last: bool = True) -> None:
        """Emits the commands that compute a part at these places."""
        touched = [Access("activations", p.address, p.end, False) for p in places.inputs]
        if one.weights:
            touched.append(Access("weights", places.weights, places.weights + one.weights, False))
        if last:
            touched.append(Access("activations", places.output.address, places.output.end, True))
        if self.constants is not None or not one.computes:
            one.computes[:] = one.layer.commands(one.part, places)
        for compute in one.computes:
            label = "" if self.constants is None else f"{one.where}: {compute.kind}"
            done = (compute.kind, "compute", compute.fields, tuple(touched), compute.cycles, compute.size)
            self._append(Command(*done, one.layer.name, label, results=compute.results))

    def transfer(self, one: Round, index: int, placed: Placed) -> None:
        """Emits the move of a box between its place on chip and memory: of an input, or of the output behind them."""
        layer, loads = one.layer, index < len(one.needs)
        kind, name, shape = (
            ("load", layer.inputs[index], layer.shapes[index]) if loads else ("store", layer.output, layer.shape)
        )
        move = one.moves.get(index)
        if move is None:
            move = one.moves[index] = move_of(shape, placed)
        home = self.homes[name]
        offset = home.offset + shape.offset(placed.box)
        touched = [Access("activations", placed.address, placed.end, loads)]
        if home.place != 0:
            touched.append(Access(place_name(home.place), offset, offset + move.extent, not loads))
        fields, label = _TIMED
        if self.constants is not None:
            fields = {"place": home.place, "memory": 0, "offset": offset, "address": placed.address, "run": move.run}
            fields |= {"runs": move.runs, "planes": move.planes}
            fields |= {"stride_run": move.strides[0], "stride_plane": move.strides[1]}
            fields |= {"pitch_run": move.pitches[0], "pitch_plane": move.pitches[1]}
            label = f"{one.where}: {kind} {name} {placed.box}"
        cycles = (self.machine.load if loads else self.machine.store).cycles(move.run, move.total_runs)
        self._transferred(kind, layer, fields, tuple(touched), cycles, label, move.bytes)

    def _transferred(
        self,
        kind: str,
        layer: Layer,
        fields: dict[str, int],
        touched: tuple[Access, ...],
        cycles: int,
        label: str,
        moved: int,
        code: Code | None = None,
    ) -> None:
        done = (touched, cycles, self.machine.transfer_size, layer.name, label, moved, code)
        self._append(Command(kind, kind, ZEROS | fields if fields else {}, *done))


def _fitting(slots: Slots, address: int, box: Box) -> Placed:
    if box.bytes > slots.room:
        raise InternalError(f"{box} has {box.bytes} bytes, and {slots.room} were planned for it")
    return dense(address, box)


def relay(machine: Machine, command: Command) -> Command:
    """Makes a command that does nothing: it takes a token of one transfer engine and gives one to the other."""
    label = f"{command.label}: wait for the other transfer"
    return Command("sync", "compute", {}, (), machine.sync_cycles, machine.sync_size, command.layer, label)


# The best tiling of a layer: all sensible ones are estimated, and the most promising ones are simulated.


@dataclass(frozen=True)
class Effort:
    """States how hard to search: ``played`` tilings are simulated; ``every`` size is tried, or only some."""

    played: int = 5
    every: bool = False


USUAL: Final = Effort()


@dataclass(frozen=True)
class TilingProblem:
    """Holds a layer with what is decided of its tensors: the address where one stays on chip, None where it streams.

    ``taken``: memory on chip that others use. ``homes``: where the tensors lie in memory that stream, and an output
    that must reach memory as well.
    """

    layer: Layer
    inputs: tuple[int | None, ...]
    output: int | None
    taken: Taken
    homes: Mapping[str, Home]
    effort: Effort = USUAL


def best(machine: Machine, question: TilingProblem, objective: str) -> list[LayerPlan]:
    """The most promising tilings, best first; none where not even the smallest part fits."""

    def alone(decided: LayerPlan) -> Key:
        emitter = CommandEmitter(machine, question.homes)
        emitter.layer(decided)
        return emitter.cost().key(objective)

    return sorted(islice(feasible(machine, question, objective), question.effort.played), key=alone)


def feasible(machine: Machine, question: TilingProblem, objective: str) -> Iterator[LayerPlan]:
    """The tilings to try, with places for their pieces: the best estimates first."""
    stays = None not in (*question.inputs, question.output) and question.layer.output not in question.homes
    tilings = candidates(machine, question.layer, whole=stays, sparsely=not question.effort.every)
    found = promising(
        tilings,
        lambda tiling: estimate(machine, question, tiling).key(objective),
        lambda tiling: decide(machine, question, tiling),
    )
    return (decided for _, decided in found)


def candidates(machine: Machine, layer: Layer, *, whole: bool, sparsely: bool) -> Iterator[Tiling]:
    """The tilings whose weights and sums fit. ``whole``: there is nothing to gain from cutting the image. The two
    orders of the loops differ only if both channels and pixels are cut. With several steps of a sum the weights change
    within each piece of the image, so they cannot stay."""
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
    """Rows and columns of a piece: whole rows, and parts of one row."""
    yield from ((some, columns) for some in extents(rows, sparsely=sparsely))
    yield from ((1, some) for some in extents(columns, sparsely=sparsely) if some < columns)


def _chunks(machine: Machine, layer: Layer, sparsely: bool) -> Iterator[tuple[int, int]]:
    """Blocks and steps of one chunk of weights: fewer steps only where one block is too much. A chunk fits a bank, so
    that the next one loads beside it; if there is one chunk alone, it may fill the memory. Of the numbers of steps that
    fit, the two largest are tried: smaller ones only mean more commands."""
    memory = machine.weights
    for blocks in extents(layer.blocks, sparsely=sparsely):
        most = memory.bytes if blocks == layer.blocks else memory.bank_bytes
        if layer.weight_bytes(range(blocks), range(layer.steps)) <= most:
            yield blocks, layer.steps
    if layer.weight_bytes(range(1), range(layer.steps)) > memory.bank_bytes:
        steps = [s for s in extents(layer.steps, sparsely=sparsely) if _last_fits(layer, s, memory.bank_bytes)]
        yield from ((1, some) for some in steps[:2])


def _last_fits(layer: Layer, steps: int, most: int) -> bool:
    """Whether chunks of so many steps fit: the last one of a sum brings the output's parameters as well."""
    first = (layer.steps - 1) // steps * steps
    usual, last = range(steps), range(first, layer.steps)
    return max(layer.weight_bytes(range(1), usual), layer.weight_bytes(range(1), last)) <= most


def _sums_fit(machine: Machine, layer: Layer, tiling: Tiling) -> bool:
    return layer.sum_bytes(typical_part(layer, tiling)) <= machine.sums.bytes


def decide(machine: Machine, question: TilingProblem, tiling: Tiling) -> LayerPlan | None:
    """Places slots for all tensors that stream, beside what is taken; None where they do not fit. The largest come
    first, each at the lowest free address: small ones then fill the gaps."""
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
    return LayerPlan(layer, tiling, tuple(places[:-1]), places[-1], estimate(machine, question, tiling))


def estimate(machine: Machine, question: TilingProblem, tiling: Tiling) -> Cost:
    """Estimates a layer as if all parts were like the typical one. With two slots the engines work side by side: the
    busiest one decides, and the first part's load and the last one's store have nothing beside them. With one slot
    load, computation and store follow each other."""
    rounds = count(question.layer, tiling)
    loads, stores = _loads(machine, question, tiling), _stores(question, tiling)
    transfers = sum(times for _, _, times in loads) + sum(times for _, times in stores)
    fetch = (rounds + transfers) * fetching(machine, machine.transfer_size)
    load = sum(times * dma.cycles(size) for dma, size, times in loads) + (0 if machine.bus is None else fetch)
    store = sum(times * machine.store.cycles(size) for size, times in stores)
    compute = rounds * question.layer.cycles(typical_part(question.layer, tiling))
    moved = sum(times * size for _, size, times in loads) + sum(times * size for size, times in stores)
    if not tiling.buffered and rounds > 1:
        return Cost(load + compute + store, moved)
    first = sum(dma.cycles(size) for dma, size, _ in loads)
    last = sum(machine.store.cycles(size) for size, _ in stores)
    return Cost(max(load, store, compute, fetch) + first + last, moved)


def _loads(machine: Machine, question: TilingProblem, tiling: Tiling) -> list[tuple[Dma, int, int]]:
    """Gives for the weights and each input that streams the DMA, the bytes of a load, and the number of loads. Weights
    come once for each chunk if they stay or all fit. An input comes again for each chunk of blocks if the chunks read
    different channels of it, or if another piece of the image has taken its slot meanwhile."""
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


def _stores(question: TilingProblem, tiling: Tiling) -> list[tuple[int, int]]:
    layer, part = question.layer, typical_part(question.layer, tiling)
    if layer.output not in question.homes:
        return []
    return [(layer.result(part).bytes, count(layer, tiling) // pieces(layer.steps, tiling.steps))]
