"""What a compilation and a run tell: the JSON of section "report" in docs/cli.md, built in one place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from uaccel.emit.metadata import io_bytes
from uaccel.lower.program import Layer, Program
from uaccel.ops.base import short_name
from uaccel.pipeline import Compiled

TIR_VARIANT = "tir"


def compile_report(compiled: Compiled) -> dict[str, Any]:
    """What is known without building: sizes that only a linker knows are null."""
    program, signature = compiled.program, compiled.model.signature
    return {
        "model": compiled.model.name,
        "name": program.name,
        "board": compiled.board,
        "accelerators": [accelerator.name for accelerator in compiled.accelerators],
        "inputs": {spec.name: spec.to_json() for spec in signature.inputs},
        "outputs": {spec.name: spec.to_json() for spec in signature.outputs},
        "layers": layer_reports(program, None, {}, {}),
        "ram": ram_report(compiled, static=None, stack=None, session=None),
        "flash": flash_report(compiled, code=None, session=None),
        "offloaded": offloaded_report(compiled),
        "fallback": fallback_report(compiled),
        "warnings": list(compiled.model.warnings),
    }


class Accounted(Protocol):
    """What accelerators did for a layer in one inference."""

    @property
    def calls(self) -> int: ...
    @property
    def cycles(self) -> int: ...
    @property
    def fallbacks(self) -> int: ...


class Taken(Protocol):
    """What a layer took on the board; None where that could not be measured."""

    @property
    def seconds(self) -> float | None: ...
    @property
    def instructions(self) -> int | None: ...


CPU: Final = "cpu"
VIEWS: Final = frozenset({"reshape", "expand_dims", "squeeze", "flatten"})
"""What is no work, wherever it runs."""


def work_report(engine: str, view: bool, runs: int | None, account: Accounted | None) -> dict[str, Any]:
    """``calls``: how often the engine was called in ``runs`` inferences, by accelerators' drivers as they say; a view
    is never called. ``cycles``: those that an accelerator took in one."""
    if runs is None:
        return {"calls": None, "cycles": None}
    once = account.calls if account else 0 if view or engine != CPU else 1
    return {"calls": runs * once, "cycles": account.cycles if account else 0}


def layer_reports(
    program: Program, runs: int | None, times: Mapping[int, Taken], accounts: Mapping[int, Accounted]
) -> list[dict[str, Any]]:
    """A row for each operator of the model, and for each layer that the compiler added.

    What an accelerator computes together has one row for each operator. The calls that its driver counted are theirs
    in equal parts; what all of them took stands in the first row.
    """
    return [
        row
        for layer in program.layers
        for row in layer_rows(layer, runs, times.get(layer.index), accounts.get(layer.index))
    ]


def layer_rows(layer: Layer, runs: int | None, taken: Taken | None, account: Accounted | None) -> list[dict[str, Any]]:
    """One row, or those of a region."""
    row = layer_report(layer, runs, taken, account)
    if len(layer.covers) < 2:
        return [row]
    rows = []
    working = sum(covered.op not in VIEWS for covered in layer.covers)
    each = None if row["calls"] is None else row["calls"] // max(1, working)
    for position, covered in enumerate(layer.covers):
        own = {
            "calls": 0 if each is not None and covered.op in VIEWS else each,
            "name": covered.name,
            "op": covered.op,
            "region": layer.name,
            "operator": covered.origin.index,
            "tensor": covered.origin.tensor,
            "macs": covered.macs,
            "outputs": [list(covered.output.shape)],
        }
        shared = {} if position == 0 else {"instructions": None, "cycles": None, "seconds": None}
        rows.append(row | own | shared)
    return rows


def layer_report(
    layer: Layer, runs: int | None, taken: Taken | None = None, account: Accounted | None = None
) -> dict[str, Any]:
    work = work_report(layer.engine, layer.is_view, runs, account)
    return {
        "name": layer.name,
        "op": layer.op,
        "engine": layer.engine,
        "reason": layer.reason,
        "region": None,
        "operator": layer.origin.index,
        "tensor": layer.origin.tensor,
        "macs": layer.macs,
        "outputs": [list(value.info.shape) for value in layer.outputs],
        "calls": work["calls"],
        "instructions": taken.instructions if taken else None,
        "cycles": work["cycles"],
        "fallbacks": None if runs is None else account.fallbacks if account else 0,
        "seconds": taken.seconds if taken else None,
    }


def offloaded_report(compiled: Compiled) -> list[dict[str, str]]:
    """The model's operators that accelerators compute."""
    return [
        {"layer": decision.layer, "op": short_name(decision.op), "engine": decision.engine, "reason": decision.reason}
        for decision in compiled.partitioned.decisions
        if decision.engine != CPU
    ]


def fallback_report(compiled: Compiled) -> list[dict[str, str]]:
    """What no kernel of ours computes; and, where accelerators were asked, what none of them takes."""
    rows = [
        {"layer": layer.name, "op": layer.op, "reason": layer.reason}
        for layer in compiled.program.layers
        if layer.kernel.variant == TIR_VARIANT
    ]
    if not compiled.accelerators:
        return rows
    there = {row["layer"] for row in rows}
    return rows + [
        {"layer": decision.layer, "op": short_name(decision.op), "reason": decision.reason}
        for decision in compiled.partitioned.decisions
        if decision.engine == CPU and decision.layer not in there
    ]


def ram_report(
    compiled: Compiled, *, static: int | None, stack: int | None, session: int | None
) -> dict[str, int | None]:
    placement = compiled.placement
    io = io_bytes(compiled.program)
    return {
        "arena": placement.arena,
        "arena_lower_bound": placement.plan.lower_bound,
        "io": io,
        "static": static,
        "stack": stack,
        "session": session,
        "total": _sum(placement.arena, io, static, stack),
    }


def flash_report(compiled: Compiled, *, code: int | None, session: int | None) -> dict[str, int | None]:
    weights = compiled.generated.weight_bytes
    return {"weights": weights, "code": code, "session": session, "total": _sum(weights, code)}


def _sum(*parts: int | None) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def tensors_report(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """``data`` is flat, in C order."""
    return {
        name: {"shape": list(array.shape), "dtype": str(array.dtype), "data": _numbers(array)}
        for name, array in arrays.items()
    }


def _numbers(array: NDArray[Any]) -> list[Any]:
    if array.dtype.kind != "f":
        return array.ravel().tolist()
    return [json_number(value) for value in array.astype(np.float64).ravel().tolist()]


def json_number(value: float | int) -> float | int | str:
    """JSON has no word for infinities and what is not a number: those become text."""
    return value if math.isfinite(value) else str(value)


def batched(samples: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Several runs' values of one tensor: along the batch axis where that is 1, else along a new one."""
    if len(samples) == 1:
        return samples[0]
    if samples[0].ndim and samples[0].shape[0] == 1:
        return np.concatenate(samples)
    return np.stack(samples)
