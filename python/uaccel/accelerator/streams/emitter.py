"""Emits the commands of a layer, and searches its best tiling.

The search estimates every sensible tiling, and simulates the few that look best (:func:`best`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from uaccel.accelerator.machine import ENGINES, Box, Dma, Shape, Tiling, extents
from uaccel.accelerator.streams.commands import Synchronised, Synchroniser, Waiting, with_tokens
from uaccel.accelerator.streams.constants import StreamConstants, UnreadConstants, WeightMemory
from uaccel.accelerator.streams.machine import (
    Access,
    Code,
    Command,
    Layer,
    Machine,
    Placed,
    Places,
    dense,
    inside,
    move_of,
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
from uaccel.util.text import pieces

# The commands of layers, one part after the other: bring what it needs, compute it, take the result away.


ZEROS: Final = dict.fromkeys(("stride_run", "stride_plane", "pitch_run", "pitch_plane"), 0)
_TIMED: Final[tuple[dict[str, int], str]] = ({}, "")  # Fields and label of a command whose time alone is asked for.


LONGEST: Final = 128  # Parts of a layer that is still simulated.


# What commands are emitted for, and so what is in them: to estimate their times, to simulate them, to be executed.
TIMES, PLAYED, FULL = range(3)


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
        self.detail = TIMES if constants is None else PLAYED if isinstance(constants, UnreadConstants) else FULL
        self.estimates = self.detail == TIMES or machine.bus is None  # Else :func:`shared` tells the time.

    def copy(self) -> CommandEmitter:
        """The same, to go on in another way."""
        other = CommandEmitter(self.machine, self.homes, self.constants)
        other.commands = list(self.commands)
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
        self.weights.begin(decided.weights)
        self.held.clear()
        for one in decided.rounds:
            inputs = [self._input(decided, index, one) for index in range(len(one.needs))]
            weights = self._weights(one)
            self._round(decided, one, inputs, weights, self._output(decided, one))

    def _round(self, decided: LayerPlan, one: Round, inputs: Sequence[int], weights: int, output: int) -> None:
        """Emits the computations of a part with everything at these addresses, and the store of its result."""
        key, layer = (self.detail, output, weights, tuple(inputs)), decided.layer
        known = one.known.get(key)
        if known is None:
            wheres = zip(decided.inputs, layer.shapes, inputs, one.needs, strict=True)
            places = tuple(_placed(*where) for where in wheres)
            result = _placed(decided.output, layer.shape, output, one.result)
            known = self.computed(one, Places(places, result, weights, 0), one.is_last)
            self._know(one, key, known)
        for command in known:
            self._append(command)
        if one.is_last and layer.output in self.homes:
            self._transfer(one, len(one.needs), output, decided.output)

    def synchronised(self) -> Synchronised:
        """All commands so far, with their tokens if they are to be executed."""
        if self.detail == FULL:
            return with_tokens(self.commands)
        commands, waits = zip(*self.commands, strict=True) if self.commands else ((), ())
        return Synchronised(commands, (), waits)

    def cost(self, behind: Work = NOTHING) -> Cost:
        """What all commands so far cost by estimate, where the engines have at least the work ``behind`` to do after
        them."""
        return Cost(self.estimate.end(behind.busy), self.moved + behind.moved)

    @property
    def work(self) -> Work:
        """What the engines have to do so far."""
        return Work(dict(zip(ENGINES, self.estimate.busy, strict=True)), self.moved)

    def _append(self, command: Command) -> None:
        self.moved += command.moved
        for one in self.synchroniser.take(command):
            self.commands.append(one)
            if self.estimates:
                self.estimate.run(*one)

    def _know(self, one: Round, key: tuple[object, ...], commands: tuple[Command, ...]) -> None:
        """Keeps commands for the next try with these addresses, but for those that are emitted for good."""
        if self.detail != FULL:
            one.known[key] = commands

    def _input(self, decided: LayerPlan, index: int, one: Round) -> int:
        """The address of an input, which is loaded if it is not there."""
        where = decided.inputs[index]
        if isinstance(where, int):
            return where
        held = (decided.layer.inputs[index], one.needs[index])
        for address in where.addresses:
            if self.held.get(address) == held:
                return address
        address = self.turn(where)
        self.held[address] = held
        self._transfer(one, index, address, where)
        return address

    def _output(self, decided: LayerPlan, one: Round) -> int:
        where = decided.output
        if isinstance(where, int):
            return where
        return self.turn(where) if one.part.steps.start == 0 else self._current(where)

    def _transfer(self, one: Round, index: int, address: int, where: Where) -> None:
        """Emits the move of a box whose tensor lies at an address, or whose slot does."""
        layer, loads = one.layer, index < len(one.needs)
        home = self.homes[layer.inputs[index] if loads else layer.output]
        key = (self.detail, address, index, home.place, home.offset)
        known = one.known.get(key)
        if known is None:
            shape, box = (layer.shapes[index], one.needs[index]) if loads else (layer.shape, one.result)
            known = (self.moved_by(one, index, _placed(where, shape, address, box)),)
            self._know(one, key, known)
        self._append(known[0])

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
        key = (self.detail, address)
        known = one.known.get(key)
        if known is None:
            known = (self._weights_to(one, address),)
            self._know(one, key, known)
        self._append(known[0])

    def _weights_to(self, one: Round, address: int) -> Command:
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
            label = f"{one.where}: load weights" if self.detail == FULL else ""
        return self._transferred("load", one.layer, fields, touched, cycles, label, run, code if coded else None)

    def compute(self, one: Round, places: Places) -> None:
        """Emits the commands that compute a part at these places."""
        for command in self.computed(one, places):
            self._append(command)

    def computed(self, one: Round, places: Places, last: bool = True) -> tuple[Command, ...]:
        """The commands that compute a part at these places."""
        touched = [Access("activations", p.address, p.end, False) for p in places.inputs]
        if one.weights:
            touched.append(Access("weights", places.weights, places.weights + one.weights, False))
        if last:
            touched.append(Access("activations", places.output.address, places.output.end, True))
        if self.constants is not None or not one.computes:
            one.computes[:] = one.layer.commands(one.part, places)
        commands = []
        for compute in one.computes:
            label = f"{one.where}: {compute.kind}" if self.detail == FULL else ""
            done = (compute.kind, "compute", compute.fields, tuple(touched), compute.cycles, compute.size)
            commands.append(Command(*done, one.layer.name, label, results=compute.results))
        return tuple(commands)

    def transfer(self, one: Round, index: int, placed: Placed) -> None:
        """Emits the move of a box between its place on chip and memory: of an input, or of the output behind them."""
        self._append(self.moved_by(one, index, placed))

    def moved_by(self, one: Round, index: int, placed: Placed) -> Command:
        """The command that moves a box between its place on chip and memory."""
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
            label = f"{one.where}: {kind} {name} {placed.box}" if self.detail == FULL else ""
        cycles = (self.machine.load if loads else self.machine.store).cycles(move.run, move.total_runs)
        return self._transferred(kind, layer, fields, tuple(touched), cycles, label, move.bytes)

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
    ) -> Command:
        done = (touched, cycles, self.machine.transfer_size, layer.name, label, moved, code)
        return Command(kind, kind, ZEROS | fields if fields else {}, *done)


def _placed(where: Where, shape: Shape, address: int, box: Box) -> Placed:
    """A box of a tensor that lies at an address as a whole, or in a slot at an address."""
    if isinstance(where, int):
        return inside(address, shape, box)
    if box.bytes > where.room:
        raise InternalError(f"{box} has {box.bytes} bytes, and {where.room} were planned for it")
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


class Measured(NamedTuple):
    """Holds what the typical part of a tiling takes: cycles, bytes of weights that are loaded (in ``weights`` those of
    all parts), boxes of the inputs, and bytes of the result."""

    cycles: int
    size: int
    weights: int
    needs: tuple[Box, ...]
    result: int


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

    def measure(self, machine: Machine, tiling: Tiling) -> Measured:
        """The sizes of the typical part: tilings that differ in the order of loops, or in slots, share them."""
        sizes, found = (tiling.rows, tiling.columns, tiling.blocks, tiling.steps), searched(machine, self.layer)
        if sizes not in found.measured:
            layer, part = self.layer, typical_part(self.layer, tiling)
            if sizes[2:] not in found.totals:
                found.totals[sizes[2:]] = total_weights(layer, tiling, machine.weights.alignment)
            size = layer.weight_bytes(part.blocks, part.steps) - layer.made_bytes(part.blocks, part.steps)
            needs = tuple(layer.needs(index, part) for index in range(len(layer.inputs)))
            found.measured[sizes] = Measured(
                layer.cycles(part), size, found.totals[sizes[2:]], needs, layer.result(part).bytes
            )
        return found.measured[sizes]

    @property
    def pattern(self) -> tuple[Hashable, ...]:
        """What the time of a tiling depends on beside the layer: which tensors stay and which pass through, but not
        where they lie, since no two of them share a byte."""
        at_home = (name in self.homes for name in (*self.layer.inputs, self.layer.output))
        return (*(address is None for address in (*self.inputs, self.output)), *at_home)

    @property
    def key(self) -> tuple[Hashable, ...]:
        """All that its answer depends on beside the layer. Where a tensor lies in memory changes no time."""
        at_home = (name in self.homes for name in (*self.layer.inputs, self.layer.output))
        return (self.inputs, self.output, *self.taken, *at_home, self.effort)


@dataclass
class Searched:
    """Keeps what was found of a layer's tilings: :class:`Measured` and the weights in all by sizes; by the tensors that
    stay, the tilings in the order of their estimates, and what each one simulated costs."""

    measured: dict[tuple[int, ...], Measured] = field(default_factory=dict)
    totals: dict[tuple[int, ...], int] = field(default_factory=dict)
    ranked: dict[tuple[Hashable, ...], list[Tiling]] = field(default_factory=dict)
    alone: dict[tuple[Hashable, ...], Key] = field(default_factory=dict)


def searched(machine: Machine, layer: Layer) -> Searched:
    """What was found of a layer, or of those that are alike."""
    known = layer.known.get(machine)
    if known is None:
        alike = alike_on(machine, layer)
        known = Searched() if alike is None else machine.known.setdefault(("searched", alike), Searched())
        layer.known[machine] = known
    found: Searched = known
    return found


def alike_on(machine: Machine, layer: Layer) -> Hashable | None:
    """What layers are alike by on a machine: how long weights take to unpack depends on each byte of them."""
    if machine.unpacker is not None or layer.alike is None:
        return None
    names = (*layer.inputs, layer.output)
    return (layer.alike, *map(names.index, names))


def best(machine: Machine, question: TilingProblem, objective: str) -> list[LayerPlan]:
    """The most promising tilings, best first; none where not even the smallest part fits."""
    alike = alike_on(machine, question.layer)
    if alike is None:
        return _best(machine, question, objective)
    key = (alike, *question.key, objective)
    if key not in machine.known:
        found = _best(machine, question, objective)
        machine.known[key] = [(one.tiling, one.inputs, one.output, one.weights, one.estimated) for one in found]
        return found
    return [LayerPlan(question.layer, *one) for one in machine.known[key]]


def _best(machine: Machine, question: TilingProblem, objective: str) -> list[LayerPlan]:
    known = searched(machine, question.layer).alone

    def alone(decided: LayerPlan) -> Key:
        key = (decided.tiling, objective, *question.pattern)
        if key not in known:
            emitter = CommandEmitter(machine, question.homes)
            emitter.layer(decided)
            known[key] = emitter.cost().key(objective)
        return known[key]

    return sorted(islice(feasible(machine, question, objective), question.effort.played), key=alone)


def feasible(machine: Machine, question: TilingProblem, objective: str) -> Iterator[LayerPlan]:
    """The tilings to try, with places for their pieces: the best estimates first."""
    known, key = searched(machine, question.layer).ranked, (question.effort.every, objective, *question.pattern)
    if key not in known:
        stays = None not in (*question.inputs, question.output) and question.layer.output not in question.homes
        tilings = candidates(machine, question.layer, whole=stays, sparsely=not question.effort.every)
        known[key] = sorted(tilings, key=lambda tiling: estimate(machine, question, tiling).key(objective))
    return (plan for tiling in known[key] if (plan := decide(machine, question, tiling)))


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
    that the next one loads beside it; if there is one chunk alone, it may fill the memory. The two largest numbers of
    steps that fit are tried: smaller ones only mean more commands."""
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
    weights = question.measure(machine, tiling).weights
    return LayerPlan(layer, tiling, tuple(places[:-1]), places[-1], weights, estimate(machine, question, tiling))


