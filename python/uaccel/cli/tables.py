"""Tables for people: layers, memory, outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_VALUES = 12


def show_layers(console: Console, report: dict[str, Any]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table("Layer", "Output", "MACs", "Engine", "Why", box=SIMPLE_HEAD)
    table.columns[2].justify = "right"
    for layer in report["layers"]:
        shapes = " ".join("x".join(map(str, shape)) or "scalar" for shape in layer["outputs"])
        macs = f"{layer['macs']:,}" if layer["macs"] else ""
        table.add_row(layer["name"], shapes, macs, layer["engine"], layer["reason"])
    console.print(table)
    for warning in report["warnings"]:
        console.print(f"  Warning: {warning}", style="yellow", soft_wrap=True)


def show_memory(console: Console, report: dict[str, Any]) -> None:
    ram, flash = report["ram"], report["flash"]
    arena = f"arena {ram['arena']:,} (lower bound {ram['arena_lower_bound']:,})"
    console.print(f"  RAM    {_parts(ram, ('io', 'static', 'stack'), arena)}", soft_wrap=True)
    console.print(f"  Flash  {_parts(flash, ('weights', 'code'), '')}", soft_wrap=True)


def _parts(sizes: dict[str, int | None], names: tuple[str, ...], first: str) -> str:
    parts = [first] if first else []
    parts += [f"{name} {sizes[name]:,}" for name in names if sizes[name] is not None]
    total = f" = {sizes['total']:,} bytes" if sizes["total"] is not None else " bytes"
    return " + ".join(parts) + total


def show_outputs(console: Console, outputs: dict[str, Any]) -> None:
    for name, tensor in outputs.items():
        values = tensor["data"]
        shown = ", ".join(map(str, values[:SHOWN_VALUES])) + (", ..." if len(values) > SHOWN_VALUES else "")
        shape = "x".join(map(str, tensor["shape"])) or "scalar"
        console.print(f"  {name} ({tensor['dtype']} {shape}): {shown}", soft_wrap=True)
