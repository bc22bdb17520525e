"""Makes the sections that summarise runs: what ran and whether it is right, its precision, and several side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from uaccel.board.types import ON_CHIP
from uaccel.report.stored_run import QUANTIZED, StoredRun
from uaccel.report.svg import Shown, count, join_words, percent, seconds, shape, size

# Summary: what ran where, whether it is right, and what it takes.

# Gauges of memories: name, part of the run's data, parts that count, parts that do not, and kinds of memories.
GAUGES: Final = (
    (
        "Flash",
        "flash",
        {"weights": "weights", "code": "code"},
        {"start-up": "startup", "test application": "session"},
        ("flash",),
    ),
    (
        "RAM",
        "ram",
        {"arena": "arena", "inputs and outputs": "io", "static data": "static", "stack": "stack"},
        {"test application": "session"},
        ON_CHIP,
    ),
)


def summary(run: StoredRun) -> dict[str, Any]:
    """The values that the summary shows; a comparison shows them for every run."""
    verdict, good = verdict_words(run.data.get("verify"))
    return {
        "run": run,
        "source": run.section("source"),
        "target": run.section("target"),
        "engines": [_engine(run, name) for name in run.engines],
        "verdict": verdict,
        "good": good,
        "times": times(run),
        "memory": [_gauge(run, *gauge) for gauge in GAUGES],
        "tensor": _tensor,
    }


def _tensor(name: str, spec: Mapping[str, Any]) -> str:
    return f"{name}: {spec.get('dtype', '')} {shape(spec.get('shape', ()))}"


def _engine(run: StoredRun, name: str) -> dict[str, Any]:
    steps = [step for step in run.steps if step.engine == name]
    macs, every = sum(step.macs for step in steps), sum(step.macs for step in run.steps)
    layers = sum(len(step.rows) for step in steps)
    share = f", {percent(macs, every)} of the products" if every else ""
    return {"name": name, "class": run.engine_class(name), "words": f"{layers} layer{'s' * (layers != 1)}{share}"}


def verdict_words(verify: Mapping[str, Any] | None) -> tuple[str, bool | None]:
    """The verdict in words, and whether it is good; None if nothing was compared."""
    if not verify:
        return "Not verified: this run was not compared with anything (--verify does).", None
    elements, samples = count(verify.get("compared")), verify.get("samples", 1)
    many = "one sample" if samples == 1 else f"{samples} samples"
    compared = f"{elements} elements of {many} were compared with the model's exact meaning"
    if verify.get("tensors"):
        compared += f", beside the outputs: {join_words(verify['tensors'])}"
    if verify.get("layers_compared"):
        compared += f"; {verify['layers_compared']} layers were each held to what they were given"
    compared += "."
    if verify.get("not_compared"):
        compared += f" Not compared: {verify['not_compared']}."
    if verify.get("bit_exact") and not verify.get("first_wrong_layer"):
        return f"Every bit is as it should be: {compared}", True
    if verify.get("within_tolerance"):
        unit = "steps" if verify.get("units") == "steps" else "of the largest"
        far = f"the largest difference is {verify.get('largest_difference')} {unit}"
        return f"Within what the accelerators state: {far}. {compared}", True
    return f"Wrong: {_wrong(verify)}. {compared}", False


def _wrong(verify: Mapping[str, Any]) -> str:
    layer, first = verify.get("first_wrong_layer"), verify.get("first_difference")
    if layer:
        return f"the first wrong layer is {layer['layer']} on {layer['engine']}"
    if first:
        where = ",".join(map(str, first["index"]))
        return f"{first['output']}[{where}] is {first['got']}, expected {first['expected']}"
    return "outputs differ"


def times(run: StoredRun) -> list[tuple[str, str]]:
    """Times of one inference, as far as each is known."""
    data = run.data
    device = data.get("accelerator_cycles") or 0
    by = run.section("cycles_estimated_by")
    found = [("Latency", words)] if (words := latency_words(run)) else []
    if data.get("cycles_estimated") is not None:
        found.append(("CPU cycles", f"about {count(data['cycles_estimated'])}, estimated for {by.get('core', '')}"))
    elif by.get("missing"):
        found.append(("CPU cycles", f"not estimated: {by['missing']}"))
    if data.get("instructions") is not None:
        found.append(("CPU instructions", f"{count(data['instructions'])}, counted"))
    if data.get("accelerators"):
        found.append(("Accelerator cycles", count(device)))
    if data.get("seconds") is not None and not run.section("target").get("emulated"):
        found.append(("Measured", f"{seconds(data['seconds'])}, the fastest inference"))
    return found


def latency_words(run: StoredRun) -> str:
    """The latency in words; empty if it is not known."""
    latency = run.section("latency")
    cycles, milliseconds, hz = (latency.get(key) for key in ("cycles", "ms", "hz"))
    about = "about " if latency.get("estimated") else ""
    words = [] if milliseconds is None else [seconds(milliseconds / 1e3)]
    if cycles is not None:
        clock = f" at {hz / 1e6:g} MHz" if hz else ""
        words.append(f"{count(cycles)} cycles{clock}")
    same = ", accelerators at the same clock" if hz and run.data.get("accelerator_cycles") else ""
    return f"{about}{', '.join(words)}{same}" if words else ""


def _gauge(
    run: StoredRun,
    name: str,
    section: str,
    counted: Mapping[str, str],
    beside: Mapping[str, str],
    kinds: tuple[str, ...],
) -> dict[str, Any]:
    """Compares the total with the size of all memories of these kinds; parts that are not known are left out."""
    data = run.section(section)
    total = data.get("total")
    memories = [memory for memory in run.section("target").get("memories", ()) if memory["kind"] in kinds]
    available = sum(memory["bytes"] for memory in memories) or None
    used = total if total is not None else sum(data.get(key) or 0 for key in counted.values())
    return {
        "name": name,
        "total": size(used) if total is not None else f"{size(used)} and what only a linker knows",
        "parts": [(part, data[key]) for part, key in counted.items() if data.get(key) is not None],
        "beside": [(part, data[key]) for part, key in beside.items() if data.get(key)],
        "available": available,
        "memories": join_words(f"{memory['name']} {size(memory['bytes'])}" for memory in memories),
        "share": min(100.0, 100 * used / available) if available else None,
        "used": used,
    }


# Precision: how far each compared tensor is from what it should be, as a histogram.

NOTHING: Final = "Nothing was compared; --verify compares outputs, --verify layers each layer."


def precision(run: StoredRun) -> Shown:
    """What is shown of differences from the exact meaning, and from the float model."""
    verify, noise = run.section("verify"), _noise(run)
    found = verify.get("differences") or []
    words = "" if found else _words(verify)
    if not found and noise is None:
        return words
    tensors = [_histogram(entry) for entry in found]
    return {"words": words, "noise": noise, "tensors": tensors, "verify": verify}


def _words(verify: Mapping[str, Any]) -> str:
    """The sentence in place of histograms, if there are none."""
    if not verify:
        return NOTHING
    exact = verify.get("bit_exact") and not verify.get("first_wrong_layer")
    many = count(verify.get("compared"))
    return f"No bit differs in {many} compared elements." if exact else "This result holds no histograms."


def _noise(run: StoredRun) -> dict[str, Any] | None:
    """The noise of each layer against the float model, if that is known of the model."""
    told = run.section(QUANTIZED)
    if not told:
        return None
    known = [row["snr_db"] for row in told["layers"] if row["snr_db"] is not None]
    return {**told, "most": max([1.0, *known]), "least": min(known, default=None)}


def _histogram(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of a histogram. ``counts`` are by difference in steps; the outermost stand for all beyond."""
    bins = sorted(((int(step), number) for step, number in entry["counts"].items()), key=lambda pair: pair[0])
    whole = sum(number for _, number in bins) or 1
    most = max((number for _, number in bins), default=1)
    rows = [(f"{step:+d}" if step else "0", number, 100 * number / most) for step, number in bins]
    return {**entry, "rows": rows, "same": dict(bins).get(0, 0), "whole": whole}


