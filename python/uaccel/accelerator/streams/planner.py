"""Plans a region on a machine with command streams, and lists the resulting commands for readers.

:func:`plan_network` is what vendors call. It decides in this order: which tensors stay on chip, how each layer is cut,
which layers form chains, and where the other tensors lie in scratch memory. Then the stream is emitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from uaccel.accelerator.machine import Tiling, Timeline
from uaccel.accelerator.region import Region
from uaccel.accelerator.streams.bus import shared
from uaccel.accelerator.streams.chain import (
    TRIED,
    Chain,
    Links,
    Step,
    StreamRegion,
    chains_of,
    emitted,
    spans,
    with_chains,
)
from uaccel.accelerator.streams.commands import TOKENS, Synchronised, tiles_of
from uaccel.accelerator.streams.constants import StreamConstants, UnreadConstants
from uaccel.accelerator.streams.emitter import (
    LONGEST,
    USUAL,
    CommandEmitter,
    Effort,
    TilingProblem,
    alike_on,
    best,
    candidates,
    decide,
)
from uaccel.accelerator.streams.machine import Command, Layer, Machine, Tokens
from uaccel.accelerator.streams.tiling import (
    Home,
    LayerPlan,
    ResidentRange,
    Residents,
    choose_residents,
    count,
    input_bytes,
    lives,
    lives_beside,
    output_bytes,
    smallest_pieces,
    typical_part,
)
from uaccel.accelerator.streams.timeline import LATENCY, Cost, Key, Work, timeline
from uaccel.errors import AcceleratorError
from uaccel.memory import Block, plan

# A region on a machine: which tensors stay on chip, how layers are cut, and the stream of commands that follows.

ALIGNMENT = 16  # Bytes to which tensors in scratch memory are aligned.
WAYS = 2  # Ways to share the activation memory that are planned to the end.
POLISHED = 1000  # Commands that are emitted to polish a region; it bounds the time.
POLISHABLE = 600  # Parts of a region's layers up to which it is polished: the bound allows too few tries of more.
AHEAD = 1  # Layers behind one whose tilings are tried that are simulated with each of them.
# Parts of a region's layers from which on it is large: then one way is planned to the end. No network that was measured
# took 0.2 % more cycles for that.
LARGE = 500
FEW = 8  # Parts of a layer whose best tilings are all simulated to tell what it costs alone.


# The best tilings by layer and all that they depend on. Residents differ only in some tensors from one try to the next,
# so most layers ask the same again.
Answers = dict[tuple[object, ...], list[LayerPlan]]


@dataclass(frozen=True)
class Network:
    """Holds the layers of a region in order of execution, and its inputs and outputs in the region's order.

    ``known``: tensors whose bytes are known ahead of time.
    """

    layers: tuple[Layer, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    known: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Planned:
    """Holds a planned region. The places of its stream are constants, the inputs, the outputs, and scratch memory.

    ``residents``: the addresses of tensors that stay on chip; they reach memory only if they are outputs as well.
    """

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
    def told(self) -> dict[str, Any]:
        """What a region's :class:`Lowered` tells of its stream, by the names of the fields."""
        commands, moved = self.stream.commands, Counter[str]()
        for command in commands:
            moved[command.layer] += command.moved
        cost, tiles = self.cost, tiles_of(commands)
        return {
            "labels": self.labels,
            "cycles": cost.cycles,
            "moved": cost.bytes,
            "moved_by": dict(moved),
            "tiles": tiles,
        }

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(command.label for command in self.stream.commands)


def plan_network(machine: Machine, network: Network, objective: str = LATENCY, effort: Effort = USUAL) -> Planned:
    """Plans a region: the best of some ways to share the activation memory between what stays and what passes through.
    Room that is kept for pieces gives larger tiles, but lets fewer tensors stay. Nothing, an eighth, a quarter and a
    half of the memory are tried as the ``reserve``. The ways whose layers cost least as they are alone are planned to
    the end, and the best of them by estimate is polished."""
    alive, key = lives(network.layers), _alike(machine, network, objective, effort)
    if key is not None and key in machine.known:
        residents, steps = _adopted(network, alive, machine.known[key])
    else:
        residents, steps = _decided(machine, network, alive, objective, effort)
        if key is not None:
            machine.known[key] = _kept(network, residents, steps)
    return _planned(machine, network, alive, residents, steps)


