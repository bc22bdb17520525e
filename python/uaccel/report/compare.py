"""Several runs side by side: what differs first, then layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from uaccel.report.header import summary
from uaccel.report.run import Run
from uaccel.report.section import Section
from uaccel.report.words import count, seconds, size

MOST_LAYERS: Final = 400
Number = Callable[[Run], "float | None"]


def _of(*keys: str) -> Number:
    def found(run: Run) -> float | None:
        value: Any = run.data
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, (int, float)) else None

    return found


def _measured(run: Run) -> float | None:
    """An emulator's own seconds mean nothing."""
    return None if run.section("target").get("emulated") else run.data.get("seconds")


FIGURES: Final[tuple[tuple[str, Number, Callable[[float | None], str]], ...]] = (
    ("CPU cycles, estimated", _of("cycles_estimated"), count),
    ("CPU instructions", _of("instructions"), count),
    ("Accelerator cycles", _of("accelerator_cycles"), count),
    ("Seconds, measured", _measured, seconds),
    ("Flash: all", _of("flash", "total"), size),
    ("Flash: weights", _of("flash", "weights"), size),
    ("Flash: code", _of("flash", "code"), size),
    ("RAM: all", _of("ram", "total"), size),
    ("RAM: arena", _of("ram", "arena"), size),
    ("RAM: inputs and outputs", _of("ram", "io"), size),
    ("RAM: static data", _of("ram", "static"), size),
    ("RAM: stack", _of("ram", "stack"), size),
    ("Products", lambda run: sum(step.macs for step in run.steps), count),
    ("Layers", lambda run: len(run.data["layers"]), count),
    ("Layers on accelerators", lambda run: len(run.data.get("offloaded", ())), count),
)


def sections(runs: Sequence[Run]) -> list[Section]:
    """``runs`` have labels of their own; all are held against the first."""
    figures = [_figure(name, [number(run) for run in runs], words) for name, number, words in FIGURES]
    known = [figure for figure in figures if figure["known"]]
    differing = sorted((f for f in known if f["differs"]), key=lambda figure: -abs(figure["largest"]))
    settings = [row for row in _settings(runs) if len(set(row[1])) > 1]
    layers = _layers(runs)
    context = {
        "labels": [run.label for run in runs],
        "figures": differing,
        "alike": [figure for figure in known if not figure["differs"]],
        "settings": settings,
        "layers": [row for row in layers if row["differs"]][:MOST_LAYERS],
        "same_layers": sum(not row["differs"] for row in layers),
        "units": sorted({run.unit for run in runs if run.unit}),
        "unit": runs[0].unit,
    }
    heads = [Section(f"run-{i}", run.label, "summary.html", summary(run)) for i, run in enumerate(runs)]
    return [Section("compare", "What differs", "compare.html", context), *heads]


def _figure(name: str, numbers: Sequence[float | None], words: Callable[[float | None], str]) -> dict[str, Any]:
    base = numbers[0]
    changes = [_change(base, number) for number in numbers]
    most = max((number or 0 for number in numbers), default=0)
    shares = [100 * (number or 0) / most if most else 0.0 for number in numbers]
    return {
        "name": name,
        "cells": [(words(n), _words(change), share) for n, change, share in zip(numbers, changes, shares, strict=True)],
        "known": any(number is not None for number in numbers),
        "differs": len(set(numbers)) > 1,
        "largest": max((abs(change) for change in changes if change is not None), default=float("inf")),
    }


def _change(base: float | None, number: float | None) -> float | None:
    if base is None or number is None:
        return None
    if base:
        return number / base - 1
    return 0.0 if not number else float("inf")


def _words(change: float | None) -> str:
    if change is None or change == 0:
        return ""
    if change == float("inf"):
        return "new"
    return f"{100 * change:+.1f} %" if abs(change) < 10 else f"×{1 + change:.0f}"


def _settings(runs: Sequence[Run]) -> list[tuple[str, list[str]]]:
    def row(name: str, of: Callable[[Run], Any]) -> tuple[str, list[str]]:
        return name, [str(of(run)) for run in runs]

    return [
        row("Model", lambda run: run.data["model"]),
        row("SHA-256", lambda run: run.section("source").get("sha256", "not known")),
        row("Board", lambda run: run.data["board"]),
        row("Accelerators", lambda run: ", ".join(run.data.get("accelerators", ())) or "none"),
        row("uaccel", lambda run: run.data.get("uaccel", "not known")),
        row("Inputs and outputs", lambda run: "in the arena" if run.data.get("workspace_io") else "apart"),
        row("Command", lambda run: run.section("source").get("command", "not known")),
    ]


def _layers(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """By name; those whose times differ most first. Several in one region stand together with its first."""
    tables = [{row["name"]: (step, row) for step in run.steps for row in step.rows} for run in runs]
    names = list(dict.fromkeys(name for table in tables for name in table))
    colours = list(dict.fromkeys(engine for run in runs for engine in run.engines))
    comparable = len({run.unit for run in runs}) == 1 and bool(runs[0].unit)
    found = []
    for name in names:
        cells, costs = [], []
        for run, table in zip(runs, tables, strict=True):
            step, row = table.get(name, (None, None))
            inside = step is not None and row is not step.rows[0]
            cost = None if step is None else 0.0 if inside else step.cost
            engine = step.engine if step else ""
            words = "with its region" if inside else _cost(run, cost)
            class_ = f"e{colours.index(engine) % 8}" if step else ""
            cells.append((engine, class_, words if comparable else ""))
            costs.append(cost or 0.0)
        engines = [engine for engine, _, _ in cells]
        spread = max(costs) - min(costs) if comparable else 0.0
        change = _words(_change(costs[0], costs[-1])) if comparable else ""
        differs = bool(spread) or len(set(engines)) > 1
        found.append({"name": name, "cells": cells, "spread": spread, "change": change, "differs": differs})
    return sorted(found, key=lambda row: -row["spread"])


def _cost(run: Run, cost: float | None) -> str:
    if cost is None:
        return "none"
    return seconds(cost) if run.unit == "seconds" else count(cost)
