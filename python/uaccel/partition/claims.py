"""Finds what each accelerator could compute of a model (claims), and takes claims by constraints or cost."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from uaccel import tvm_api
from uaccel.accelerator import Accelerator, Operation
from uaccel.accelerator.region import OpCall, Region, region_of
from uaccel.accelerator.vendor import vendors
from uaccel.errors import AcceleratorError, need
from uaccel.kernels.choice import ANY_CPU, Selection
from uaccel.kernels.cpu_costs import CallCosts
from uaccel.ops.exact import FLOAT32, TFLITE, rounding_of
from uaccel.ops.operator import Site, short_name
from uaccel.util import incoming
from uaccel.util.files import parse_toml
from uaccel.util.text import CPU, did_you_mean

# The graph of ``main``: which binding uses which.

RESULT = -1  # Stands for the function's result among the users of a binding.


@dataclass(frozen=True)
class BindingGraph:
    """Holds, for binding i, the bindings that it reads in ``uses[i]`` and those that read it in ``users[i]``.

    ``RESULT`` among the users is the function's result. ``names``: what layers are called, by their binding's name.
    """

    parameters: Sequence[Any]
    bindings: Sequence[tuple[Any, Any]]
    result: Any
    uses: Sequence[frozenset[int]]
    users: Sequence[frozenset[int]]
    names: Mapping[str, str]

    def name(self, index: int) -> str:
        """Returns the layer's name; what is no layer has its binding's."""
        binding = str(self.bindings[index][0].name)
        return self.names.get(binding, binding)

    def is_operator(self, index: int) -> bool:
        """Says whether a binding calls an operator; a tuple or a field of one is no work."""
        return tvm_api.is_operator_call(self.bindings[index][1])

    def operators(self, members: Iterable[int]) -> list[int]:
        """Lists the members that call operators, in order."""
        return [index for index in sorted(members) if self.is_operator(index)]

    def region_name(self, members: Iterable[int]) -> str:
        """Returns the name of the layer that these become together."""
        first, *_, last = (self.name(index) for index in self.operators(members) * 2)
        return first if first == last else f"{first}_to_{last}"

    def boundary(self, members: Iterable[int]) -> tuple[list[Any], list[Any]]:
        """Returns the variables that members read from outside, and those of their own that are read outside."""
        inside = set(members)
        bound = {self.bindings[index][0] for index in inside}
        read = [var for index in sorted(inside) for var in tvm_api.variables(self.bindings[index][1])]
        inputs = list(dict.fromkeys(var for var in read if var not in bound))
        return inputs, [self.bindings[index][0] for index in sorted(inside) if not self.users[index] <= inside]

    def closed(self, members: Iterable[int]) -> frozenset[int]:
        """Adds the fields that are taken of the members' tuples: they go where the tuple goes."""
        found = set(members)
        for index, (_, expr) in enumerate(self.bindings):
            if tvm_api.is_tuple_get_item(expr) and self.uses[index] <= found and self.uses[index]:
                found.add(index)
        return frozenset(found)


def graph_of(module: Any, names: Mapping[str, str]) -> BindingGraph:
    """Makes the graph of ``main``."""
    parameters, bindings = tvm_api.main_bindings(module)
    position = {var: index for index, (var, _) in enumerate(bindings)}
    uses = [frozenset(position[var] for var in tvm_api.variables(expr) if var in position) for _, expr in bindings]
    users: dict[int, set[int]] = defaultdict(set)
    for index, used in enumerate(uses):
        for source in used:
            users[source].add(index)
    result = tvm_api.main_result(module)
    for var in tvm_api.variables(result):
        if var in position:
            users[position[var]].add(RESULT)
    return BindingGraph(parameters, bindings, result, uses, [frozenset(users[i]) for i in range(len(bindings))], names)


# Claims: what each accelerator could compute of a model, and why not the rest.


@dataclass(frozen=True)
class Rejection:
    """States why an accelerator does not compute a layer; ``operation`` is empty where none of its patterns fits."""

    accelerator: str
    operation: str
    reason: str


@dataclass(frozen=True, eq=False)
class Claim:
    """States that an accelerator can compute these bindings together; ``root`` gives their result."""

    accelerator: Accelerator
    operation: Operation
    root: int
    members: frozenset[int]
    region: Region
    cost: float | None


