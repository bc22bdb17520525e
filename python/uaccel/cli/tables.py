"""Tables for people: layers, memory, outputs. They stay readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_VALUES = 12
USUAL = ("CPU kernel ", " (portable)", "uaccel_")
"""What nearly every layer's reason says; beside the name of the kernel it only takes room."""


def show_layers(console: Console, report: dict[str, Any]) -> None:
    """A row a layer; one engine that runs all is said once, below."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    layers = report["layers"]
    engines = list(dict.fromkeys(layer["engine"] for layer in layers))
    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    table.add_column("Layer", no_wrap=True)
    table.add_column("Output", overflow="fold")
    table.add_column("MACs", justify="right", no_wrap=True)
    counted = any(layer.get("instructions") is not None for layer in layers)
    if counted:
        table.add_column("Instructions", justify="right", no_wrap=True)
    if len(engines) > 1:
        table.add_column("Engine", no_wrap=True)
    table.add_column("How", overflow="fold")
    for layer in layers:
        columns = [layer["name"], _shapes(layer), _count(layer["macs"])]
        columns += [_count(layer.get("instructions"))] if counted else []
        columns += [layer["engine"]] if len(engines) > 1 else []
        table.add_row(*columns, _how(layer["reason"]))
    console.print(table)
    macs = sum(layer["macs"] for layer in layers)
    where = f" on {engines[0]}" if len(engines) == 1 else ""
    show_lines(console, [("Layers", f"{len(layers)}{where}, {macs:,} multiply-accumulates")])
    if report.get("instructions") is not None:
        show_lines(console, [("Time", f"{report['instructions']:,} instructions, one inference")])
    for warning in report["warnings"]:
        show_lines(console, [("Warning", warning)], style="yellow")


def _shapes(layer: dict[str, Any]) -> str:
    """1x8x8x4, or 2 of 1x8x8x4 where several outputs are alike."""
    shapes = ["x".join(map(str, shape)) or "scalar" for shape in layer["outputs"]]
    if len(shapes) > 1 and len(set(shapes)) == 1:
        return f"{len(shapes)} of {shapes[0]}"
    return " ".join(shapes)


def _count(count: int | None) -> str:
    return f"{count:,}" if count else ""


def _how(reason: str) -> str:
    start, end, prefix = USUAL
    return reason.removeprefix(start).removesuffix(end).replace(prefix, "") if reason.startswith(start) else reason


def show_memory(console: Console, report: dict[str, Any]) -> None:
    ram, flash = report["ram"], report["flash"]
    arena = f"arena {ram['arena']:,} (lower bound {ram['arena_lower_bound']:,})"
    show_lines(
        console,
        [
            ("RAM", _parts(ram, ("io", "static", "stack"), [arena])),
            ("Flash", _parts(flash, ("weights", "code"), [])),
        ],
    )


def _parts(sizes: dict[str, int | None], names: tuple[str, ...], parts: list[str]) -> str:
    parts += [f"{name} {sizes[name]:,}" for name in names if sizes[name] is not None]
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
        grid.add_row(f"  {word}", text)
    console.print(grid, style=style)
