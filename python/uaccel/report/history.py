"""A figure over several sweeps, in the order in which their files were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uaccel.report.section import Section
from uaccel.report.sweep_figures import known_figures
from uaccel.report.swept import Sweep

History = Mapping[str, Sequence[Mapping[str, float] | None]]


def section(sweeps: Sequence[Sweep]) -> Section:
    """The script draws it."""
    if len(sweeps) < 2:
        missing = "It takes several files: uaccel report MONDAY.jsonl TUESDAY.jsonl -o page.html"
        return Section("history", "History", missing=missing)
    figures = known_figures(row for sweep in sweeps for row in sweep.rows)
    if not figures:
        return Section("history", "History", missing="No row has a figure: all of them failed.")
    return Section("history", "History", "history.html", {"figures": figures, "sweeps": [s.label for s in sweeps]})


def history_of(sweeps: Sequence[Sweep]) -> History:
    """Of each row by its title: its figures in each sweep; None where it is not there, or failed."""
    tables = [{row.title: row.figures for row in sweep.rows if row.good} for sweep in sweeps]
    titles = dict.fromkeys(row.title for sweep in sweeps for row in sweep.rows)
    return {title: [table.get(title) for table in tables] for title in titles}
