"""Figures that rows of a sweep are compared by: what a page calls them, how it says them, and which are better."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from uaccel.report.swept import SweptRow

COUNT, SIZE, SHARE, SECONDS = "count", "size", "share", "seconds"


@dataclass(frozen=True)
class Figure:
    """``more``: a larger one is better."""

    name: str
    label: str
    kind: str = COUNT
    more: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "label": self.label, "kind": self.kind, "more": self.more}


FIGURES: Final = (
    Figure("instructions", "CPU instructions"),
    Figure("cycles_estimated", "CPU cycles, estimated"),
    Figure("accelerator_cycles", "Accelerator cycles"),
    Figure("ram.total", "RAM: all", SIZE),
    Figure("ram.arena", "RAM: arena", SIZE),
    Figure("flash.total", "Flash: all", SIZE),
    Figure("flash.weights", "Flash: weights", SIZE),
    Figure("flash.code", "Flash: code", SIZE),
    Figure("utilisation", "Utilisation", SHARE, True),
    Figure("bytes_moved", "Bytes moved", SIZE),
    Figure("offloaded", "Layers on accelerators", more=True),
    Figure("seconds", "Seconds, measured", SECONDS),
    Figure("area.lut", "Area: LUT"),
    Figure("area.ff", "Area: FF"),
    Figure("area.bram", "Area: BRAM"),
    Figure("area.dsp", "Area: DSP"),
)


def known_figures(rows: Iterable[SweptRow]) -> list[Figure]:
    """Those that any row has; what a later uaccel adds goes by its own name."""
    seen = dict.fromkeys(name for row in rows for name in row.figures)
    named = {figure.name for figure in FIGURES}
    return [
        *(figure for figure in FIGURES if figure.name in seen),
        *(Figure(name, name) for name in seen if name not in named),
    ]