@dataclass(frozen=True)
class Claims:
    """Holds all claims on a model; ``rejections`` by binding. ``costs`` tells what the CPU would take."""

    accelerators: Sequence[Accelerator]
    found: Sequence[Claim]
    rejections: dict[int, list[Rejection]]
    costs: CallCosts = field(default_factory=CallCosts)

    def cpu_cycles(self, *calls: OpCall) -> float:
        """Estimates what the CPU would take for these calls."""
        return sum(
            self.costs.of(call.name, call.op, Site(call.attrs, call.operands, call.outputs), call.macs)
            for call in calls
        )

    def saving(self, claim: Claim) -> float:
        """Returns what the CPU would take more; an accelerator that states no cost counts as 0."""
        return self.cpu_cycles(*claim.region.calls) - (claim.cost or 0.0)


def find_claims(graph: BindingGraph, accelerators: Sequence[Accelerator], selection: Selection = ANY_CPU) -> Claims:
    """Asks every operation of every accelerator about every operator call; claims may overlap."""
    found: list[Claim] = []
    rejections: dict[int, list[Rejection]] = {}
    bound = dict(graph.bindings)
    position = {expr: index for index, (_, expr) in enumerate(graph.bindings)}
    for index in filter(graph.is_operator, range(len(graph.bindings))):
        refused = rejections.setdefault(index, [])
        for accelerator in accelerators:
            answers = [
                answer
                for operation in accelerator.operations
                if (answer := _ask(graph, accelerator, operation, index, bound, position)) is not None
            ]
            found += [answer for answer in answers if isinstance(answer, Claim)]
            refused += [answer for answer in answers if isinstance(answer, Rejection)]
            if not answers:
                op = str(graph.bindings[index][1].op.name)
                refused.append(Rejection(accelerator.name, "", f"no operation for {short_name(op)}"))
    return Claims(accelerators, found, rejections, CallCosts(selection))


def _ask(
    graph: BindingGraph,
    accelerator: Accelerator,
    operation: Operation,
    index: int,
    bound: dict[Any, Any],
    position: dict[Any, int],
) -> Claim | Rejection | None:
    with vendors(accelerator.folder, f"pattern of operation '{operation.name}', tried on {graph.name(index)},"):
        calls = tvm_api.matched(operation.pattern, graph.bindings[index][1], bound)
    if calls is None:
        return None
    members = graph.closed(position[call] for call in calls if call in position)
    shared = _used_elsewhere(graph, members, index)
    if shared:
        return Rejection(accelerator.name, operation.name, shared)
    inputs, outputs = graph.boundary(members)
    if any(tvm_api.is_tuple_type(var) for var in (*inputs, *outputs)):
        return Rejection(accelerator.name, operation.name, "a tuple of tensors goes in or out of it as a whole")
    region = region_of([graph.bindings[i] for i in sorted(members)], inputs, outputs, graph.names)
    reason = _other_rounding(operation, region) or _checked(accelerator, operation, region)
    if reason is not None:
        return Rejection(accelerator.name, operation.name, reason)
    return Claim(accelerator, operation, index, members, region, _cost(accelerator, operation, region))


def _other_rounding(operation: Operation, region: Region) -> str | None:
    """Returns a reason to decline where a model rounds in another way than the operation says its output stage does."""
    wanted = [rounding_of(call.attrs) for call in region.calls]
    return next((_MEANT[rounding] for rounding in wanted if rounding not in operation.roundings), None)


_MEANT = {
    FLOAT32: "it rounds once, half to even, in single precision; the output stage rounds as TFLite does",
    TFLITE: "it rounds as TFLite does; the output stage rounds once, half to even",
}


def _checked(accelerator: Accelerator, operation: Operation, region: Region) -> str | None:
    """Asks the operation's own check, for a reason to decline or None."""
    what = f"check of operation '{operation.name}'"
    with vendors(accelerator.folder, f"{what}, asked about {region.root},"):
        reason: Any = operation.check(region)
    if reason is None or (isinstance(reason, str) and reason.strip()):
        return " ".join(reason.split()) if reason else None
    raise AcceleratorError(
        f"{accelerator.folder}: {what} answered {reason!r} about {region.root}; wanted None, or the reason why not"
    )