def _decided(
    machine: Machine, network: Network, alive: Sequence[ResidentRange], objective: str, effort: Effort
) -> tuple[Residents, Sequence[Step]]:
    """The tensors that stay on chip, and the steps."""
    smallest = [smallest_pieces(machine, layer) for layer in network.layers]
    size = machine.activations.bytes
    ways: dict[frozenset[str], Way] = {}
    answers: Answers = {}
    for reserve in (0, size // 8, size // 4, size // 2):
        residents = choose_residents(machine, smallest, alive, reserve)
        names = frozenset(residents.addresses)
        if names not in ways:
            homes, _ = _homes(network, alive, residents, StreamConstants())
            ways[names] = Way(
                residents, homes, _choices(machine, network, residents, homes, objective, answers, effort)
            )
    fitting = [way for way in ways.values() if all(way.choices)]
    if not fitting:
        layers = ", ".join(layer.name for layer in network.layers)
        raise AcceleratorError(f"no part of {layers} fits the machine; its check should have refused it")
    large = sum(count(one.layer, one.tiling) for one in fitting[0].first) >= LARGE
    tried = 1 if large else WAYS
    if len(fitting) > tried:
        fitting.sort(key=lambda way: emitted(machine, way.first, way.homes).cost().key(objective))
    planned = [_steps(machine, network, way, objective) for way in fitting[:tried]]
    _, way, region, steps = min(planned, key=lambda one: one[0])
    return way.residents, polished(region, way.choices, steps)


# What was decided of a region holds for all that are alike: a network repeats its blocks, and each one is a region
# where the CPU computes something between them. Tensors and layers are kept by number, so no weights live on.

Kept = tuple[dict[int, int], list[tuple[int, int, tuple[Any, ...]]]]  # Residents' addresses, and steps by stretches.


def _tensors(network: Network) -> tuple[str, ...]:
    """All that its layers read and make, in their order."""
    return tuple(dict.fromkeys(name for layer in network.layers for name in (*layer.inputs, layer.output)))


def _alike(machine: Machine, network: Network, objective: str, effort: Effort) -> Hashable | None:
    """Equal for regions that are planned alike; None where nothing holds for others."""
    numbers = {name: number for number, name in enumerate(_tensors(network))}
    layers = [
        (alike_on(machine, layer), *(numbers[name] for name in (*layer.inputs, layer.output)))
        for layer in network.layers
    ]
    if any(alike is None for alike, *_ in layers):
        return None
    border = [tuple(map(numbers.get, names)) for names in (network.inputs, network.outputs)]
    known = [(numbers.get(name), data) for name, data in network.known.items()]
    return ("region", *layers, *border, *known, objective, effort)


def _kept(network: Network, residents: Residents, steps: Sequence[Step]) -> Kept:
    """What was decided of a region, for those that are alike."""
    numbers = {name: number for number, name in enumerate(_tensors(network))}
    found: list[tuple[Any, ...]] = [
        (step.height, {numbers[name]: where for name, where in step.places.items()}, step.weights)
        if isinstance(step, Chain)
        else (step.tiling, step.inputs, step.output, step.weights, step.estimated)
        for step in steps
    ]
    addresses = {numbers[name]: address for name, address in residents.addresses.items()}
    return addresses, [(*stretch, some) for stretch, some in zip(_stretches(steps), found, strict=True)]


def _adopted(network: Network, alive: Sequence[ResidentRange], kept: Kept) -> tuple[Residents, Sequence[Step]]:
    """What was decided of another region, for this one."""
    names, steps = _tensors(network), list[Step]()
    addresses = {names[number]: address for number, address in kept[0].items()}
    for begin, end, some in kept[1]:
        if end == begin + 1:
            steps.append(LayerPlan(network.layers[begin], *some))
        else:
            height, places, weights = some
            there = {names[number]: where for number, where in places.items()}
            steps.append(Chain(Links(network.layers[begin:end]), height, there, weights))
    return Residents(addresses, {life.name: life for life in alive if life.name in addresses}), steps


def cycles_alone(machine: Machine, layer: Layer, objective: str = LATENCY) -> int:
    """How long a layer takes that is alone in its region, if it fits (:func:`why_not`): simulated where it has few
    parts, by estimate where it has many. The best of several tilings by estimate counts, but for very few parts."""
    alike = alike_on(machine, layer)
    if alike is None:
        return _cycles_alone(machine, layer, objective)
    key = ("alone", alike, objective)
    if key not in machine.known:
        machine.known[key] = _cycles_alone(machine, layer, objective)
    return int(machine.known[key])


def _cycles_alone(machine: Machine, layer: Layer, objective: str) -> int:
    alone = _alone(layer)
    choices = best(machine, alone, objective)
    if count(layer, choices[0].tiling) > LONGEST:
        return choices[0].estimated.cycles
    few = [one for one in choices if count(layer, one.tiling) <= LONGEST // 4]
    region = StreamRegion(machine, (layer,), frozenset(), Residents({}, {}), alone.homes, objective)
    most = 1 if count(layer, choices[0].tiling) > FEW else len(choices)
    tried = [emitted(machine, [one], alone.homes, UnreadConstants()) for one in (few or choices)[:most]]
    keys = [_simulated(region, one) for one in tried]
    return min(keys)[0 if objective == LATENCY else 1]


def _alone(layer: Layer) -> TilingProblem:
    homes = {name: Home(number, 0) for number, name in enumerate((*layer.inputs, layer.output), 1)}
    return TilingProblem(layer, (None,) * len(layer.inputs), None, (), homes)


def why_not(machine: Machine, layer: Layer) -> str | None:
    """Says why not even the smallest part of a layer fits; None where it does."""
    if any(decide(machine, _alone(layer), tiling) for tiling in candidates(machine, layer, whole=False, sparsely=True)):
        return None
    for name in ("weights", "sums", "activations"):
        needed, there = _smallest(machine, layer, name), machine.memory(name).bytes
        if needed > there:
            return f"its smallest part needs {needed} bytes of {name} on chip, and there are {there}"
    return "its smallest part fits no memory on chip"


@dataclass(frozen=True)
class Way:
    """Holds a way to share the activation memory, with the best tilings of each layer; none where it does not fit."""

    residents: Residents
    homes: Mapping[str, Home]
    choices: Sequence[Sequence[LayerPlan]]

    @property
    def first(self) -> list[LayerPlan]:
        """Each layer's best tiling alone."""
        return [some[0] for some in self.choices]


def _choices(
    machine: Machine,
    network: Network,
    residents: Residents,
    homes: Mapping[str, Home],
    objective: str,
    answers: Answers,
    effort: Effort,
) -> list[list[LayerPlan]]:
    """The best tilings of each layer alone, beside these residents."""
    addresses = residents.addresses
    choices = []
    for number, layer in enumerate(network.layers):
        inputs = tuple(addresses.get(name) for name in layer.inputs)
        taken = residents.taken(number, number + 1)
        question = TilingProblem(layer, inputs, addresses.get(layer.output), taken, homes, effort)
        key = (number, *question.key)
        if key not in answers:
            answers[key] = best(machine, question, objective)
        choices.append(answers[key])
    return choices


def _steps(
    machine: Machine, network: Network, way: Way, objective: str
) -> tuple[Key, Way, StreamRegion, Sequence[Step]]:
    """The steps of a region, behind what they cost by estimate."""
    decided = refined(machine, way.choices, way.homes, objective)
    border = {*network.known, *network.inputs, *network.outputs}
    spilled = frozenset(name for name in way.homes if name not in border)
    region = StreamRegion(machine, network.layers, spilled, way.residents, way.homes, objective)
    steps = confirmed(region, decided, with_chains(region, decided))
    return emitted(machine, steps, way.homes).cost().key(objective), way, region, steps


def confirmed(region: StreamRegion, decided: Sequence[LayerPlan], steps: Sequence[Step]) -> list[Step]:
    """The steps without the chains that cost more than their layers one by one, if both are simulated between their
    neighbours. Estimates know too little of the bus to decide that where a chain gains little."""
    if region.machine.bus is None:
        return list(steps)
    kept: list[Step] = []
    for number, (step, (begin, end)) in enumerate(zip(steps, _stretches(steps), strict=True)):
        ways: list[Sequence[Step]] = [[step]]
        if isinstance(step, Chain):
            ways.append(decided[begin:end])
            ways.sort(key=lambda way: _between(region, kept[-1:], way, steps[number + 1 : number + 2])[0])
        kept += ways[0]
    return kept


def _between(
    region: StreamRegion, before: Sequence[Step], steps: Sequence[Step], behind: Sequence[Step]
) -> tuple[Key, int]:
    """What steps cost between their neighbours if all are simulated, and how many commands they are. Neighbours of many
    parts are left out: they hardly depend on others."""
    beside = [*filter(_is_short, before), *steps, *filter(_is_short, behind)]
    trial = emitted(region.machine, beside, region.homes, UnreadConstants())
    return _simulated(region, trial), len(trial.commands)


def _is_short(step: Step) -> bool:
    return isinstance(step, Chain) or count(step.layer, step.tiling) <= LONGEST


def polished(region: StreamRegion, choices: Sequence[Sequence[LayerPlan]], steps: Sequence[Step]) -> Sequence[Step]:
    """Tries once more what each step may be, simulated between its neighbours. First each step's most promising
    alternative is tried, then the second one of each, and so on. It ends when ``POLISHED`` commands were emitted. The
    result counts only if the whole region takes less. Regions of which that would allow few tries stay as they are."""
    if sum(count(one.layer, one.tiling) for one in steps if isinstance(one, LayerPlan)) > POLISHABLE:
        return steps
    found, spent, more = steps, 0, True
    untried: dict[tuple[int, int], Iterator[Sequence[Step]]] = {}
    keys: dict[tuple[int, ...], Key] = {}  # What was simulated, by the ids of steps that all live on.

    def key(before: Sequence[Step], way: Sequence[Step], behind: Sequence[Step]) -> Key:
        nonlocal spent
        asked = tuple(map(id, (*before, *way, *behind)))
        if asked not in keys:
            keys[asked], commands = _between(region, before, way, behind)
            spent += commands
        return keys[asked]

    while more and spent <= POLISHED:
        decided, more = list[Step](), False
        for number, (begin, end) in enumerate(_stretches(found)):
            taken: Sequence[Step] = found[number : number + 1]
            other = next(untried.setdefault((begin, end), _instead(region, choices, begin, end)), None)
            more = more or other is not None
            if other is not None and other[0] is not taken[0] and spent <= POLISHED:
                before, behind = decided[-1:], found[number + 1 : number + 2]
                taken = min((taken, other), key=lambda way: key(before, way, behind))
            decided += taken
        found = decided
    whole = [emitted(region.machine, one, region.homes, UnreadConstants()) for one in (steps, found)]
    return found if _simulated(region, whole[1]) < _simulated(region, whole[0]) else steps


def _stretches(steps: Sequence[Step]) -> Iterator[tuple[int, int]]:
    """The numbers of the layers of each step, from the first up to the one behind the last."""
    end = 0
    for step in steps:
        begin, end = end, end + (len(step.links.layers) if isinstance(step, Chain) else 1)
        yield begin, end


def _instead(
    region: StreamRegion, choices: Sequence[Sequence[LayerPlan]], begin: int, end: int
) -> Iterator[Sequence[Step]]:
    """What the layers from ``begin`` up to ``end`` may be: tilings of one layer, chains of several, or one by one."""
    if end == begin + 1:
        yield from ([one] for one in choices[begin])
        return
    yield from ([chain] for _, chain in islice(chains_of(region, begin, end), TRIED))
    yield [some[0] for some in choices[begin:end]]


def _estimated(region: StreamRegion, emitter: CommandEmitter) -> Key:
    return emitter.cost().key(region.objective)


def _simulated(region: StreamRegion, emitter: CommandEmitter) -> Key:
    """What all commands cost. Without a shared bus the estimate is exact."""
    if region.machine.bus is None:
        return _estimated(region, emitter)
    total = shared(region.machine, emitter.synchronised(), region.machine.bus).total
    return Cost(total, emitter.moved).key(region.objective)


def _planned(
    machine: Machine, network: Network, alive: Sequence[ResidentRange], residents: Residents, steps: Sequence[Step]
) -> Planned:
    """Emits a region for good. Homes are laid out anew, since chains make some tensors vanish from memory and others
    live longer."""
    constants = StreamConstants(alignment=ALIGNMENT if machine.bus is None else machine.bus.word)
    homes, scratch = _homes(network, lives_beside(alive, spans(steps)), residents, constants)
    stream = emitted(machine, steps, homes, constants).synchronised()
    times = timeline(machine, stream)
    return Planned(tuple(steps), residents.addresses, stream, times, bytes(constants.data), scratch)


def refined(
    machine: Machine,
    choices: Sequence[Sequence[LayerPlan]],
    homes: Mapping[str, Home],
    objective: str,
) -> list[LayerPlan]:
    """Chooses each layer's tiling among its neighbours, from the best ones of the layer alone. The best alone need not
    be the best among others, since the next layer's loads run beside it. Layers are refined in order: behind those that
    are decided, before some layers as they are alone, and before as much work as the others have. The result counts
    only if it is no worse for the whole region."""
    first = [some[0] for some in choices]
    whole = CommandEmitter(machine, homes)
    done = [whole.work]
    for one in first:
        whole.layer(one)
        done.append(whole.work)
    emitter, decided = CommandEmitter(machine, homes), []
    for number, some in enumerate(choices):
        ahead = first[number + 1 : number + 1 + AHEAD]
        behind, rest = (work.until(whole.work) for work in (done[number + 1], done[number + 1 + len(ahead)]))
        decided.append(_best_before(emitter, some, ahead, behind, rest, objective))
        emitter.layer(decided[-1])
    return decided if emitter.cost().key(objective) <= whole.cost().key(objective) else first


def _best_before(
    emitter: CommandEmitter,
    choices: Sequence[LayerPlan],
    ahead: Sequence[LayerPlan],
    behind: Work,
    rest: Work,
    objective: str,
) -> LayerPlan:
    """The choice that costs least behind what was emitted, before the layers ``ahead`` and the ``rest`` of the work.
    ``behind`` is the work of both. A choice that costs too much if all of that is done at once is not simulated on."""
    best: tuple[Key, LayerPlan] | None = None
    for choice in choices if len(choices) > 1 else ():
        trial = emitter.copy()
        trial.layer(choice)
        if best is not None and trial.cost(behind).key(objective) >= best[0]:
            continue
        for one in ahead:
            trial.layer(one)
        key = trial.cost(rest).key(objective)
        if best is None or key < best[0]:
            best = (key, choice)
    return choices[0] if best is None else best[1]


def _homes(
    network: Network, alive: Sequence[ResidentRange], residents: Residents, constants: StreamConstants
) -> tuple[dict[str, Home], int]:
    """Lays out the tensors in memory; the result is their homes and the bytes of scratch memory. Known tensors are
    constants, those at the border have a place each, and those inside that do not stay on chip share scratch memory by
    their live ranges."""
    homes = {name: Home(0, constants.add(data)) for name, data in network.known.items()}
    homes |= {name: Home(number, 0) for number, name in enumerate((*network.inputs, *network.outputs), 1)}
    spilled = [life for life in alive if life.name not in residents.addresses and life.name not in homes]
    planned = plan([Block(life.name, life.bytes, life.first, life.last, ALIGNMENT) for life in spilled])
    number = 1 + len(network.inputs) + len(network.outputs)
    homes |= {life.name: Home(number, planned.offsets[life.name]) for life in spilled}
    return homes, planned.size


def _smallest(machine: Machine, layer: Layer, memory: str) -> int:
    """The bytes that the smallest part needs of a memory."""
    if memory == "weights":
        return min(layer.weight_bytes(range(1), range(steps)) for steps in (1, layer.steps))
    tiling = Tiling(1, 1, 1, 1, False, False)
    if memory == "sums":
        return layer.sum_bytes(typical_part(layer, tiling)) if layer.steps > 1 else 0
    return sum(input_bytes(layer, index, tiling) for index in range(len(layer.inputs))) + output_bytes(layer, tiling)


# The listing of a stream: what is where, how each layer is cut, and every command with its loops, tokens and time.

LETTERS: Final = {"load": "L", "compute": "C", "store": "S"}
MEMORIES: Final = ("activations", "weights")


def listing(planned: Planned, machine: str, region: Region) -> str:
    """Writes the whole listing; ``machine`` names the machine in a line."""
    lines = [f"; {machine}", *_summary(planned), "", *_places(planned, region), "", *_layers(planned), ""]
    layer = ""
    times = zip(planned.stream.commands, planned.stream.tokens, planned.timeline.spans, strict=True)
    for number, (command, tokens, span) in enumerate(times):
        if command.layer != layer:
            layer = command.layer
            lines.append(f"{layer}:")
        time = f"{span.begin}..{span.end}"
        lines.append(f"  {number:5} {time:>17} {_tokens(command, tokens)} {_text(command)}  ; {command.label}")
    return "\n".join(lines) + "\n"


def _summary(planned: Planned) -> Iterator[str]:
    busy = ", ".join(f"{engine} {cycles}" for engine, cycles in planned.timeline.busy.items())
    yield f"; {planned.timeline.total} cycles ({busy}), {planned.cost.bytes} bytes moved"
    yield "; columns: command, cycles, tokens awaited < and > pushed (by engine: L C S), what it does, where it stands"


def _places(planned: Planned, region: Region) -> Iterator[str]:
    named = [("constants", len(planned.constants))]
    named += [(f"input {tensor.name}", tensor.info.size) for tensor in region.inputs]
    named += [(f"output {tensor.name}", tensor.info.size) for tensor in region.outputs]
    named += [("scratch", planned.scratch)]
    for number, (name, size) in enumerate(named):
        if size:
            yield f"; place {number}: {name}, {size} bytes"
    for name, address in planned.residents.items():
        yield f"; on chip: {name} at activations+{address}"


def _layers(planned: Planned) -> Iterator[str]:
    for step in planned.steps:
        if isinstance(step, Chain):
            yield from _chain(step)
            continue
        tiling, shape = step.tiling, step.layer.shape
        pixels = f"{tiling.rows} of {shape.rows} rows, {tiling.columns} of {shape.columns} columns"
        channels = f"{tiling.blocks} of {step.layer.blocks} blocks, {tiling.steps} of {step.layer.steps} steps"
        order = "weights stay" if tiling.weights_stay else "pixels stay"
        yield f"; {step.layer.name}: {pixels}, {channels}, {order}"


def _chain(chain: Chain) -> Iterator[str]:
    made: Counter[str] = Counter()
    for rows in chain.links.bands(chain.height):
        made.update({name: len(some) for name, some in rows.items()})
    yield f"; {len(chain.links.layers)} layers in bands of {chain.height} of {chain.links.output.shape.rows} rows:"
    for layer, weights in zip(chain.links.layers, chain.weights, strict=True):
        rows_of = f"{made[layer.output]} rows for {layer.shape.rows}"
        yield f";   {layer.name}: {rows_of}, {weights.blocks} of {layer.blocks} blocks"


def _tokens(command: Command, tokens: Tokens) -> str:
    previous, following = {"load": (" ", "C"), "compute": ("L", "S"), "store": ("C", " ")}[command.engine]
    flags = [getattr(tokens, name) for name in TOKENS]
    letters = (previous, following, previous, following)
    shown = [letter if flag else "." for flag, letter in zip(flags, letters, strict=True)]
    return f"{shown[0]}{shown[1]}<{LETTERS[command.engine]}>{shown[2]}{shown[3]}"


def _text(command: Command) -> str:
    fields = command.fields
    if command.kind in ("load", "store"):
        chip = f"{MEMORIES[fields['memory']]}+{fields['address']}"
        memory = f"place {fields['place']}+{fields['offset']}"
        ends = (chip, memory) if command.kind == "load" else (memory, chip)
        return f"{command.kind} {ends[0]} <- {ends[1]}: {_runs(fields)}"
    return f"{command.kind} " + " ".join(f"{name}={value}" for name, value in fields.items() if value)


def _runs(fields: Mapping[str, int]) -> str:
    text = f"{fields['run']} bytes"
    if fields.get("coded"):
        return f"{text}, unpacked to {fields['pitch_run']}"
    for times, stride, pitch in (("runs", "stride_run", "pitch_run"), ("planes", "stride_plane", "pitch_plane")):
        if fields[times] > 1:
            text += f" x {fields[times]} (every {fields[stride]} in memory, {fields[pitch]} on chip)"
    return text
