"""From a model and accelerators to a module with regions, and the report that says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from uaccel.accelerator import Accelerator
from uaccel.floats import Fused, fuse_floats
from uaccel.model import ImportedModel, Origin
from uaccel.partition.choose import Constraints, choose, constraints_of
from uaccel.partition.claims import Claim, Claims, find_claims
from uaccel.partition.graph import Graph, graph_of
from uaccel.partition.layouts import CancelTransposes
from uaccel.partition.names import fused_names, layer_names, turned_names
from uaccel.partition.passes import changed
from uaccel.partition.regions import groups_of
from uaccel.partition.report import Decision, decisions_of, without_turns
from uaccel.partition.rewrite import EngineCall, Rewritten, fields_of, rewrite
from uaccel.partition.wishes import Wishes
from uaccel.simplify import simplify


@dataclass(frozen=True)
class Partitioned:
    """``calls`` by the name of the function that ``main`` calls; ``layer_names`` by binding, ``origins`` by layer.

    ``stands_for``: by (binding, output) of stage "partition", the (binding, output) of the one before with the same
    value. Bindings of the module have those names, too, but for ``turned``, whose axes lie in another order.
    """

    model: ImportedModel
    calls: Mapping[str, EngineCall]
    layer_names: Mapping[str, str]
    origins: Mapping[str, Origin]
    decisions: Sequence[Decision]
    accelerators: Sequence[Accelerator]
    stages: Mapping[str, Any] = field(default_factory=dict)
    stands_for: Mapping[tuple[str, int], tuple[str, int]] = field(default_factory=dict)
    turned: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Question:
    """Who shall compute what: everything that the answer depends on but does not change."""

    model: ImportedModel
    accelerators: Sequence[Accelerator]
    wishes: Wishes
    names: Mapping[str, str]
    graph: Graph
    claims: Claims
    constraints: Constraints
    stages: Mapping[str, Any]


def partition(model: ImportedModel, accelerators: Sequence[Accelerator], wishes: Wishes) -> Partitioned:
    """Claims, choice layer by layer, regions. Without accelerators the model stays as it is."""
    question = question_of(model, accelerators, wishes)
    return divided(question, preferred(question))


def preferred(question: Question) -> list[Claim]:
    """What the wishes choose layer by layer."""
    return choose(question.graph, question.claims, question.constraints, question.wishes.choose)


def question_of(model: ImportedModel, accelerators: Sequence[Accelerator], wishes: Wishes) -> Question:
    """The vendors' passes over the model, then what each accelerator could compute of it."""
    stages: dict[str, Any] = {}
    for accelerator in accelerators:
        for change in accelerator.before_partition:
            model = replace(model, module=changed(accelerator, "before_partition", change, model.module))
            model = replace(model, module=simplify(model.module))  # what the pass left unused nobody shall compute
            stages[f"before {accelerator.name}"] = model.module
    names = layer_names(model)
    graph = graph_of(model.module, names)
    claims = find_claims(graph, accelerators)
    constraints = constraints_of(graph, accelerators, wishes)
    return Question(model, accelerators, wishes, names, graph, claims, constraints, stages)


def divided(question: Question, taken: Sequence[Claim], how: str = "") -> Partitioned:
    """The model with the claims that are taken; ``how`` they were chosen, where that is not as the wishes say."""
    model, names, graph = question.model, question.names, question.graph
    accelerators, stages = question.accelerators, dict(question.stages)
    groups = groups_of(graph, taken, question.wishes.cuts)
    how = how or question.wishes.choose
    decisions = decisions_of(graph, question.claims, question.constraints, taken, groups, how)
    origins = {names[binding]: model.origins[binding] for binding in names if binding in model.origins}
    done = rewrite(graph, groups) if taken else _as_it_is(model.module, graph)
    fused = fuse_floats(done.module)
    if not taken and not fused.covers:
        return Partitioned(model, {}, names, origins, decisions, accelerators, stages, done.stands_for)
    if taken:
        stages["partition"] = done.module
    if fused.covers:
        stages["floats"] = fused.module
    turned = CancelTransposes().run(fused.module)
    stages["layouts"] = turned.module
    renamed = {**fused.origins, **{name: fused.origins.get(old, old) for name, old in turned.origins.items()}}
    final = replace(model, module=turned.module, origins=_origins(model, done.origins, renamed))
    layers = turned_names(fused.module, turned, fused_names(fused, done.layer_names))
    decisions = without_turns(_joined(decisions, fused, done.layer_names), set(layers.values()))
    others = frozenset(renamed)
    return Partitioned(final, done.calls, layers, origins, decisions, accelerators, stages, done.stands_for, others)


def _as_it_is(module: Any, graph: Graph) -> Rewritten:
    """Where no accelerator takes anything."""
    same = {key: key for var, _ in graph.bindings for key in fields_of(var)}
    return Rewritten(module, layer_names=dict(graph.names), stands_for=same)


def _joined(decisions: Sequence[Decision], fused: Fused, names: Mapping[str, str]) -> list[Decision]:
    """About the layers that are left: of several that became one, what was decided about the first."""
    by_layer = {decision.layer: decision for decision in decisions}
    last = {}
    for covers in fused.covers.values():
        layers = [names[binding] for binding in covers]
        gone = [by_layer.pop(layer) for layer in layers[:-1]]
        first = (gone or [by_layer[layers[-1]]])[0]
        last[layers[-1]] = replace(first, layer=layers[-1])
    return [last.get(decision.layer, decision) for decision in decisions if decision.layer in by_layer]


def _origins(model: ImportedModel, parts: Mapping[str, str], turned: Mapping[str, str]) -> dict[str, Origin]:
    """Where the bindings of the new module come from: those of the model, parts of claims, layout changes of either."""
    stems = {**parts, **{name: parts.get(old, old) for name, old in turned.items()}}
    known = {name: model.origins[stem] for name, stem in stems.items() if stem in model.origins}
    return {**model.origins, **known}
