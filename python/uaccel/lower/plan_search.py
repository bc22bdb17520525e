"""Searches the partition that is estimated to take least: whole plans are partitioned, lowered and compared.

A plan assigns each operator to the CPU or to an accelerator. Costs of lowered layers are estimated, or measured where
``uaccel tune`` recorded them. They also suggest which further plans are worth lowering.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, Final

from uaccel.errors import AcceleratorError
from uaccel.kernels import RankedSelector, Records, RecordsSelector, Turn, Work
from uaccel.kernels.choice import INSTRUCTIONS, Selection
from uaccel.kernels.cpu_costs import Costs
from uaccel.lower.accelerator_layer import Known
from uaccel.lower.from_relax import lower
from uaccel.lower.program import Layer, Program
from uaccel.partition import Partitioned, PartitionRequest, divided
from uaccel.partition.claims import Claim, as_assigned, choose, in_order
from uaccel.partition.partition import PLAN
from uaccel.util.text import CPU

# What a lowered layer is expected to take: of the CPU in instructions, of an accelerator in cycles.

# Instructions of a driver call that states none: a register interface with an interrupt, as nuc_fpga's, measured under
# QEMU.
DRIVER_CALL: Final = 1000.0
OFF: Final = 0.15  # The share by which an estimate may miss a measurement before it is reported.


@dataclass(frozen=True)
class Estimate:
    """Holds what something takes: ``instructions`` of the CPU, ``cycles`` of an accelerator."""

    instructions: float = 0.0
    cycles: float = 0.0

    @property
    def total(self) -> float:
        return self.instructions + self.cycles

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.instructions + other.instructions, self.cycles + other.cycles)


@dataclass(frozen=True)
class Off:
    """Names a layer whose measurement is known and far from the estimate."""

    layer: str
    estimate: float
    measured: int


class Estimator:
    """Estimates what layers take on a CPU; a measurement counts for more than any rule."""

    def __init__(self, selection: Selection) -> None:
        self.costs = Costs.on(selection.target, INSTRUCTIONS)
        chosen = selection.selector
        self.records = chosen.records.counted() if isinstance(chosen, RecordsSelector) else Records("")

    def of(self, layer: Layer) -> Estimate:
        """What a layer takes: measured where it was, else by rule. An accelerator's cycles are always by rule."""
        measured, rule = self.measured(layer), self.by_rule(layer)
        if measured is None:
            return rule
        return Estimate(max(0.0, measured - rule.cycles), rule.cycles) if layer.on_accelerator else Estimate(measured)

    def measured(self, layer: Layer) -> int | None:
        """Instructions and cycles together, as ``uaccel tune`` recorded them; None without a record."""
        choice = layer.choice
        return self.records.sites.get(choice.site, {}).get(choice.options[choice.picked]) if choice else None

    def by_rule(self, layer: Layer) -> Estimate:
        if layer.on_accelerator:
            said = layer.instructions
            return Estimate(DRIVER_CALL * len(layer.kernel.calls) if said is None else said, layer.cycles)
        elements = sum(value.info.elements for value in layer.outputs)
        read = sum(value.info.size for value in layer.inputs)
        return Estimate(self.costs.of_layer(layer.op, layer.kernel, Work(layer.macs, elements), read))


def far_off(program: Program, selection: Selection) -> Iterable[Off]:
    """Layers whose estimate misses what was measured."""
    estimator = Estimator(selection)
    for layer in program.layers:
        measured, estimate = estimator.measured(layer), estimator.by_rule(layer).total
        if measured is not None and abs(estimate - measured) > OFF * measured:
            yield Off(layer.name, estimate, measured)


# The search: plans that users would think of, then what their layers' costs suggest, each lowered for real.
#
# Lowering is slow where an accelerator plans command streams, so a plan is lowered only if sums of known layer costs
# promise a gain. These sums are rough: regions and the moves between engines change with the plan. So only the total of
# the lowered plan decides, and against the doubt in the CPU's estimates.

