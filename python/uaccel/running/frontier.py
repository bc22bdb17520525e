"""What less RAM costs: the ways to run a model by rows of which none is better than another in everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from uaccel.basics.favour import Favour
from uaccel.emit.facts import io_bytes
from uaccel.emit.generate import generate
from uaccel.lower.placement import place
from uaccel.pipeline import Compiled
from uaccel.rows.apply import apply
from uaccel.rows.choose import require_feedable
from uaccel.rows.search import Cut, Search, frontier
from uaccel.running.job import Job


def frontier_report(job: Job, step: Callable[[str], None] = lambda _step: None) -> dict[str, Any]:
    """``points`` from the most RAM to the least; nothing in them is measured."""
    feed = job.options.feed
    whole = replace(job, options=replace(job.options, feed=False, ram=None), favour=Favour.balanced).compiled(step)
    step("compare rows")
    search = Search(whole.program, whole.selection, workspace_io=job.options.workspace_io, feed=feed)
    if feed:
        require_feedable(search)
    points = [_point(whole, search, cut, feed=feed) for cut in frontier(search)]
    return {
        "model": whole.model.name,
        "board": whole.board,
        "unit": search.parts.costs.estimated.unit,
        "feed": feed,
        "points": _best(points),
    }


def _point(whole: Compiled, search: Search, cut: Cut, *, feed: bool) -> dict[str, Any]:
    program = apply(search.program, cut.groups, search.parts, feed=feed)
    options = replace(whole.options, feed=feed)
    placement = place(program, workspace_io=options.workspace_io)
    made = generate(program, placement, options, whole.board)
    functions = sum(
        len(layer.streaming.functions) if layer.streaming else not layer.is_view for layer in program.layers
    )
    return {
        "ram": placement.arena + placement.state + io_bytes(program, options),
        "estimate": round(cut.cost),
        "slower": round(cut.cost / max(1.0, search.whole.cost) - 1, 4),
        "constants": made.weight_bytes,
        "functions": functions,
        "by_rows": [layer.name for layer in program.layers if layer.streaming is not None],
    }


def _best(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without those that another one beats in RAM and is no slower than."""
    return [
        point
        for point in points
        if not any(
            other["ram"] <= point["ram"]
            and other["estimate"] <= point["estimate"]
            and (other["ram"], other["estimate"]) != (point["ram"], point["estimate"])
            for other in points
        )
    ]
