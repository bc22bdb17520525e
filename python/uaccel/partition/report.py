"""For each operator of the model: who computes it and why, who does not and why not, and what it takes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from uaccel.accelerator.region import OpCall, op_call
from uaccel.basics.words import CPU
from uaccel.ops.traits import PERMUTE
from uaccel.partition.choose import Constraints, saving
from uaccel.partition.claims import Claim, Claims, Rejection
from uaccel.partition.cost import cpu_cycles
from uaccel.partition.graph import Graph
from uaccel.partition.regions import Group

PLAN: Final = "plan"
"""How claims were taken that belong to the cheapest of several plans."""
TURNED: Final = "no layer: those around it take its order of axes, or change the order themselves"


@dataclass(frozen=True)
class Decision:
    """About one operator call. Costs are estimates in cycles, None where nobody states one."""

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
    rejections: tuple[Rejection, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.layer,
            "op": self.op,
            "output": self.output,
            "engine": self.engine,
            "reason": self.reason,
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
    graph: Graph, claims: Claims, constraints: Constraints, taken: Sequence[Claim], groups: Sequence[Group], how: str
) -> list[Decision]:
    """In the order of the model."""
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
                cpu_cycles(call),
                tuple(rejections),
            )
        )
    return found


def without_turns(decisions: Sequence[Decision], left: Collection[str]) -> list[Decision]:
    """Transpositions of the model that are no layers any more move nothing; ``left`` are the names of layers."""
    return [
        replace(decision, reason=TURNED, bytes_moved=0, cpu_cycles=0.0, rejections=())
        if decision.op == PERMUTE and decision.engine == CPU and decision.layer not in left
        else decision
        for decision in decisions
    ]


def _moved(call: OpCall) -> int:
    return sum(operand.info.size for operand in call.operands) + sum(info.size for info in call.outputs)


def _cycles(claim: Claim | None, index: int) -> float | None:
    """Of a claim over several operators its root bears all."""
    if claim is None or claim.cost is None:
        return None
    return claim.cost if claim.root == index else 0.0


def _region_name(graph: Graph, group: Group | None) -> str:
    """Of a region of several layers."""
    members = graph.operators(group.members) if group is not None else []
    return graph.region_name(members) if len(members) > 1 else ""


def _passed_over(
    index: int, claims: Claims, taken: Claim | None, constraints: Constraints, how: str
) -> list[Rejection]:
    """Claims that could have been taken, and why they were not."""
    found = []
    for claim in claims.found:
        if index not in claim.members or claim is taken:
            continue
        if not constraints.allow(claim):
            reason = "the user pinned it elsewhere or keeps it from this engine"
        elif how == "cost" and saving(claim) <= 0:
            reason = f"the CPU is estimated to be faster ({_estimate(claim)})"
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
        found.append(Rejection(claim.accelerator.name, claim.operation.name, reason))
    return found


def _estimate(claim: Claim) -> str:
    own = sum(cpu_cycles(call) for call in claim.region.calls)
    return f"{own:,.0f} cycles against {claim.cost or 0:,.0f}"


def _why(call: OpCall, claim: Claim | None, pinned: str | None, rejections: Sequence[Rejection], asked: bool) -> str:
    if claim is not None:
        how = "pinned to it" if pinned else "it accepts the layer"
        return f"operation '{claim.operation.name}' of {claim.accelerator.name}: {how}"
    if pinned:
        return "pinned to the CPU"
    if not asked:
        return "no accelerator was asked"
    return "; ".join(dict.fromkeys(f"{r.accelerator}: {r.reason}" for r in rejections))
