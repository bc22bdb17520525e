"""What a compilation and a run tell: the JSON of section "report" in docs/cli.md, built in one place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from uaccel.emit.metadata import io_bytes
from uaccel.lower.program import Layer
from uaccel.pipeline import Compiled

TIR_VARIANT = "tir"


def compile_report(compiled: Compiled) -> dict[str, Any]:
    """What is known without building: sizes that only a linker knows are null."""
    program, signature = compiled.program, compiled.model.signature
    return {
        "model": compiled.model.name,
        "name": program.name,
        "board": compiled.board,
        "accelerators": [],
        "inputs": {spec.name: spec.to_json() for spec in signature.inputs},
        "outputs": {spec.name: spec.to_json() for spec in signature.outputs},
        "layers": [layer_report(layer, None) for layer in program.layers],
        "ram": ram_report(compiled, static=None, stack=None, session=None),
        "flash": flash_report(compiled, code=None, session=None),
        "offloaded": [],
        "fallback": fallback_report(compiled),
        "warnings": list(compiled.model.warnings),
    }


class Accounted(Protocol):
    """What accelerators did for a layer in one inference."""

    @property
    def calls(self) -> int: ...
    @property
    def cycles(self) -> int: ...


class Taken(Protocol):
    """What a layer took on the board; None where that could not be measured."""

    @property
    def seconds(self) -> float | None: ...
    @property
    def instructions(self) -> int | None: ...


CPU: Final = "cpu"


def work_report(engine: str, view: bool, runs: int | None, account: Accounted | None) -> dict[str, Any]:
    """``calls``: how often the engine was called in ``runs`` inferences, by accelerators' drivers as they say; a view
    is never called. ``cycles``: those that an accelerator took in one."""
    if runs is None:
        return {"calls": None, "cycles": None}
    once = account.calls if account else 0 if view or engine != CPU else 1
    return {"calls": runs * once, "cycles": account.cycles if account else 0}


def layer_report(
    layer: Layer, runs: int | None, taken: Taken | None = None, account: Accounted | None = None
) -> dict[str, Any]:
    work = work_report(layer.engine, layer.is_view, runs, account)
    return {
        "name": layer.name,
        "op": layer.op,
        "engine": layer.engine,
        "reason": layer.reason,
        "operator": layer.origin.index,
        "tensor": layer.origin.tensor,
        "macs": layer.macs,
        "outputs": [list(value.info.shape) for value in layer.outputs],
        "calls": work["calls"],
        "instructions": taken.instructions if taken else None,
        "cycles": work["cycles"],
        "seconds": taken.seconds if taken else None,
    }


def fallback_report(compiled: Compiled) -> list[dict[str, str]]:
    """The layers that no kernel of ours computes."""
    return [
        {"layer": layer.name, "op": layer.op, "reason": layer.reason}
        for layer in compiled.program.layers
        if layer.kernel.variant == TIR_VARIANT
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
