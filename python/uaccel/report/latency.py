"""Tells how long one inference takes, and puts what it takes into parts of one timeline, so that they add up.

An accelerator's cycles count as cycles of the CPU's clock. The CPU waits while an accelerator works: an emulated board
runs one after the other, and what a driver does meanwhile on a real one counts as waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from uaccel.session.description import Account, LayerTime
from uaccel.session.monitor import MOVERS, CommandSpan, EngineJob
from uaccel.util.text import CPU

Facts = Mapping[str, Any]  # Facts about a layer, as ``metadata.json`` has them.
UNCOUNTED: Final = "this board counts no cycles; run on an emulated board"


def jobs_by_layer(
    layers: Sequence[Facts], accounts: Mapping[int, Account], jobs: Sequence[EngineJob]
) -> dict[int, list[EngineJob]]:
    """Gives each layer of the first inference its jobs. ``jobs`` are those of all inferences, in order.

    Each device's jobs are a queue. A layer takes jobs from it until they have lasted as long as the driver says that
    the layer took. Where a device told of none, the layer has one job of that length."""
    queues: dict[str, deque[EngineJob]] = {}
    for job in jobs:
        queues.setdefault(job.device, deque()).append(job)
    return {
        layer["index"]: list(_jobs_of(layer, accounts[layer["index"]], queues.get(layer["engine"], deque())))
        for layer in layers
        if layer["index"] in accounts
    }


def _jobs_of(layer: Facts, account: Account, queue: deque[EngineJob]) -> Iterator[EngineJob]:
    left = account.cycles
    if not queue:
        yield EngineJob(layer["engine"], 0, left, ())
        return
    while queue and left > 0:
        job = queue.popleft()
        left -= job.cycles
        yield job


# What an accelerator did at each time: each stretch belongs to one command, so that commands add up.


def _stretches(job: EngineJob) -> Iterator[tuple[CommandSpan, bool, int]]:
    """Cuts a job where commands begin or end; yields whose each stretch is, whether it is waiting for data, its cycles.

    A stretch belongs to the command that computes, else to one that moves data, else to the one that comes next, whose
    fetching or memory the device waits for.
    """
    spans = sorted(job.spans, key=lambda span: (span.begin, span.end))
    edges = sorted({job.begin, job.end, *(edge for span in spans for edge in (span.begin, span.end))})
    active: list[CommandSpan] = []
    at, last = 0, spans[0]
    for begin, end in pairwise(edges):
        active = [span for span in active if span.end > begin]
        while at < len(spans) and spans[at].begin <= begin:
            active += [spans[at]] if spans[at].end > begin else []
            at += 1
        computing = next((span for span in active if span.engine not in MOVERS), None)
        last = computing or next(iter(active), spans[at] if at < len(spans) else last)
        yield last, computing is None and bool(active), end - begin


def copying(jobs: Mapping[int, Sequence[EngineJob]]) -> int | None:
    """Cycles in which accelerators move data and compute nothing; None where a device does not tell of its engines."""
    every = [job for found in jobs.values() for job in found]
    if not every or not all(job.spans for job in every):
        return None
    return sum(cycles for job in every for _, moves, cycles in _stretches(job) if moves)


def engine_cycles(layer: Facts, account: Account, jobs: Sequence[EngineJob]) -> dict[str, int] | None:
    """Cycles of the accelerator for each operator of a region; None where its device does not tell.

    The first word of a command's label is its operator's name."""
    names, labels = [covered["name"] for covered in layer["covers"]], layer.get("commands") or ()
    if len(names) < 2:
        return dict.fromkeys(names, account.cycles)
    found = dict.fromkeys(names, 0)
    for job in jobs:
        if not job.spans or max(span.command for span in job.spans) >= len(labels):
            return None
        for span, _, cycles in _stretches(job):
            owner = labels[span.command].partition(" ")[0].rstrip(":")
            if owner not in found:
                return None
            found[owner] += cycles
    return found if sum(found.values()) == account.cycles else None


# The latency of an inference, and its parts.


def latency(
    told: Mapping[str, Any],
    layers: Sequence[Facts],
    times: Mapping[int, LayerTime],
    accounts: Mapping[int, Account],
    jobs: Mapping[int, Sequence[EngineJob]],
    hz: int | None,
    *,
    measured: bool,
) -> dict[str, Any]:
    """Returns the figure as plain data. ``told`` is the report of the run, and ``hz`` the clock of its CPU.
    ``measured``: seconds are those of a board, not of this computer."""
    device = told["accelerator_cycles"] or 0
    seconds = told["seconds"] if measured else None
    total, estimated, counted = told.get("cycles"), False, True
    if total is None and told.get("cycles_estimated") is not None:
        total, estimated = told["cycles_estimated"] + device, True
    elif total is None:
        total, counted = None if seconds is None or not hz else round(seconds * hz), False
    parts = None
    if total is not None and (counted or not device):
        parts = _parts(total, device, _drivers(layers, times, accounts), copying(jobs))
    why = (told.get("cycles_estimated_by") or {}).get("missing") or UNCOUNTED
    return {
        "cycles": total,
        "ms": 1e3 * total / hz if total is not None and hz else None if seconds is None else 1e3 * seconds,
        "hz": hz,
        "estimated": estimated if total is not None or seconds is not None else None,
        "parts": parts,
        "missing": why if total is None and seconds is None else None,
        "cpu_alone": None,
    }


def with_cpu_alone(found: Mapping[str, Any], graph: Mapping[str, Any]) -> dict[str, Any]:
    """Adds an estimate of what the CPU would take alone, where the CPU's own part is one and layers were offloaded."""
    offloaded = [layer.get("cpu_cycles") for layer in graph.get("layers", ()) if layer["engine"] != CPU]
    known = found["estimated"] and found["parts"] and offloaded and None not in offloaded
    return {**found, "cpu_alone": found["parts"]["cpu"] + sum(offloaded) if known else None}


def _drivers(layers: Sequence[Facts], times: Mapping[int, LayerTime], accounts: Mapping[int, Account]) -> int | None:
    """Cycles of the CPU for layers of accelerators, without those in which it waits; None where any is unknown."""
    total = 0
    for index in (layer["index"] for layer in layers if layer["engine"] != CPU):
        taken = times[index].alone(accounts[index].cycles if index in accounts else 0) if index in times else None
        if taken is None:
            return None
        total += taken
    return total


def _parts(total: int, device: int, drivers: int | None, copies: int | None) -> dict[str, int]:
    """The parts, as far as they can be told apart; the CPU's own is what the others leave."""
    waiting = min(device, total)
    found = {} if drivers is None else {"start": min(drivers, total - waiting)}
    if copies is not None:
        found["copies"] = min(copies, waiting)
    found["waiting"] = waiting - found.get("copies", 0)
    return {"cpu": total - sum(found.values()), **found}