MOST: Final = 12  # When so many plans are known, no further changes are tried.
SWITCH: Final = 1500.0  # The assumed cost of a change of engine, for plans that are not lowered yet.
# The share by which the CPU's estimates may be wrong: a plan that nobody asked for by name must be cheaper by more than
# this share of all CPU work in which it differs.
DOUBT: Final = 1 / 3
SMALL: Final = 200.0  # Further doubt for each layer that it gives the CPU: small layers are mostly overhead.
WORTH: Final = 0.01  # The share of the whole that a change must promise to be lowered.


@dataclass(frozen=True)
class PartitionPlan:
    """Holds a plan that was compared. ``estimate`` is None where it was not lowered, for the reason in ``refused``.

    ``same``: other names whose plans assign alike.
    """

    name: str
    estimate: Estimate | None
    refused: str = ""
    chosen: bool = False
    same: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        known = self.estimate
        return {
            "name": self.name,
            "same": list(self.same),
            "instructions": None if known is None else round(known.instructions),
            "cycles": None if known is None else round(known.cycles),
            "total": None if known is None else round(known.total),
            "chosen": self.chosen,
            "refused": self.refused or None,
        }


def kept_on_cpu(plans: Sequence[PartitionPlan]) -> str:
    """Says why the chosen plan offloads nothing; empty where no other plan was lowered that offloads."""
    chosen = next((plan.estimate for plan in plans if plan.chosen), None)
    if chosen is None:
        return ""
    others = [(plan.estimate.total, plan.name) for plan in plans if plan.estimate is not None and not plan.chosen]
    dearer = [other for other in others if other[0] >= chosen.total]
    if not dearer:
        return ""
    total, name = min(dearer)
    return (
        f"nothing is offloaded: the CPU alone is estimated as cheapest, with {chosen.total:,.0f} instructions; "
        f"with {name} it would be {total:,.0f} instructions and cycles, {total - chosen.total:,.0f} more"
    )


@dataclass(frozen=True)
class Plans:
    """Holds the best partition and all plans that were compared. ``known``: what regions were lowered to on the way."""

    best: Partitioned
    compared: tuple[PartitionPlan, ...]
    known: Known


def cheapest(question: PartitionRequest, selection: Selection) -> Plans:
    """The partition that is estimated to take least; the user's pins and prohibitions hold in every plan."""
    search = _Search(question, selection)
    best = search.run()
    plans = [
        PartitionPlan(
            tried.name, None if tried.refused else tried.estimate, tried.refused, tried is best, tuple(tried.same)
        )
        for tried in search.tried.values()
    ]
    return Plans(best.partitioned, tuple(plans), search.known)


@dataclass(frozen=True, eq=False)
class _Tried:
    """Holds a plan that was partitioned and lowered, or the reason in ``refused`` why it was not."""

    name: str
    partitioned: Partitioned
    layers: Sequence[tuple[Layer, Estimate]]
    refused: str = ""
    estimate: Estimate = field(default_factory=Estimate)
    same: list[str] = field(default_factory=list)

    @property
    def total(self) -> float:
        return self.estimate.total

    def cpu_work(self) -> dict[tuple[str, str], float]:
        """Instructions by layer and the functions that compute it."""
        return {
            (layer.name, "+".join(call.function for call in layer.kernel.calls)): cost.instructions
            for layer, cost in self.layers
            if not layer.on_accelerator
        }


