"""The page of a sweep, or of several in their order: the last one's rows, and how figures went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from uaccel.report import failures, heat, history, space
from uaccel.report.page import rendered
from uaccel.report.section import Section
from uaccel.report.sweep_figures import known_figures
from uaccel.report.swept import Sweep, read_sweep


def page_of_results(paths: Sequence[Path]) -> tuple[str, list[Sweep]]:
    """Of files that ``uaccel sweep`` wrote, and what they hold."""
    sweeps = [read_sweep(path) for path in paths]
    return page_of_sweeps(sweeps), sweeps


def page_of_sweeps(sweeps: Sequence[Sweep]) -> str:
    sweeps = _labelled(sweeps)
    sections = [module.section(sweeps) for module in (failures, heat, space, history)]
    sections.append(_all_rows(sweeps[-1]))
    shown = [one for one in sections if not (one.missing and one.id == "space" and len(sweeps) > 1)]
    last = sweeps[-1]
    title = f"Sweep {last.path.stem}" + (f", {last.label}" if last.label != last.path.stem else "")
    return rendered(title, shown, _carried(sweeps), script="sweep.js", styles=("style.css", "sweep.css"))


def _labelled(sweeps: Sequence[Sweep]) -> list[Sweep]:
    """Each of several gets a label of its own."""
    seen = Counter(sweep.label for sweep in sweeps)
    labels = [sweep.label if seen[sweep.label] == 1 else f"{sweep.label} {sweep.path.stem}" for sweep in sweeps]
    again = Counter(labels)
    numbered = [f"{label} {i}" if again[label] > 1 else label for i, label in enumerate(labels, 1)]
    return [replace(sweep, label=label) for sweep, label in zip(sweeps, numbered, strict=True)]


def _all_rows(sweep: Sweep) -> Section:
    """The table of everything; the script sorts it."""
    context = {
        "rows": sweep.rows,
        "figures": known_figures(sweep.rows),
        "options": any(row.options for row in sweep.rows),
        "tags": list(dict.fromkeys(name for row in sweep.rows for name in row.tags)),
    }
    return Section("rows", "All rows", "rows.html", context)


def _carried(sweeps: Sequence[Sweep]) -> dict[str, Any]:
    """What the script draws from."""
    every = [row for sweep in sweeps for row in sweep.rows]
    return {
        "figures": [figure.to_json() for figure in known_figures(every)],
        "sweeps": [sweep.label for sweep in sweeps],
        "rows": {
            row.number: {
                "title": row.title,
                "status": row.status,
                "good": row.good,
                "tags": dict(row.tags),
                "figures": dict(row.figures),
            }
            for row in sweeps[-1].rows
        },
        "history": history.history_of(sweeps) if len(sweeps) > 1 else {},
    }
