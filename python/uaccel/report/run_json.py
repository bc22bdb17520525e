"""Makes the figures of a run as plain data: rows of layers, memories, tensors. See docs/reference/json.md."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from uaccel.build.project import Footprint
from uaccel.report.latency import Facts, engine_cycles
from uaccel.session.description import Account, LayerTime
from uaccel.session.monitor import EngineJob
from uaccel.util.text import CPU

SCHEMA: Final = 1  # Version of a run's JSON; it rises when a field changes its meaning.
VIEW_FAMILY, TIR_FAMILY = "view", "tir"
VIEWS: Final = frozenset({"reshape", "expand_dims", "squeeze", "flatten"})  # Operators that are no work anywhere.
# Figures of a whole region, which stand in its first row.
_OF_ALL_TOGETHER: Final = ("instructions", "cycles_estimated", "core_cycles", "waited", "cycles", "latency", "seconds")


def layer_reports(
    layers: Sequence[Facts],
    runs: int | None,
    times: Mapping[int, LayerTime],
    accounts: Mapping[int, Account],
    jobs: Mapping[int, Sequence[EngineJob]],
) -> list[dict[str, Any]]:
    """Makes a row for each operator of the model, and for each layer that the compiler added.

    A region that an accelerator computes as a whole has one row for each operator. They share the driver's calls in
    equal parts; the region's time and cycles stand in the first row, and ``engine_cycles`` tells each one's part of the
    cycles where the device's model does. ``runs`` is None if nothing ran; ``jobs`` are those of each layer.
    """
    return [
        row
        for layer in layers
        for row in _layer_rows(layer, runs, times.get(layer["index"]), accounts.get(layer["index"]), jobs)
    ]


def _layer_rows(
    layer: Facts,
    runs: int | None,
    taken: LayerTime | None,
    account: Account | None,
    jobs: Mapping[int, Sequence[EngineJob]],
) -> list[dict[str, Any]]:
    """The row of a layer, or the rows of a region."""
    row = _layer_row(layer, runs, taken, account)
    parts = None if account is None else engine_cycles(layer, account, jobs.get(layer["index"], ()))
    covers = layer["covers"]
    if len(covers) < 2:
        return [row]
    rows = []
    working = sum(covered["op"] not in VIEWS for covered in covers)
    each = None if row["calls"] is None else row["calls"] // max(1, working)
    for position, covered in enumerate(covers):
        own = {key: covered[key] for key in ("name", "op", "operator", "tensor", "macs")}
        own |= {"region": layer["name"], "outputs": [covered["shape"]]}
        own |= {"calls": 0 if each is not None and covered["op"] in VIEWS else each}
        shared = {} if position == 0 else dict.fromkeys(_OF_ALL_TOGETHER)
        part = {"engine_cycles": None} if parts is None else _part(row, parts[covered["name"]], starts=position == 0)
        rows.append(row | own | shared | part)
    return rows


def _part(region: Mapping[str, Any], engine: int, *, starts: bool) -> dict[str, Any]:
    """An operator's part of a region; the one that ``starts`` it has what the CPU took for all."""
    if region["latency"] is None:
        return {"engine_cycles": engine, "latency": None}
    return {"engine_cycles": engine, "latency": engine + (region["latency"] - region["cycles"] if starts else 0)}


def _layer_row(layer: Facts, runs: int | None, taken: LayerTime | None, account: Account | None) -> dict[str, Any]:
    device = account.cycles if account else 0
    cpu = taken.alone(device) if taken else None
    return {
        "name": layer["name"],
        "op": layer["op"],
        "engine": layer["engine"],
        "reason": layer["reason"],
        "region": None,
        "operator": layer["operator"],
        "tensor": layer["tensor"],
        "macs": layer["macs"],
        "outputs": [output["shape"] for output in layer["outputs"]],
        "calls": None if runs is None else runs * _calls(layer, account),
        "instructions": taken.instructions if taken else None,
        "cycles_estimated": taken.cycles_estimated if taken else None,
        "core_cycles": taken.core_cycles if taken else None,
        "waited": taken.waited.to_json() if taken and taken.waited else None,
        "cycles": None if runs is None else device,
        "engine_cycles": None if runs is None else device,
        "latency": None if cpu is None else cpu + device,
        "fallbacks": None if runs is None else account.fallbacks if account else 0,
        "seconds": taken.seconds if taken else None,
    }


def _calls(layer: Facts, account: Account | None) -> int:
    """Calls of the engine in one inference, for accelerators as their drivers count them; a view has none."""
    if account is not None:
        return account.calls
    return int(layer["engine"] == CPU and layer["variant"] != VIEW_FAMILY)


class EstimatedCycles(Protocol):
    """States the estimated cycles of one inference, and whose timings they are based on."""

    def to_json(self) -> dict[str, Any]: ...


def cycles_report(estimated: EstimatedCycles | None) -> dict[str, Any]:
    """The estimated cycles; null if no emulated board counted instructions."""
    return {"cycles_estimated": None, "cycles_estimated_by": None} if estimated is None else estimated.to_json()


