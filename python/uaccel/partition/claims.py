"""What each accelerator could compute of a model, and what not, for which reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.accelerator import Accelerator, Operation
from uaccel.accelerator.region import Region, region_of
from uaccel.accelerator.vendor import vendors
from uaccel.errors import AcceleratorError
from uaccel.ops.base import short_name
from uaccel.ops.rounding import FLOAT32, TFLITE, rounding_of
from uaccel.partition.graph import RESULT, Graph
from uaccel.tvm_api import is_tuple_type, matched


@dataclass(frozen=True)
class Rejection:
    """Why an accelerator does not compute a layer; ``operation`` is empty where none of its patterns fits."""

    accelerator: str
    operation: str
    reason: str


@dataclass(frozen=True, eq=False)
class Claim:
    """An accelerator can compute these bindings together; ``root`` gives their result."""

    accelerator: Accelerator
    operation: Operation
    root: int
    members: frozenset[int]
    region: Region
    cost: float | None


@dataclass(frozen=True)
class Claims:
    """All of a model; ``rejections`` by binding."""

    accelerators: Sequence[Accelerator]
    found: Sequence[Claim]
    rejections: dict[int, list[Rejection]]


def find_claims(graph: Graph, accelerators: Sequence[Accelerator]) -> Claims:
    """Ask every operation of every accelerator about every operator call."""
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
    return Claims(accelerators, found, rejections)


def _ask(
    graph: Graph,
    accelerator: Accelerator,
    operation: Operation,
    index: int,
    bound: dict[Any, Any],
    position: dict[Any, int],
) -> Claim | Rejection | None:
    with vendors(accelerator.folder, f"pattern of operation '{operation.name}', tried on {graph.name(index)},"):
        calls = matched(operation.pattern, graph.bindings[index][1], bound)
    if calls is None:
        return None
    members = graph.closed(position[call] for call in calls if call in position)
    shared = _used_elsewhere(graph, members, index)
    if shared:
        return Rejection(accelerator.name, operation.name, shared)
    inputs, outputs = graph.boundary(members)
    if any(is_tuple_type(var) for var in (*inputs, *outputs)):
        return Rejection(accelerator.name, operation.name, "a tuple of tensors goes in or out of it as a whole")
    region = region_of([graph.bindings[i] for i in sorted(members)], inputs, outputs, graph.names)
    reason = _other_rounding(operation, region) or _checked(accelerator, operation, region)
    if reason is not None:
        return Rejection(accelerator.name, operation.name, reason)
    return Claim(accelerator, operation, index, members, region, _cost(accelerator, operation, region))


def _other_rounding(operation: Operation, region: Region) -> str | None:
    """What the accelerator need not know of: models that round in another way than its output stage."""
    wanted = [rounding_of(call.attrs) for call in region.calls]
    return next((_MEANT[rounding] for rounding in wanted if rounding not in operation.roundings), None)


_MEANT = {
    FLOAT32: "it rounds once, half to even, in single precision; the output stage rounds as TFLite does",
    TFLITE: "it rounds as TFLite does; the output stage rounds once, half to even",
}


def _checked(accelerator: Accelerator, operation: Operation, region: Region) -> str | None:
    """The accelerator's own word."""
    what = f"check of operation '{operation.name}'"
    with vendors(accelerator.folder, f"{what}, asked about {region.root},"):
        reason: Any = operation.check(region)
    if reason is None or (isinstance(reason, str) and reason.strip()):
        return " ".join(reason.split()) if reason else None
    raise AcceleratorError(
        f"{accelerator.folder}: {what} answered {reason!r} about {region.root}; wanted None, or the reason why not"
    )


def _cost(accelerator: Accelerator, operation: Operation, region: Region) -> float | None:
    """In cycles, None where the accelerator states none."""
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


def _used_elsewhere(graph: Graph, members: frozenset[int], root: int) -> str:
    """What is inside of a match must not be wanted outside: nobody would compute it."""
    for index in sorted(members - {root}):
        outside = graph.users[index] - members
        if outside and root not in graph.uses[index]:
            return f"its part {graph.name(index)} is needed by {_worker(graph, min(outside))} as well"
    return ""


def _worker(graph: Graph, user: int) -> str:
    """The layer that a user of a tensor stands for: what is no work only hands it on."""
    while user != RESULT and not graph.is_operator(user) and graph.users[user]:
        user = min(graph.users[user])
    return "the model's output" if user == RESULT else graph.name(user)
