"""Partitions a model: claims, choice, regions, fusion and layouts; and reports why each layer went where it did."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from uaccel.accelerator import Accelerator
from uaccel.accelerator.region import OpCall, op_call
from uaccel.frontend import quantising
from uaccel.kernels.choice import ANY_CPU, Selection
from uaccel.model import ImportedModel, Origin
from uaccel.ops import operator as operators
from uaccel.partition import claims as claiming
from uaccel.partition import regions as cutting
from uaccel.partition.passes.float_fusion import Fused, fuse_floats
from uaccel.partition.passes.layout import CancelTransposes
from uaccel.partition.passes.simplify import simplify
from uaccel.partition.regions import layer_names
from uaccel.tvm_api import is_constant, is_operator_call, is_tuple_type, main_bindings
from uaccel.util.text import CPU, named

# Decisions: for each operator of the model which engine computes it and why, why others do not, and what it costs.

PLAN: Final = "plan"  # How claims were chosen: as the cheapest of several whole partitions.
TURNED: Final = "no layer: those around it take its order of axes, or change the order themselves"


@dataclass(frozen=True)
class Decision:
    """Describes the decision about one operator call. Costs are estimates in cycles, None where none is stated."""

    layer: str
    op: str
    output: str
    engine: str
    reason: str
    region: str
    macs: int
    bytes_moved: int
    cycles: float | None
    cpu_cycles: float
    rejections: tuple[claiming.Rejection, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.layer,
            **named(self, "op", "output", "engine", "reason"),
            "region": self.region or None,
            "macs": self.macs,
            "bytes": self.bytes_moved,
            "cycles": self.cycles,
            "cpu_cycles": self.cpu_cycles,
            "rejections": [
                {"accelerator": r.accelerator, "operation": r.operation or None, "reason": r.reason}
                for r in self.rejections
            ],
        }


def decisions_of(
    graph: claiming.BindingGraph,
    claims: claiming.Claims,
    constraints: claiming.Constraints,
    taken: Sequence[claiming.Claim],
    groups: Sequence[cutting.Group],
    how: str,
) -> list[Decision]:
    """Makes the decisions, in the order of the model."""
    engine = {index: claim for claim in taken for index in claim.members}
    regions = {index: group for group in groups for index in group.members if group.claims}
    found = []
    for index in filter(graph.is_operator, range(len(graph.bindings))):
        call = op_call(*graph.bindings[index], graph.bindings, graph.names)
        claim = engine.get(index)
        rejections = [*claims.rejections.get(index, ())]
        rejections += _passed_over(index, claims, claim, constraints, how)
        found.append(
            Decision(
                call.name,
                call.op,
                str(call.output),
                claim.accelerator.name if claim else CPU,
                _why(call, claim, constraints.pinned.get(index), rejections, bool(claims.accelerators)),
                _region_name(graph, regions.get(index)),
                call.macs,
                _moved(call),
                _cycles(claim, index),
                claims.cpu_cycles(call),
                tuple(rejections),
            )
        )
    return found


def without_turns(decisions: Sequence[Decision], left: Collection[str]) -> list[Decision]:
    """Marks transpositions that are no layers any more, and so move nothing; ``left`` are the names of layers."""
    return [
        replace(decision, reason=TURNED, bytes_moved=0, cpu_cycles=0.0, rejections=())
        if decision.op == operators.PERMUTE and decision.engine == CPU and decision.layer not in left
        else decision
        for decision in decisions
    ]


def _moved(call: OpCall) -> int:
    return sum(operand.info.size for operand in call.operands) + sum(info.size for info in call.outputs)


def _cycles(claim: claiming.Claim | None, index: int) -> float | None:
    """Returns an operator's share of its claim's cost: the root bears all of it."""
    if claim is None or claim.cost is None:
        return None
    return claim.cost if claim.root == index else 0.0


def _region_name(graph: claiming.BindingGraph, group: cutting.Group | None) -> str:
    """Returns the name of a region of several layers, else nothing."""
    members = graph.operators(group.members) if group is not None else []
    return graph.region_name(members) if len(members) > 1 else ""


def _passed_over(
    index: int, claims: claiming.Claims, taken: claiming.Claim | None, constraints: claiming.Constraints, how: str
) -> list[claiming.Rejection]:
    """Lists claims that could have been taken, and why they were not."""
    found = []
    for claim in claims.found:
        if index not in claim.members or claim is taken:
            continue
        if not constraints.allow(claim):
            reason = "the user pinned it elsewhere or keeps it from this engine"
        elif how == "cost" and claims.saving(claim) <= 0:
            own = claims.cpu_cycles(*claim.region.calls)
            reason = f"the CPU is estimated to be faster ({own:,.0f} cycles against {claim.cost or 0:,.0f})"
        elif taken is not None and taken.accelerator is claim.accelerator:
            continue
        elif how == PLAN:
            reason = f"the whole is estimated to be cheaper with {taken.accelerator.name if taken else 'the CPU'} here"
        elif taken is None:
            reason = "another layer of the same claim runs elsewhere"
        elif how == "cost":
            reason = f"{taken.accelerator.name} saves more cycles"
        else:
            reason = f"{taken.accelerator.name} is preferred to it"
        found.append(claiming.Rejection(claim.accelerator.name, claim.operation.name, reason))
    return found


def _why(
    call: OpCall,
    claim: claiming.Claim | None,
    pinned: str | None,
    rejections: Sequence[claiming.Rejection],
    asked: bool,
) -> str:
    if claim is not None:
        how = "pinned to it" if pinned else "it accepts the layer"
        return f"operation '{claim.operation.name}' of {claim.accelerator.name}: {how}"
    if pinned:
        return "pinned to the CPU"
    if not asked:
        return "no accelerator was asked"
    return "; ".join(dict.fromkeys(f"{r.accelerator}: {r.reason}" for r in rejections))


# The partition: from a model and accelerators to a module with regions.


@dataclass(frozen=True)
class Partitioned:
    """Holds a partitioned model: ``calls`` by the name of the function that ``main`` calls, names and origins.

    ``layer_names`` is by binding, ``origins`` by layer. ``stands_for``: by (binding, output) of stage "partition", the
    (binding, output) of the stage before with the same value. The module's bindings have those names, too, except for
    ``turned``, whose axes lie in another order.
    """

    model: ImportedModel
    calls: Mapping[str, cutting.EngineCall]
    layer_names: Mapping[str, str]
    origins: Mapping[str, Origin]
    decisions: Sequence[Decision]
    accelerators: Sequence[Accelerator]
    stages: Mapping[str, Any] = field(default_factory=dict)
    stands_for: Mapping[tuple[str, int], tuple[str, int]] = field(default_factory=dict)
    turned: frozenset[str] = frozenset()


@dataclass(frozen=True)
class PartitionRequest:
    """Holds all that a partition depends on, whichever claims are then taken."""

    model: ImportedModel
    accelerators: Sequence[Accelerator]
    wishes: claiming.Wishes
    names: Mapping[str, str]
    graph: claiming.BindingGraph
    claims: claiming.Claims
    constraints: claiming.Constraints
    stages: Mapping[str, Any]


def partition(model: ImportedModel, accelerators: Sequence[Accelerator], wishes: claiming.Wishes) -> Partitioned:
    """Partitions a model layer by layer. Without accelerators only its float layers and layouts may change."""
    question = question_of(model, accelerators, wishes)
    return divided(question, preferred(question))


def preferred(question: PartitionRequest) -> list[claiming.Claim]:
    """Takes claims layer by layer, as the user's constraints say."""
    return claiming.choose(question.graph, question.claims, question.constraints, question.wishes.choose)


