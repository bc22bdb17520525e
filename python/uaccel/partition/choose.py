"""Which claims are taken: by the user's wishes first, then by preference or by cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.accelerator import Accelerator
from uaccel.basics.suggest import did_you_mean
from uaccel.basics.words import CPU
from uaccel.errors import AcceleratorError
from uaccel.partition.claims import Claim, Claims
from uaccel.partition.cost import cpu_cycles
from uaccel.partition.graph import Graph
from uaccel.partition.wishes import Subgraph, Wishes, matching


@dataclass(frozen=True)
class Constraints:
    """By binding: the engine that it is pinned to, and those that it must not run on."""

    pinned: Mapping[int, str]
    forbidden: Mapping[int, frozenset[str]]

    def allow(self, claim: Claim) -> bool:
        engine = claim.accelerator.name
        return all(
            self.pinned.get(index, engine) == engine and engine not in self.forbidden.get(index, ())
            for index in claim.members
        )


def constraints_of(graph: Graph, accelerators: Sequence[Accelerator], wishes: Wishes) -> Constraints:
    """The wishes, layer by layer; one that is about no layer or no engine is an error."""
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


def _between(graph: Graph, layers: Mapping[str, int], subgraph: Subgraph) -> set[int]:
    """All bindings on the ways from one layer to the other, both included."""
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


def choose(graph: Graph, claims: Claims, constraints: Constraints, how: str) -> list[Claim]:
    """Layer by layer: the larger saving, or the accelerators as the user named them."""
    if how == "cost":
        return take(graph, claims, constraints, lambda claim: saving(claim) > 0, lambda claim: -saving(claim))
    return in_order(graph, claims, constraints, [accelerator.name for accelerator in claims.accelerators])


def in_order(graph: Graph, claims: Claims, constraints: Constraints, engines: Sequence[str]) -> list[Claim]:
    """What the first of these accelerators can do, then the next; of one the claim that covers most, then the first
    listed. Others only where they must."""
    place = {engine: position for position, engine in enumerate(engines)}

    def rank(claim: Claim) -> tuple[int, int]:
        return place.get(claim.accelerator.name, len(place)), -len(claim.members)

    return take(graph, claims, constraints, lambda claim: claim.accelerator.name in place, rank)


def as_assigned(graph: Graph, claims: Claims, constraints: Constraints, engines: Mapping[int, str]) -> list[Claim]:
    """Each operator where ``engines`` has it, as far as that engine takes it."""

    def asked(claim: Claim) -> bool:
        return all(engines.get(i) == claim.accelerator.name for i in claim.members if graph.is_operator(i))

    return take(graph, claims, constraints, asked, lambda claim: (not asked(claim), -len(claim.members)))


def take(
    graph: Graph,
    claims: Claims,
    constraints: Constraints,
    wanted: Callable[[Claim], bool],
    rank: Callable[[Claim], Any],
) -> list[Claim]:
    """The claims that are taken, none of them sharing a binding; a pin that cannot hold is an error."""
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


def saving(claim: Claim) -> float:
    """Cycles that the CPU would take more; an accelerator that states no cost is taken to cost none."""
    return sum(cpu_cycles(call) for call in claim.region.calls) - (claim.cost or 0.0)


def _unfulfilled(graph: Graph, claims: Claims, index: int, engine: str | None) -> AcceleratorError:
    """Why a layer cannot run where it is pinned to, or on any accelerator where it is kept from the CPU."""
    refused = [entry for entry in claims.rejections.get(index, ()) if engine in (None, entry.accelerator)]
    reasons = dict.fromkeys(entry.reason if engine else f"{entry.accelerator}: {entry.reason}" for entry in refused)
    why = "; ".join(reasons) or "what it would be computed together with is pinned or kept elsewhere"
    if engine is None:
        return AcceleratorError(f"layer {graph.name(index)} is kept from the CPU, and no accelerator takes it: {why}")
    return AcceleratorError(f"layer {graph.name(index)} cannot be pinned to {engine}: {why}")
