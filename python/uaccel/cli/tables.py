"""Tables for people: layers, memory, outputs. They stay readable at 60 columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uaccel.errors import escape_terminal

if TYPE_CHECKING:
    from rich.console import Console

USUAL_WIDTH, WIDE = 80, 90
"""Columns. Below, where it is shown what layers took, the shapes and the MACs are left away."""
SHOWN_VALUES = 12
UNITS = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"))
USUAL = ("CPU kernel ", " (portable)", "uaccel_")
"""What nearly every layer's reason says; beside the name of the kernel it only takes room."""


@dataclass(frozen=True)
class _Column:
    title: str
    cell: Callable[[dict[str, Any]], str]
    right: bool = False
    """Numbers."""
    fold: bool = False
    """May go on below."""


def show_frontier(console: Console, report: dict[str, Any]) -> None:
    """A row a way to run the model, from most RAM to least."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table("RAM", report["unit"], "slower", "constants", "functions", box=SIMPLE_HEAD, collapse_padding=True)
    for column in table.columns:
        column.justify = "right"
    for point in report["points"]:
        numbers = (f"{point[key]:,}" for key in ("ram", "estimate"))
        table.add_row(*numbers, f"{point['slower']:.1%}", f"{point['constants']:,}", str(point["functions"]))
    console.print(table)


def show_layers(console: Console, report: dict[str, Any]) -> None:
    """A row a layer; one engine that runs all is said once, below."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    layers = report["layers"]
    engines = list(dict.fromkeys(layer["engine"] for layer in layers))
    columns = _columns(layers, several_engines=len(engines) > 1, width=console.width)
    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=not column.fold,
            overflow="fold" if column.fold else "ellipsis",
        )
    for layer in layers:
        table.add_row(*(escape_terminal(column.cell(layer)) for column in columns))
    console.print(table)
    macs = sum(layer["macs"] for layer in layers)
    where = f" on {engines[0]}" if len(engines) == 1 else ""
    show_lines(console, [("Layers", f"{len(layers)}{where}, {macs:,} multiply-accumulates")])
    if report.get("instructions") is not None:
        show_lines(console, list(_time(report)))
    elif report.get("seconds") is not None:
        show_lines(console, [("Time", f"{_seconds(report['seconds'])}, the fastest inference")])
    show_warnings(console, report)


def show_warnings(console: Console, report: dict[str, Any]) -> None:
    for warning in report["warnings"]:
        show_lines(console, [("Warning", warning)], style="yellow")