def estimate(machine: Machine, question: TilingProblem, tiling: Tiling) -> Cost:
    """Estimates a layer as if all parts were like the typical one. With two slots the engines work side by side: the
    busiest one decides, and the first part's load and the last one's store have nothing beside them. With one slot
    load, computation and store follow each other."""
    rounds = count(question.layer, tiling)
    loads, stores = _loads(machine, question, tiling), _stores(machine, question, tiling)
    transfers = sum(times for _, _, times in loads) + sum(times for _, times in stores)
    fetch = (rounds + transfers) * fetching(machine, machine.transfer_size)
    load = sum(times * dma.cycles(size) for dma, size, times in loads) + (0 if machine.bus is None else fetch)
    store = sum(times * machine.store.cycles(size) for size, times in stores)
    compute = rounds * question.measure(machine, tiling).cycles
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
    layer, measured = question.layer, question.measure(machine, tiling)
    rounds = count(layer, tiling)
    chunks, steps = pieces(layer.blocks, tiling.blocks), pieces(layer.steps, tiling.steps)
    images = tiling.pixel_pieces(layer.shape)
    stay, size = tiling.weights_stay or measured.weights <= machine.weights.bytes, measured.size
    loads = [(machine.constants, size, chunks * steps if stay else rounds)] if size else []
    for index, address in enumerate(question.inputs):
        box = measured.needs[index]
        again = len(box.channels) < layer.shapes[index].channels or (tiling.weights_stay and images > 1)
        if address is None:
            loads.append((machine.load, box.bytes, images * chunks if again else images))
    return loads


def _stores(machine: Machine, question: TilingProblem, tiling: Tiling) -> list[tuple[int, int]]:
    layer = question.layer
    if layer.output not in question.homes:
        return []
    return [(question.measure(machine, tiling).result, count(layer, tiling) // pieces(layer.steps, tiling.steps))]