def offloaded_report(layers: Sequence[Facts]) -> list[dict[str, str]]:
    """The model's operators that accelerators compute."""
    return [
        {"layer": covered["name"], "op": covered["op"], "engine": layer["engine"], "reason": covered["reason"]}
        for layer in layers
        if layer["engine"] != CPU
        for covered in layer["covers"]
    ]


def fallback_report(layers: Sequence[Facts]) -> list[dict[str, str]]:
    """The layers without a kernel, which TIR computes; and the layers that no accelerator takes, if any was asked."""
    return [
        {
            "layer": layer["name"],
            "op": layer["op"],
            "reason": layer["reason"] if layer["variant"] == TIR_FAMILY else layer["refused"],
        }
        for layer in layers
        if layer["variant"] == TIR_FAMILY or layer["refused"]
    ]


def stood_in(rows: Sequence[Mapping[str, Any]], runs: int) -> list[str]:
    """A sentence for each accelerator that failed, so that the CPU computed its layers: a user must not overlook it."""
    sentences = []
    for engine in dict.fromkeys(row["engine"] for row in rows if row["fallbacks"]):
        failed = [row for row in rows if row["engine"] == engine and row["fallbacks"]]
        times = max(row["fallbacks"] for row in failed)
        names = ", ".join(row["name"] for row in failed)
        sentences.append(f"{engine} failed in {times} of {runs} runs, and the CPU computed in its place: {names}")
    return sentences


def memory_report(
    arena: int,
    lower_bound: int,
    bounds: str,
    io: int,
    taken: Footprint | None,
    *,
    stack: int | None,
    state: int | None = None,
    copied: int = 0,
) -> dict[str, Any]:
    """The RAM that a model takes, by parts.

    ``stack`` is as measured; the call graph's bound for it stands beside, if there is one. ``bounds`` says in words
    which execution the lower bound is about. ``state`` is the part of a stateful model that lasts between inferences,
    ``copied`` the constants that start-up copies into RAM.
    """
    static = taken.static if taken else None
    lasting = {} if state is None else {"state": state}
    lasting |= {"constants": copied} if copied else {}
    return lasting | {
        "arena": arena,
        "arena_lower_bound": lower_bound,
        "arena_bounds": bounds,
        "io": io,
        "static": static,
        "stack": stack,
        "stack_static": taken.stack if taken else None,
        "session": taken.session.ram if taken else None,
        "total": _sum(arena, io, static, stack, copied),
    }


def ram_with(compiled: Mapping[str, Any], taken: Footprint | None, *, stack: int | None) -> dict[str, Any]:
    """The RAM as a compilation reported it, with what a run adds to it."""
    pools = {"pools": compiled["pools"]} if "pools" in compiled else {}
    arena, bound, bounds = (compiled[name] for name in ("arena", "arena_lower_bound", "arena_bounds"))
    state, copied = compiled.get("state"), compiled.get("constants", 0)
    io = compiled["io"]
    return pools | memory_report(arena, bound, bounds, io, taken, stack=stack, state=state, copied=copied)


def flash_report(weights: int, taken: Footprint | None, pools: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The flash that a model takes. ``pools``: bytes of constants in each memory that they are divided among."""
    code = taken.code if taken else None
    divided: dict[str, Any] = {"pools": dict(pools)} if pools else {}
    return divided | {
        "weights": weights,
        "code": code,
        "startup": taken.startup if taken else None,
        "session": taken.session.flash if taken else None,
        "total": _sum(weights, code),
    }


def symbols_report(taken: Footprint | None) -> dict[str, list[dict[str, Any]] | None]:
    """Symbols in flash and RAM, the largest first; None if there is no linker's map."""
    linked = taken.linked if taken else None
    return {
        memory: None if linked is None else [asdict(row) for row in rows]
        for memory, rows in (("flash", linked.flash if linked else ()), ("ram", linked.ram if linked else ()))
    }


def with_code(rows: list[dict[str, Any]], taken: Footprint | None) -> list[dict[str, Any]]:
    """The rows with the size of each layer's own code; a region's stands in its first row."""
    sizes = dict(taken.layers) if taken else {}
    return [row | {"code": sizes.pop(row["region"] or row["name"], None)} for row in rows]


def _sum(*parts: int | None) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def tensors_report(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Tensors as plain data; ``data`` is flat, in C order."""
    return {
        name: {"shape": list(array.shape), "dtype": str(array.dtype), "data": _numbers(array)}
        for name, array in arrays.items()
    }


def _numbers(array: NDArray[Any]) -> list[Any]:
    if array.dtype.kind != "f":
        return array.ravel().tolist()
    return [json_number(value) for value in array.astype(np.float64).ravel().tolist()]


def json_number(value: float | int | str) -> float | int | str:
    """A number for JSON, which has no infinities and no NaN: those become text."""
    return value if isinstance(value, str) or math.isfinite(value) else str(value)


def batched(samples: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Several runs' values of one tensor: joined along the batch axis if that is 1, else along a new one."""
    if len(samples) == 1:
        return samples[0]
    if samples[0].ndim and samples[0].shape[0] == 1:
        return np.concatenate(samples)
    return np.stack(samples)
