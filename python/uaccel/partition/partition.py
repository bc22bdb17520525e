"""From a model and accelerators to a module with regions, and the report that says why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from uaccel.accelerator import Accelerator
from uaccel.errors import AcceleratorError
from uaccel.model import ImportedModel
from uaccel.partition.choose import choose, constraints_of
from uaccel.partition.claims import find_claims
from uaccel.partition.graph import graph_of
from uaccel.partition.layouts import CancelTransposes
from uaccel.partition.regions import groups_of
from uaccel.partition.report import Decision, decisions_of
from uaccel.partition.rewrite import EngineCall, rewrite
from uaccel.partition.wishes import Wishes
from uaccel.tvm_api import same_type


@dataclass(frozen=True)
class Partitioned:
    """``calls`` by the name of the function that ``main`` calls; ``layer_names`` by binding."""

    model: ImportedModel
    calls: Mapping[str, EngineCall]
    layer_names: Mapping[str, str]
    decisions: Sequence[Decision]
    accelerators: Sequence[Accelerator]
    stages: Mapping[str, Any] = field(default_factory=dict)


def partition(model: ImportedModel, accelerators: Sequence[Accelerator], wishes: Wishes) -> Partitioned:
    """Claims, choice, regions. Without accelerators the model stays as it is."""
    stages: dict[str, Any] = {}
    module = model.module
    for accelerator in accelerators:
        for change in accelerator.before_partition:
            module = _changed(accelerator, change, module)
            stages[f"before {accelerator.name}"] = module
    graph = graph_of(module)
    claims = find_claims(graph, accelerators)
    constraints = constraints_of(graph, accelerators, wishes)
    taken = choose(graph, claims, constraints, wishes.choose)
    groups = groups_of(graph, taken)
    decisions = decisions_of(graph, claims, constraints, taken, groups, wishes.choose)
    if not taken:
        return Partitioned(replace(model, module=module), {}, {}, decisions, accelerators, stages)
    done = rewrite(graph, groups)
    stages["partition"] = done.module
    changed = CancelTransposes().run(done.module)
    stages["layouts"] = changed.module
    origins = dict(model.origins)
    for name, old in (*done.origins.items(), *changed.origins.items()):
        stem = done.origins.get(old, old)
        if stem in model.origins:
            origins[name] = model.origins[stem]
    final = replace(model, module=changed.module, origins=origins)
    return Partitioned(final, done.calls, done.layer_names, decisions, accelerators, stages)


def _changed(accelerator: Accelerator, change: Callable[[Any], Any], module: Any) -> Any:
    """A vendor's pass over the whole model before anybody claims."""
    name = getattr(change, "name", getattr(change, "__name__", type(change).__name__))
    changed = change(module)
    if not same_type(changed["main"], module["main"]):
        raise AcceleratorError(
            f"{accelerator.folder}: pass '{name}' changed the type of the model to {changed['main'].ty}; "
            "a pass keeps inputs and outputs"
        )
    return changed