def _cost(accelerator: Accelerator, operation: Operation, region: Region) -> float | None:
    """Asks the operation's cost in cycles; None where it states none."""
    if operation.cost is None:
        return None
    what = f"cost of operation '{operation.name}'"
    with vendors(accelerator.folder, f"{what}, asked about {region.root},"):
        cost = float(operation.cost(region))
    if not 0 <= cost < math.inf:
        raise AcceleratorError(
            f"{accelerator.folder}: {what} of {region.root} is {cost}; wanted the device's cycles, from 0"
        )
    return cost


def _used_elsewhere(graph: BindingGraph, members: frozenset[int], root: int) -> str:
    """Returns a reason to decline where the inside of a match is used outside it: nothing would compute it there."""
    for index in sorted(members - {root}):
        outside = graph.users[index] - members
        if outside and root not in graph.uses[index]:
            return f"its part {graph.name(index)} is needed by {_worker(graph, min(outside))} as well"
    return ""


def _worker(graph: BindingGraph, user: int) -> str:
    """Names the layer that a user of a tensor stands for; tuples only hand it on."""
    while user != RESULT and not graph.is_operator(user) and graph.users[user]:
        user = min(graph.users[user])
    return "the model's output" if user == RESULT else graph.name(user)


# The user's constraints: layers pinned to an engine or kept from one, how to choose between claims. A file of them::
#
#     choose = "cost"                # or "preference": the accelerators in the order in which they are named
#     [pin]
#     conv_2d_3 = "nuc_fpga"         # a layer, or a pattern of names such as "conv_2d_*"
#     softmax_9 = "cpu"
#     [forbid]
#     "depthwise_*" = ["nuc_fpga"]
#     [[subgraph]]                   # all layers on the ways between two, both included
#     from = "conv_2d_4"
#     to = "add_7"
#     engine = "conveyor"

CHOICES: Final = ("preference", "cost")


@dataclass(frozen=True)
class Subgraph:
    """Pins all layers on the paths from one layer to another to an engine."""

    first: str
    last: str
    engine: str


@dataclass(frozen=True)
class Wishes:
    """Holds the user's constraints; ``pins`` and ``forbidden`` are pairs (layer or pattern of names, engine).

    ``cuts``: layers after which a region ends, so that a wrong region can be bisected.
    """

    choose: str = "preference"
    pins: tuple[tuple[str, str], ...] = ()
    forbidden: tuple[tuple[str, str], ...] = ()
    subgraphs: tuple[Subgraph, ...] = ()
    cuts: tuple[str, ...] = ()

    def and_also(self, choose: str, pins: Iterable[str], forbidden: Iterable[str]) -> Wishes:
        """Adds those of the command line, ``LAYER=ENGINE`` each, which come last and so win."""
        return replace(
            self,
            choose=choose or self.choose,
            pins=(*self.pins, *(_pair(text, "--pin") for text in pins)),
            forbidden=(*self.forbidden, *(_pair(text, "--forbid") for text in forbidden)),
        )


def _pair(text: str, option: str) -> tuple[str, str]:
    layer, separator, engine = text.partition("=")
    if not separator or not layer or not engine:
        raise AcceleratorError(f"{option} {text}: wanted LAYER=ENGINE, for example {option} conv_2d_3=cpu")
    return layer, engine


def read_wishes(path: Path) -> Wishes:
    """Reads a file of constraints, checked key by key."""
    with incoming.reading(AcceleratorError, path, broken="no TOML file"):
        table = parse_toml(incoming.read_text(path))
    known = ("choose", "pin", "forbid", "subgraph")
    for key in table:
        if key not in known:
            raise AcceleratorError(f"{path}: unknown key '{key}'{did_you_mean(key, known)}; known: {', '.join(known)}")
    choose = table.get("choose", "preference")
    need(choose in CHOICES, f"{path}: choose is {choose!r}; wanted {' or '.join(CHOICES)}", AcceleratorError)
    return Wishes(
        choose,
        tuple(_engines(path, "pin", table.get("pin", {}))),
        tuple(_engines(path, "forbid", table.get("forbid", {}))),
        tuple(_subgraph(path, entry) for entry in _list(path, table.get("subgraph", []))),
    )