class _Search:
    """Searches the best plan. ``tried`` has every plan by its claims; ``alone`` those with one engine only."""

    def __init__(self, question: PartitionRequest, selection: Selection) -> None:
        self.question = question
        measuring = isinstance(selection.selector, (RankedSelector, Turn))  # which must not change who computes what
        self.selection = Selection.on(selection.target, selection.favour) if measuring else selection
        self.estimator = Estimator(self.selection)
        self.known: Known = {}
        self.tried: dict[frozenset[Claim], _Tried] = {}
        self.alone: dict[str, _Tried] = {}
        self.operators = question.graph.operators(range(len(question.graph.bindings)))
        self.names = [question.graph.name(index) for index in self.operators]

    def run(self) -> _Tried:
        """The best plan. The plans that a user would ask for by name come first and compete without doubt. Then come
        the choice by stated cost, other orders of preference, a blend of the layers' best engines, and last changes of
        single runs of layers."""
        names = [accelerator.name for accelerator in self.question.accelerators]
        plain = [self._try(", ".join(names), self._ordered(names)), *(self._alone(name) for name in (*names, CPU))]
        possible = [tried for tried in plain if not tried.refused]
        if not possible:
            raise AcceleratorError(plain[0].refused)
        best = min(possible, key=lambda tried: tried.total)
        best = self._tempted(best, "layer by layer", choose(*self._asked, "cost"))
        for order in _orders(names):
            best = self._tempted(best, ", ".join(order), self._ordered(order))
        best = self._tempted(best, "mixed", self._assigned(_blended(self._offers(best))))
        return self._improved(best)

    def _tempted(self, best: _Tried, name: str, taken: Sequence[Claim]) -> _Tried:
        """The better one of the best plan and this one, which is lowered only where its layers promise a gain."""
        key = frozenset(taken)
        engine = {index: claim.accelerator.name for claim in taken for index in claim.members}
        wanted = [engine.get(index, CPU) for index in self.operators]
        now, then = 0.0, 0.0
        for offer, old, new in zip(self._offers(best), self._engines(best), wanted, strict=True):
            now += offer[old]
            then += offer.get(new, offer[old])
        if key in self.tried or then < now - WORTH * best.total:
            return self._better(best, self._try(name, taken))
        self.tried[key] = _Tried(name, best.partitioned, (), "its layers promise no gain")
        return best

    def _alone(self, name: str) -> _Tried:
        self.alone[name] = self._try(name, self._ordered([name]))
        return self.alone[name]

    def _ordered(self, engines: Sequence[str]) -> list[Claim]:
        return in_order(*self._asked, engines)

    def _assigned(self, engines: Sequence[str]) -> list[Claim]:
        return as_assigned(*self._asked, dict(zip(self.operators, engines, strict=True)))

    def _engines(self, tried: _Tried) -> list[str]:
        """The engine of each of the model's operators, in their order. What a plan has joined to another operator of
        the CPU has no decision of its own."""
        engine = {decision.layer: decision.engine for decision in tried.partitioned.decisions}
        return [engine.get(name, CPU) for name in self.names]

    @property
    def _asked(self) -> tuple[Any, Any, Any]:
        return self.question.graph, self.question.claims, self.question.constraints

    def _try(self, name: str, taken: Sequence[Claim]) -> _Tried:
        """Partitions and lowers a plan; one that comes up again is not lowered again."""
        key = frozenset(taken)
        if key not in self.tried:
            self.tried[key] = self._lowered(name, taken)
        elif ";" not in name and name not in (self.tried[key].name, *self.tried[key].same):
            self.tried[key].same.append(name)
        return self.tried[key]

    def _lowered(self, name: str, taken: Sequence[Claim]) -> _Tried:
        partitioned = divided(self.question, taken, PLAN)
        try:
            program = lower(partitioned, "plan", selection=self.selection, known=self.known)
        except AcceleratorError as error:
            if error.__cause__ is not None:
                raise  # the vendor's function failed; it did not refuse
            return _Tried(name, partitioned, (), str(error))
        layers = [(layer, self.estimator.of(layer)) for layer in program.layers]
        return _Tried(name, partitioned, layers, "", sum((cost for _, cost in layers), Estimate()))

    def _better(self, best: _Tried, other: _Tried) -> _Tried:
        """The other plan where it is cheaper beyond doubt. Layers that the CPU computes alike in both plans are wrong
        by the same amount; only the others raise doubt."""
        if other.refused or other is best:
            return best
        ours, theirs = best.cpu_work(), other.cpu_work()
        fewer = [ours[key] for key in ours.keys() - theirs.keys()]
        more = [theirs[key] for key in theirs.keys() - ours.keys()]
        doubt = DOUBT * sum(fewer + more) + SMALL * sum(instructions > 0 for instructions in more)
        return other if other.total < best.total - doubt else best

    def _improved(self, best: _Tried) -> _Tried:
        """Moves runs of layers to another engine, the one that promises most first, until MOST plans are known. After
        each move the promises are computed anew, from the best plan so far."""
        seen: set[tuple[str, ...]] = set()
        while len(self.tried) < MOST:
            moves = [move for move in self._moves(best) if move not in seen]
            if not moves:
                break
            seen.add(moves[0])
            name = f"{best.name}; {self._told(self._engines(best), moves[0])}"
            best = self._better(best, self._try(name, self._assigned(moves[0])))
        return best

    def _told(self, before: Sequence[str], after: Sequence[str]) -> str:
        """Names the run of layers that changed its engine."""
        changed = [number for number, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
        first, last = self.names[changed[0]], self.names[changed[-1]]
        return f"{first if first == last else f'{first} to {last}'} on {after[changed[0]]}"

    def _moves(self, best: _Tried) -> list[tuple[str, ...]]:
        """Assignments that differ from the best in one run of layers, those that promise most first."""
        offers, now = self._offers(best), self._engines(best)
        found: list[tuple[float, tuple[str, ...]]] = []
        for engine in self.alone:
            gains = [
                offer[now[i]] - offer[engine] if engine in offer and engine != now[i] else None
                for i, offer in enumerate(offers)
            ]
            for first, last, gain in _runs(gains):
                if gain > WORTH * best.total:
                    found.append((gain, (*now[:first], *[engine] * (last - first), *now[last:])))
        return [move for _, move in sorted(found, key=lambda entry: -entry[0])]

    def _offers(self, best: _Tried) -> list[dict[str, float]]:
        """What each operator costs on each engine: from the plans with one engine alone, and from the best plan. The
        best plan comes last: what it shows of an operator on its engine counts for more."""
        offers: list[dict[str, float]] = [{} for _ in self.names]
        for engine, tried in [*self.alone.items(), ("", best)]:
            if tried.refused:
                continue
            costs = _by_operator(tried)
            for offer, name, used in zip(offers, self.names, self._engines(tried), strict=True):
                if not engine or used == engine:
                    offer[used] = costs.get(name, 0.0)
        return offers


def _by_operator(tried: _Tried) -> dict[str, float]:
    """The cost of each operator. A region's cost is divided in proportion to the cycles that its operations state. A
    layer that partitioning added is charged to the operator that it stems from."""
    stated = {decision.layer: decision.cycles or 0.0 for decision in tried.partitioned.decisions}
    origins = {origin.index: layer for layer, origin in tried.partitioned.origins.items() if origin.index >= 0}
    costs: dict[str, float] = {}
    for layer, cost in tried.layers:
        names = [covered.name for covered in layer.covers] or [
            layer.name if layer.name in stated else origins.get(layer.origin.index, layer.name)
        ]
        weights = [stated.get(name, 0.0) for name in names]
        weights = weights if sum(weights) > 0 else [1.0] * len(names)
        for name, weight in zip(names, weights, strict=True):
            costs[name] = costs.get(name, 0.0) + cost.total * weight / sum(weights)
    return costs


def _orders(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Other orders of preference: of two names the swapped one, of more each name but the first moved to the front."""
    if len(names) == 2:
        return list(permutations(names))[1:]
    return [(name, *(other for other in names if other != name)) for name in names[1:]]


def _blended(offers: Sequence[Mapping[str, float]]) -> list[str]:
    """The engines, one an operator in the model's order, that cost least if each change of engine costs ``SWITCH``.
    Dynamic programming: ``ways`` has for each engine the cheapest way so far that ends on it."""
    engines = list(dict.fromkeys(engine for offer in offers for engine in offer))
    ways: dict[str, tuple[float, tuple[str, ...]]] = dict.fromkeys(engines, (0.0, ()))
    for offer in offers:
        free = offer.get(CPU) == 0.0  # a view goes where its neighbours go
        reached = {}
        for engine in engines if free else offer:
            before, (cost, way) = min(ways.items(), key=lambda entry: entry[1][0] + SWITCH * (entry[0] != engine))
            paid = cost + SWITCH * (before != engine) + (0.0 if free else offer[engine])
            reached[engine] = (paid, (*way, engine))
        ways = reached
    return list(min(ways.values(), key=lambda entry: entry[0])[1])


def _runs(gains: Sequence[float | None]) -> list[tuple[int, int, float]]:
    """The runs of neighbours that each lose nothing: the first, the one behind the last, and the sum of their gains."""
    found: list[tuple[int, int, float]] = []
    first, total = 0, 0.0
    for number, gain in enumerate([*gains, None]):
        if gain is not None and gain >= 0:
            total += gain
        else:
            if number > first:
                found.append((first, number, total))
            first, total = number + 1, 0.0
    return found
