"""A design space: two figures against each other, the front marked, with the numbers that each point stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from uaccel.report.section import Section
from uaccel.report.sweep_figures import Figure, known_figures
from uaccel.report.swept import Sweep, SweptRow

TITLE: Final = "Design space"
FIRST: Final = ("accelerator_cycles", "cycles_estimated", "instructions", "seconds")
SECOND: Final = ("utilisation", "bytes_moved", "ram.total", "flash.total")
"""What is drawn before somebody chooses: the first that is known."""


def section(sweeps: Sequence[Sweep]) -> Section:
    """Of the last sweep: a group for each model, board, accelerator and set of options that has points."""
    rows = [row for row in sweeps[-1].rows if row.tags]
    if not rows:
        missing = "No row varies an accelerator's numbers. A [[space]] in the matrix file does."
        return Section("space", TITLE, missing=missing)
    figures = known_figures(rows)
    if len(figures) < 2:
        return Section("space", TITLE, missing="The rows that vary an accelerator's numbers have no figures.")
    several = len({row.options for row in rows}) > 1
    groups: dict[str, list[int]] = {}
    for row in rows:
        groups.setdefault(_group(row, several), []).append(row.number)
    context = {
        "groups": groups,
        "figures": figures,
        "across": _chosen(figures, FIRST, figures[0]),
        "up": _chosen(figures, SECOND, figures[1]),
    }
    return Section("space", TITLE, "space.html", context)


def _group(row: SweptRow, several: bool) -> str:
    words = f"{row.model} on {row.board} with {row.engines}"
    return f"{words} {row.options}" if several and row.options else words


def _chosen(figures: Sequence[Figure], names: Sequence[str], otherwise: Figure) -> str:
    known = [figure.name for figure in figures]
    return next((name for name in names if name in known), otherwise.name)