# Comparison: several runs side by side, first the figures that differ, then layer by layer.

MOST_LAYERS: Final = 400  # Rows of layers that the table shows.
Number = Callable[[StoredRun], "float | None"]


def _of(*keys: str) -> Number:
    def found(run: StoredRun) -> float | None:
        value: Any = run.data
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, (int, float)) else None

    return found


def _measured(run: StoredRun) -> float | None:
    """Measured seconds; None for an emulator, whose own time says nothing about a board's."""
    return None if run.section("target").get("emulated") else run.data.get("seconds")


FIGURES: Final[tuple[tuple[str, Number, Callable[[float | None], str]], ...]] = (
    ("Latency in cycles", _of("latency", "cycles"), count),
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


def comparison(runs: Sequence[StoredRun]) -> Shown:
    """What is shown of several runs, which have different labels; all are compared with the first."""
    figures = [_figure(name, [number(run) for run in runs], words) for name, number, words in FIGURES]
    known = [figure for figure in figures if figure["known"]]
    differing = sorted((f for f in known if f["differs"]), key=lambda figure: -figure["growth"])
    settings = [row for row in _settings(runs) if len(set(row[1])) > 1]
    layers = _layers(runs)
    return {
        "labels": [run.label for run in runs],
        "figures": differing,
        "alike": [figure for figure in known if not figure["differs"]],
        "settings": settings,
        "layers": [row for row in layers if row["differs"]][:MOST_LAYERS],
        "same_layers": sum(not row["differs"] for row in layers),
        "units": sorted({run.unit for run in runs if run.unit}),
        "unit": runs[0].unit,
    }


def _figure(name: str, numbers: Sequence[float | None], words: Callable[[float | None], str]) -> dict[str, Any]:
    base = numbers[0]
    changes = [_change(base, number) for number in numbers]
    most = max((number or 0 for number in numbers), default=0)
    shares = [100 * (number or 0) / most if most else 0.0 for number in numbers]
    return {
        "name": name,
        "cells": [
            (words(n), _change_words(change), share) for n, change, share in zip(numbers, changes, shares, strict=True)
        ],
        "known": any(number is not None for number in numbers),
        "differs": len(set(numbers)) > 1,
        "growth": float("inf") if changes[-1] is None else changes[-1],
    }


def _change(base: float | None, number: float | None) -> float | None:
    if base is None or number is None:
        return None
    if base:
        return number / base - 1
    return 0.0 if not number else float("inf")


def _change_words(change: float | None) -> str:
    if change is None or change == 0:
        return ""
    if change == float("inf"):
        return "new"
    return f"{100 * change:+.1f} %" if abs(change) < 10 else f"×{1 + change:.0f}"


def _settings(runs: Sequence[StoredRun]) -> list[tuple[str, list[str]]]:
    def row(name: str, of: Callable[[StoredRun], Any]) -> tuple[str, list[str]]:
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


def _layers(runs: Sequence[StoredRun]) -> list[dict[str, Any]]:
    """Rows of layers by name: those that became slower most, first. Where nothing tells of the operators of a region,
    its cost stands in its first one's row, and the others refer to it."""
    tables = [{row["name"]: (part, row) for part in run.timed for row in part.rows} for run in runs]
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
            words = "with its region" if inside else "none" if cost is None else run.amount(cost)
            class_ = f"e{colours.index(engine) % 8}" if step else ""
            cells.append((engine, class_, words if comparable else ""))
            costs.append(cost or 0.0)
        engines = [engine for engine, _, _ in cells]
        spread = costs[-1] - costs[0] if comparable else 0.0
        change = _change_words(_change(costs[0], costs[-1])) if comparable else ""
        differs = (comparable and len(set(costs)) > 1) or len(set(engines)) > 1
        found.append({"name": name, "cells": cells, "spread": spread, "change": change, "differs": differs})
    return sorted(found, key=lambda row: -row["spread"])