def question_of(
    model: ImportedModel,
    accelerators: Sequence[Accelerator],
    wishes: claiming.Wishes,
    selection: Selection = ANY_CPU,
) -> PartitionRequest:
    """Runs the vendors' passes over the model, then finds what each accelerator could compute of it."""
    stages: dict[str, Any] = {}
    for accelerator in accelerators:
        for change in accelerator.before_partition:
            model = replace(model, module=cutting.run_pass(accelerator, "before_partition", change, model.module))
            model = replace(model, module=simplify(model.module))  # Drops what the pass left unused.
            stages[f"before {accelerator.name}"] = model.module
    names = layer_names(model)
    graph = claiming.graph_of(model.module, names)
    claims = claiming.find_claims(graph, accelerators, selection)
    constraints = claiming.constraints_of(graph, accelerators, wishes)
    return PartitionRequest(model, accelerators, wishes, names, graph, claims, constraints, stages)


def divided(question: PartitionRequest, taken: Sequence[claiming.Claim], how: str = "") -> Partitioned:
    """Cuts the taken claims out of the model; ``how``: how they were chosen, if not as the constraints say. Regions
    come first, since float fusion and layouts are for what is left to the CPU."""
    model, names, graph = question.model, question.names, question.graph
    accelerators, stages = question.accelerators, dict(question.stages)
    groups = cutting.groups_of(graph, taken, question.wishes.cuts)
    how = how or question.wishes.choose
    decisions = decisions_of(graph, question.claims, question.constraints, taken, groups, how)
    origins = {names[binding]: model.origins[binding] for binding in names if binding in model.origins}
    done = cutting.rewrite(graph, groups) if taken else _as_it_is(model.module, graph)
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
    layers = cutting.turned_names(fused.module, turned, cutting.fused_names(fused, done.layer_names))
    decisions = without_turns(_joined(decisions, fused, done.layer_names), set(layers.values()))
    others = frozenset(renamed)
    return Partitioned(final, done.calls, layers, origins, decisions, accelerators, stages, done.stands_for, others)


