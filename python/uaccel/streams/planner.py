"""A region on a machine: which tensors stay on chip, how layers are cut, and the stream of commands that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from uaccel.errors import AcceleratorError
from uaccel.machines.tiling import Tiling
from uaccel.machines.timeline import Timeline
from uaccel.memory import Block, plan
from uaccel.streams.chain_search import Region, Step, emitted, spans, with_chains
from uaccel.streams.cost import LATENCY, Cost
from uaccel.streams.decided import Decided, Home
from uaccel.streams.emitter import Constants
from uaccel.streams.layer import Layer
from uaccel.streams.machine import Machine
from uaccel.streams.residency import Life, Residents, choose_residents, lives, lives_beside, smallest_pieces
from uaccel.streams.search import USUAL, Effort, Question, best, feasible
from uaccel.streams.tiling import count, input_bytes, output_bytes, typical_part
from uaccel.streams.timeline import timeline
from uaccel.streams.tokens import Synchronised

ALIGNMENT = 16
"""Of tensors in scratch memory."""
FEW = 40
"""Layers of a region in which all are neighbours of each other."""
BEFORE, BEHIND = 2, 3
"""In larger ones so many are, before and behind."""
LONGEST = 400
"""Parts of all of them that are still tried."""


Answers = dict[tuple[object, ...], list[Decided]]
"""The best tilings by layer and by what they depend on: of large tensors, which never stay, it is
the same every time."""


@dataclass(frozen=True)
class Network:
    """The layers of a region in order of execution, and the tensors at its border, in the order of the region's.

    ``known``: tensors whose bytes are known ahead of time."""

    layers: tuple[Layer, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    known: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Planned:
    """``places`` of the stream: constants, then the inputs and outputs, then scratch; their sizes are the tensors'.

    ``residents``: tensors that never leave the chip, unless they are outputs as well, with their addresses."""

    steps: tuple[Step, ...]
    residents: Mapping[str, int]
    stream: Synchronised
    timeline: Timeline
    constants: bytes
    scratch: int

    @property
    def cost(self) -> Cost:
        return Cost(self.timeline.total, sum(command.moved for command in self.stream.commands))

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(command.label for command in self.stream.commands)


def plan_network(machine: Machine, network: Network, objective: str = LATENCY, effort: Effort = USUAL) -> Planned:
    """The best of some ways to share the activation memory between what stays and what passes through."""
    alive = lives(network.layers)
    smallest = [smallest_pieces(machine, layer) for layer in network.layers]
    size = machine.activations.bytes
    tried: dict[frozenset[str], Planned | None] = {}
    answers: Answers = {}
    for reserve in (0, size // 8, size // 4, size // 2):
        residents = choose_residents(machine, smallest, alive, reserve)
        names = frozenset(residents.addresses)
        if names not in tried:
            tried[names] = _planned(machine, network, alive, residents, objective, answers, effort)
    found = [planned for planned in tried.values() if planned is not None]
    if not found:
        layers = ", ".join(layer.name for layer in network.layers)
        raise AcceleratorError(f"no part of {layers} fits the machine; its check should have refused it")
    return min(found, key=lambda planned: planned.cost.key(objective))


def why_not(machine: Machine, layer: Layer) -> str | None:
    """Why not even the smallest part of a layer fits, in words."""
    homes = {name: Home(1, 0) for name in (*layer.inputs, layer.output)}
    alone = Question(layer, (None,) * len(layer.inputs), None, (), homes)
    if next(feasible(machine, alone, LATENCY), None) is not None:
        return None
    for name in ("weights", "sums", "activations"):
        needed, there = _smallest(machine, layer, name), machine.memory(name).bytes
        if needed > there:
            return f"its smallest part needs {needed} bytes of {name} on chip, and there are {there}"
    return "its smallest part fits no memory on chip"


def _planned(
    machine: Machine,
    network: Network,
    alive: Sequence[Life],
    residents: Residents,
    objective: str,
    answers: Answers,
    effort: Effort,
) -> Planned | None:
    homes, _ = _homes(network, alive, residents, Constants())
    border = {*network.known, *network.inputs, *network.outputs}
    addresses = residents.addresses
    choices = []
    for number, layer in enumerate(network.layers):
        inputs = tuple(addresses.get(name) for name in layer.inputs)
        taken = residents.taken(number, number + 1)
        question = Question(layer, inputs, addresses.get(layer.output), taken, homes, effort)
        key = (
            number,
            inputs,
            question.output,
            *question.taken,
            *(name in homes for name in (*layer.inputs, layer.output)),
        )
        if key not in answers:
            answers[key] = best(machine, question, objective)
        choices.append(answers[key])
    if not all(choices):
        return None
    decided = refined(machine, choices, homes, objective)
    spilled = frozenset(name for name in homes if name not in border)
    steps = with_chains(Region(machine, network.layers, spilled, residents, homes, objective), decided)
    constants = Constants(alignment=ALIGNMENT if machine.bus is None else machine.bus.word)
    homes, scratch = _homes(network, lives_beside(alive, spans(steps)), residents, constants)
    stream = emitted(machine, steps, homes, constants).synchronised()
    return Planned(tuple(steps), addresses, stream, timeline(machine, stream), bytes(constants.data), scratch)


def refined(
    machine: Machine, choices: Sequence[Sequence[Decided]], homes: Mapping[str, Home], objective: str
) -> list[Decided]:
    """What is best alone need not be best among others, since what comes next loads already: try the next best ones,
    each among its neighbours. Large regions are planned in time by their number of layers."""
    first = [some[0] for some in choices]
    if len(choices) == 1:
        return first
    decided = list(first)
    for number, some in enumerate(choices):
        begin, end = (0, len(choices)) if len(choices) <= FEW else (max(0, number - BEFORE), number + BEHIND + 1)
        around = (decided[begin:number], decided[number + 1 : end])
        if sum(count(other.layer, other.tiling) for other in decided[begin:end]) <= LONGEST:
            decided[number] = _best_among(machine, some, around, homes, objective)
    if all(one is other for one, other in zip(decided, first, strict=True)):
        return first
    costs = [emitted(machine, found, homes).cost().key(objective) for found in (decided, first)]
    return decided if costs[0] <= costs[1] else first


def _best_among(
    machine: Machine,
    choices: Sequence[Decided],
    around: tuple[Sequence[Decided], Sequence[Decided]],
    homes: Mapping[str, Home],
    objective: str,
) -> Decided:
    before, behind = around
    costs = [emitted(machine, [*before, some, *behind], homes).cost().key(objective) for some in choices]
    return choices[costs.index(min(costs))]


def _homes(
    network: Network, alive: Sequence[Life], residents: Residents, constants: Constants
) -> tuple[dict[str, Home], int]:
    """Of tensors at the border, of known ones, and of those inside that do not stay; and the bytes of scratch."""
    homes = {name: Home(0, constants.add(data)) for name, data in network.known.items()}
    homes |= {name: Home(number, 0) for number, name in enumerate((*network.inputs, *network.outputs), 1)}
    spilled = [life for life in alive if life.name not in residents.addresses and life.name not in homes]
    planned = plan([Block(life.name, life.bytes, life.first, life.last, ALIGNMENT) for life in spilled])
    number = 1 + len(network.inputs) + len(network.outputs)
    homes |= {life.name: Home(number, planned.offsets[life.name]) for life in spilled}
    return homes, planned.size


def _smallest(machine: Machine, layer: Layer, memory: str) -> int:
    """What the smallest part needs of a memory."""
    if memory == "weights":
        return min(layer.weight_bytes(range(1), range(steps)) for steps in (1, layer.steps))
    tiling = Tiling(1, 1, 1, 1, False, False)
    if memory == "sums":
        return layer.sum_bytes(typical_part(layer, tiling)) if layer.steps > 1 else 0
    return sum(input_bytes(layer, index, tiling) for index in range(len(layer.inputs))) + output_bytes(layer, tiling)