def _engines(path: Path, section: str, table: Any) -> Iterable[tuple[str, str]]:
    if not isinstance(table, Mapping):
        raise AcceleratorError(f'{path}: [{section}] is no table; wanted lines such as conv_2d_3 = "cpu"')
    for layer, value in table.items():
        if isinstance(value, Mapping):
            raise AcceleratorError(f"{path}: [{section}.{layer}] is a table; write a name with dots in quotation marks")
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise AcceleratorError(f"{path}: [{section}] {layer} is {value!r}; wanted an engine's name")
        if section == "pin" and len(names) != 1:
            raise AcceleratorError(f"{path}: [pin] {layer} names {len(names)} engines; wanted one")
        yield from ((layer, name) for name in names)


def _list(path: Path, value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise AcceleratorError(f"{path}: subgraph is no list of tables; write [[subgraph]]")
    return value


def _subgraph(path: Path, entry: Any) -> Subgraph:
    wanted = {"from", "to", "engine"}
    if not isinstance(entry, Mapping) or set(entry) != wanted or not all(isinstance(v, str) for v in entry.values()):
        raise AcceleratorError(f'{path}: a [[subgraph]] takes from = "LAYER", to = "LAYER" and engine = "NAME"')
    return Subgraph(entry["from"], entry["to"], entry["engine"])


def matching(name_or_pattern: str, names: Sequence[str], what: str) -> list[str]:
    """Returns the layers that a name or pattern fits, one at least. A name in full means that layer alone."""
    if name_or_pattern in names:
        return [name_or_pattern]
    found = [name for name in names if fnmatchcase(name, name_or_pattern)]
    if not found:
        raise AcceleratorError(
            f"{what} '{name_or_pattern}': no layer of the model is called so{did_you_mean(name_or_pattern, names)}; "
            "'uaccel explain' lists them"
        )
    return found


# The choice: claims are taken greedily, those that pins need first, then in order of preference or saving.


@dataclass(frozen=True)
class Constraints:
    """Holds, by binding, the engine that it is pinned to, and those that it must not run on."""

    pinned: Mapping[int, str]
    forbidden: Mapping[int, frozenset[str]]

    def allow(self, claim: Claim) -> bool:
        engine = claim.accelerator.name
        return all(
            self.pinned.get(index, engine) == engine and engine not in self.forbidden.get(index, ())
            for index in claim.members
        )


def constraints_of(graph: BindingGraph, accelerators: Sequence[Accelerator], wishes: Wishes) -> Constraints:
    """Resolves the user's constraints to bindings; one that is about no layer or no engine is an error."""
    layers = {graph.name(i): i for i in range(len(graph.bindings)) if graph.is_operator(i)}
    engines = [CPU, *(accelerator.name for accelerator in accelerators)]
    pinned: dict[int, str] = {}
    forbidden: dict[int, frozenset[str]] = {}
    for subgraph in wishes.subgraphs:
        _require_engine(subgraph.engine, engines, "subgraph")
        pinned |= dict.fromkeys(_between(graph, layers, subgraph), subgraph.engine)
    for name, engine in wishes.pins:
        _require_engine(engine, engines, f"pin {name}")
        pinned |= {layers[layer]: engine for layer in matching(name, list(layers), "pin")}
    for name, engine in wishes.forbidden:
        _require_engine(engine, engines, f"forbid {name}")
        for layer in matching(name, list(layers), "forbid"):
            forbidden[layers[layer]] = forbidden.get(layers[layer], frozenset()) | {engine}
    for index, engine in pinned.items():
        if engine in forbidden.get(index, ()):
            raise AcceleratorError(f"layer {graph.name(index)} is pinned to {engine} and kept from it; take one back")
    return Constraints(pinned, forbidden)


def _require_engine(engine: str, engines: Sequence[str], what: str) -> None:
    if engine not in engines:
        raise AcceleratorError(
            f"{what}: no engine '{engine}'{did_you_mean(engine, engines)}; this compilation has: {', '.join(engines)}"
        )


def _between(graph: BindingGraph, layers: Mapping[str, int], subgraph: Subgraph) -> set[int]:
    """Returns all operators on the paths from one layer to the other, both included. They come after the first and
    before the last one: what the first reaches forwards and the last backwards."""
    ends = []
    for name in (subgraph.first, subgraph.last):
        layer, *more = matching(name, list(layers), "subgraph")
        if more:
            raise AcceleratorError(
                f"subgraph: '{name}' is {len(more) + 1} layers, {layer} and {more[0]} among them; name one"
            )
        ends.append(layers[layer])
    first, last = ends
    after = {first}
    for index in range(first + 1, last + 1):
        if graph.uses[index] & after:
            after.add(index)
    before = {last}
    for index in range(last, first - 1, -1):
        if graph.users[index] & before:
            before.add(index)
    found = after & before
    if not found:
        raise AcceleratorError(f"subgraph: no way leads from {subgraph.first} to {subgraph.last}; name them in order")
    return {index for index in found if graph.is_operator(index)}


def choose(graph: BindingGraph, claims: Claims, constraints: Constraints, how: str) -> list[Claim]:
    """Takes claims by the larger saving, or by the accelerators in the order in which the user named them."""
    if how == "cost":
        return take(
            graph, claims, constraints, lambda claim: claims.saving(claim) > 0, lambda claim: -claims.saving(claim)
        )
    return in_order(graph, claims, constraints, [accelerator.name for accelerator in claims.accelerators])


def in_order(graph: BindingGraph, claims: Claims, constraints: Constraints, engines: Sequence[str]) -> list[Claim]:
    """Takes what the first of these accelerators can do, then the next; others only where a pin needs them. An
    accelerator's larger claim comes first, then the one listed first, as sorting is stable."""
    place = {engine: position for position, engine in enumerate(engines)}

    def rank(claim: Claim) -> tuple[int, int]:
        return place.get(claim.accelerator.name, len(place)), -len(claim.members)

    return take(graph, claims, constraints, lambda claim: claim.accelerator.name in place, rank)


def as_assigned(
    graph: BindingGraph, claims: Claims, constraints: Constraints, engines: Mapping[int, str]
) -> list[Claim]:
    """Takes claims so that each operator runs where ``engines`` has it, as far as that engine accepts it."""

    def asked(claim: Claim) -> bool:
        return all(engines.get(i) == claim.accelerator.name for i in claim.members if graph.is_operator(i))

    return take(graph, claims, constraints, asked, lambda claim: (not asked(claim), -len(claim.members)))


def take(
    graph: BindingGraph,
    claims: Claims,
    constraints: Constraints,
    wanted: Callable[[Claim], bool],
    rank: Callable[[Claim], Any],
) -> list[Claim]:
    """Takes claims in order of ``rank``, none of them sharing a binding; a pin that cannot hold is an error. ``held``
    are the bindings that must not stay on the CPU: claims on them come first, whether ``wanted`` or not, so that no
    other claim takes their neighbours away."""
    allowed = sorted((claim for claim in claims.found if constraints.allow(claim)), key=rank)
    held = {index for index, engine in constraints.pinned.items() if engine != CPU}
    held |= {index for index, engines in constraints.forbidden.items() if CPU in engines}
    taken: list[Claim] = []
    covered: set[int] = set()
    for claim in [*(c for c in allowed if c.members & held), *filter(wanted, allowed)]:
        if not claim.members & covered:
            taken.append(claim)
            covered |= claim.members
    for index in sorted(held - covered):
        raise _unfulfilled(graph, claims, index, constraints.pinned.get(index))
    return sorted(taken, key=lambda claim: claim.root)


def _unfulfilled(graph: BindingGraph, claims: Claims, index: int, engine: str | None) -> AcceleratorError:
    """Explains why a layer cannot run where it is pinned, or on any accelerator where it is kept from the CPU."""
    refused = [entry for entry in claims.rejections.get(index, ()) if engine in (None, entry.accelerator)]
    reasons = dict.fromkeys(entry.reason if engine else f"{entry.accelerator}: {entry.reason}" for entry in refused)
    why = "; ".join(reasons) or "what it would be computed together with is pinned or kept elsewhere"
    if engine is None:
        return AcceleratorError(f"layer {graph.name(index)} is kept from the CPU, and no accelerator takes it: {why}")
    return AcceleratorError(f"layer {graph.name(index)} cannot be pinned to {engine}: {why}")