def _as_it_is(module: Any, graph: claiming.BindingGraph) -> cutting.Rewritten:
    """Returns the module unchanged, where no accelerator takes anything."""
    same = {key: key for var, _ in graph.bindings for key in cutting.fields_of(var)}
    return cutting.Rewritten(module, layer_names=dict(graph.names), stands_for=same)


def _joined(decisions: Sequence[Decision], fused: Fused, names: Mapping[str, str]) -> list[Decision]:
    """Keeps decisions about the layers that are left: of several fused to one, what was decided about the first."""
    by_layer = {decision.layer: decision for decision in decisions}
    last = {}
    for covers in fused.covers.values():
        layers = [names[binding] for binding in covers]
        gone = [by_layer.pop(layer) for layer in layers[:-1]]
        first = (gone or [by_layer[layers[-1]]])[0]
        last[layers[-1]] = replace(first, layer=layers[-1])
    return [last.get(decision.layer, decision) for decision in decisions if decision.layer in by_layer]


def _origins(model: ImportedModel, parts: Mapping[str, str], turned: Mapping[str, str]) -> dict[str, Origin]:
    """Finds the origins of the new module's bindings: the model's, parts of claims, layout changes of either."""
    stems = {**parts, **{name: parts.get(old, old) for name, old in turned.items()}}
    known = {name: model.origins[stem] for name, stem in stems.items() if stem in model.origins}
    return {**model.origins, **known}


# Advice for models that compute in float: how much of the model does, and what quantising would save.

SMALL = ("int8", "uint8", "int16", "uint16")


def float_advice(model: ImportedModel) -> tuple[str, ...]:
    """Returns one sentence, or none for a model that only quantises its inputs and dequantises its outputs. The module
    must hold operators alone, before any of them are a region."""
    calls = [expr for _, expr in main_bindings(model.module)[1] if is_operator_call(expr)]
    macs = [(operators.macs_of(call), _is_float(call)) for call in calls if not is_tuple_type(call)]
    total = sum(count for count, _ in macs)
    floating = sum(count for count, is_float in macs if is_float)
    weights = {constant: operators.info_of(constant).size for call in calls for constant in _float_weights(call)}
    size = sum(weights.values())
    if not floating and not size:
        return ()
    work = f"{_share(floating, total)} multiply-accumulates are in float" if floating else "it computes in float"
    if model.source_format != "tflite" and any(map(_is_quantised, calls)):
        return (f"{work} though the model is quantised: its steps leave them out, or a warning says why they are",)
    weights_take = f"{size // 4:,} bytes of flash, and what kernels pad, instead of {size:,}"
    saving = f"its float weights would take {weights_take}" if size else "it would compute in integers"
    return (f"{work}; quantised to int8, {saving}: {quantising(model.source_format)}",)


def _is_float(call: Any) -> bool:
    """Says whether its result is floats that no small integers were multiplied for."""
    multiplies = operators.macs_of(call) and _is_quantised(call)
    return operators.infos_of(call)[0].dtype in operators.FLOATS and not multiplies


def _is_quantised(call: Any) -> bool:
    """Says whether it takes, gives or multiplies by small integers; constant tables of trees do not count."""
    if operators.operator_of(call) is None:
        return False
    given = [
        argument
        for argument in operators.tensor_arguments(call.args)
        if operators.macs_of(call) or not is_constant(argument)
    ]
    return any(info.dtype in SMALL for info in (*operators.infos_of(call), *map(operators.info_of, given)))


def _float_weights(call: Any) -> Iterator[Any]:
    """Yields float constants of more than one number that quantising would shrink; scales stay as they are."""
    own = operators.operator_of(call) is not None and not (_is_float(call) and operators.macs_of(call))
    if not own and operators.name_of(call) not in (operators.QUANTIZE, operators.DEQUANTIZE):
        for argument in operators.tensor_arguments(call.args):
            if is_constant(argument):
                info = operators.info_of(argument)
                if info.dtype in operators.FLOATS and info.elements > 1:
                    yield argument


def _share(part: int, total: int) -> str:
    return f"all {total:,}" if part == total else f"{part:,} of {total:,}"