def _time(report: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """In instructions, and cycles: the core's own, and as far as they can be estimated."""
    yield "Time", f"{report['instructions']:,} instructions, one inference"
    if report.get("cycles") is not None:
        waited = report.get("waited") or {}
        what = [f"{cycles:,} for {name}" for name, cycles in waited.items() if cycles]
        told = f"; among them waiting: {', '.join(what)}" if what else ""
        yield "", f"{report['cycles']:,} cycles, as the core counts them{told}"
    by = report.get("cycles_estimated_by") or {"source": None}
    if report.get("cycles_estimated") is not None:
        yield "", f"about {report['cycles_estimated']:,} cycles, estimated for {by['core']}"
    elif by["source"] is not None:
        yield "", f"cycles are not estimated: {by['missing']}"


def _columns(layers: list[dict[str, Any]], *, several_engines: bool, width: int) -> list[_Column]:
    """On a narrow screen those that matter least are left away."""
    counted = any(layer.get("instructions") is not None for layer in layers)
    told = any(layer.get("core_cycles") is not None for layer in layers)
    estimated = width >= USUAL_WIDTH and any(layer.get("cycles_estimated") is not None for layer in layers)
    timed = not counted and any(layer.get("seconds") is not None for layer in layers)
    shown = [
        (True, _Column("Layer", lambda layer: str(layer["name"]))),
        (
            width >= (WIDE if estimated else USUAL_WIDTH) or not (counted or timed),
            _Column("Output", _shapes, fold=True),
        ),
        (
            width >= (WIDE if counted or timed else USUAL_WIDTH),
            _Column("MACs", lambda layer: _count(layer["macs"]), right=True),
        ),
        (counted, _Column("Instructions", lambda layer: _count(layer.get("instructions")), right=True)),
        (told, _Column("Cycles", lambda layer: _count(layer.get("core_cycles")), right=True)),
        (estimated, _Column("Cycles, est.", lambda layer: _count(layer.get("cycles_estimated")), right=True)),
        (timed, _Column("Time", lambda layer: _seconds(layer.get("seconds")), right=True)),
        (several_engines, _Column("Engine", lambda layer: str(layer["engine"]))),
        (True, _Column("How", lambda layer: _how(layer["reason"]), fold=True)),
    ]
    return [column for wanted, column in shown if wanted]


def _seconds(seconds: float | None) -> str:
    """In the unit that leaves one to three digits before the point."""
    if seconds is None:
        return ""
    scale, unit = next(row for row in UNITS if seconds * row[0] >= 1 or row[1] == "µs")
    number = float(f"{seconds * scale:.3g}")
    return f"{number:.3g} {unit}" if number < 1000 else f"{seconds * scale:,.0f} {unit}"


def _shapes(layer: dict[str, Any]) -> str:
    """1x8x8x4, or 2 of 1x8x8x4 where several outputs are alike."""
    shapes = ["x".join(map(str, shape)) or "scalar" for shape in layer["outputs"]]
    if len(shapes) > 1 and len(set(shapes)) == 1:
        return f"{len(shapes)} of {shapes[0]}"
    return " ".join(shapes)


def _count(count: int | None) -> str:
    return f"{count:,}" if count else ""


def _how(reason: str) -> str:
    _, offloaded, driver = reason.partition("; driver function ")
    if offloaded:  # why it was taken is what 'uaccel explain' tells
        return driver
    reason = reason.partition("; ")[0] if reason.startswith(USUAL[0]) else reason  # why this one '--json' tells
    start, end, prefix = USUAL
    return reason.removeprefix(start).removesuffix(end).replace(prefix, "") if reason.startswith(start) else reason


def show_memory(console: Console, report: dict[str, Any]) -> None:
    ram, flash = report["ram"], report["flash"]
    holds = " with inputs and outputs" if report["workspace_io"] else ""
    arena = f"arena {ram['arena']:,}{holds} (lower bound {ram['arena_lower_bound']:,})"
    apart = ("constants", "static", "stack") if report["workspace_io"] else ("constants", "io", "static", "stack")
    divided = ", ".join(f"{name} {size:,}" for name, size in flash.get("pools", {}).items())
    show_lines(
        console,
        [
            ("RAM", _parts(ram, apart, [arena])),
            ("Flash", _parts(flash, ("weights", "code"), [])),
            *([("Pools", divided)] if divided else []),
        ],
    )


def _parts(sizes: dict[str, int | None], names: tuple[str, ...], parts: list[str]) -> str:
    parts += [f"{name} {sizes[name]:,}" for name in names if sizes.get(name) is not None]
    total = f" = {sizes['total']:,} bytes" if sizes["total"] is not None else " bytes"
    return " + ".join(parts) + total


def show_outputs(console: Console, outputs: dict[str, Any]) -> None:
    """The first values of each."""
    for name, tensor in outputs.items():
        values = [_number(value) for value in tensor["data"][:SHOWN_VALUES]]
        more = ["..."] if len(tensor["data"]) > SHOWN_VALUES else []
        shape = "x".join(map(str, tensor["shape"])) or "scalar"
        show_lines(console, [("Output", f"{name} ({tensor['dtype']} {shape}): {', '.join(values + more)}")])


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def show_lines(console: Console, lines: Iterable[tuple[str, str]], style: str = "") -> None:
    """A word and what it stands for; what is too long goes on below, indented."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=10, no_wrap=True)
    grid.add_column(overflow="fold")
    for word, text in lines:
        grid.add_row(f"  {word}", escape_terminal(text))
    console.print(grid, style=style)
