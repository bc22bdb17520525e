"""A sweep's matrix as a map: models down, boards and accelerators across; the script fills in the chosen figure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from uaccel.basics.words import CPU
from uaccel.report.section import Section
from uaccel.report.sweep_figures import known_figures
from uaccel.report.swept import Sweep, SweptRow

Column = tuple[str, str, tuple[str, ...]]
"""Board, accelerators, numbers of a design space."""


def section(sweeps: Sequence[Sweep]) -> Section:
    """Of the last sweep."""
    rows = sweeps[-1].rows
    figures = known_figures(rows)
    if not figures:
        return Section("matrix", "Matrix", missing="No row has a figure: all of them failed.")
    down = list(dict.fromkeys((row.model, row.options) for row in rows))
    across = _columns(rows)
    cells: dict[tuple[tuple[str, str], Column], list[int]] = {}
    for row in rows:
        cells.setdefault(((row.model, row.options), _column(row)), []).append(row.number)
    several = len({options for _, options in down}) > 1
    context = {
        "figures": figures,
        "boards": [(board, len(list(group))) for board, group in groupby(across, key=lambda column: column[0])],
        "columns": across,
        "rows": [
            (model, options if several else "", [cells.get(((model, options), column), []) for column in across])
            for model, options in down
        ],
        "options": "" if several else down[0][1],
    }
    return Section("matrix", "Matrix", "heat.html", context)


def _column(row: SweptRow) -> Column:
    return row.board, row.engines, row.numbers


def _columns(rows: Sequence[SweptRow]) -> list[Column]:
    """Those of a board beside each other, the CPU alone first, numbers of a design space in their order."""
    boards = list(dict.fromkeys(row.board for row in rows))

    def place(row: SweptRow) -> tuple[Any, ...]:
        numbers = [value if isinstance(value, (int, float)) else 0 for value in row.tags.values()]
        return boards.index(row.board), row.engines != CPU, row.engines, numbers

    return list(dict.fromkeys(_column(row) for row in sorted(rows, key=place)))
