"""Defines ``uaccel accelerators``, which lists the accelerators that are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from uaccel.cli.output import JsonFlag, emit
from uaccel.errors import AcceleratorError
from uaccel.util.files import accelerator_entries, accelerator_folders

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("accelerators", short_help="List the accelerators.")(accelerators_command)


def accelerators_command(as_json: JsonFlag = False) -> None:
    """List the accelerators that uaccel brings and those that other packages install."""
    names = sorted({*accelerator_folders(), *accelerator_entries()})
    rows = [_row(name) for name in names]
    emit({"accelerators": rows}, as_json, lambda console: _show(console, rows))


def _row(name: str) -> dict[str, Any]:
    """Makes a row for an accelerator; one that cannot be used is listed with the reason."""
    from uaccel.accelerator import OBJECTIVES, load_accelerator

    try:
        accelerator = load_accelerator(name)
    except AcceleratorError as error:
        unknown = dict.fromkeys(("exact", "tolerance", "objectives", "folder"))
        text = f"cannot be used: {error}"
        return {"name": name, "description": text, "operations": [], **unknown, "error": str(error)}
    return {
        "name": accelerator.name,
        "description": accelerator.description,
        "operations": [
            {"name": operation.name, "operators": operation.operators} for operation in accelerator.operations
        ],
        "exact": accelerator.tolerance == 0,
        "tolerance": accelerator.tolerance,
        "objectives": list(OBJECTIVES if accelerator.objective is not None else OBJECTIVES[:1]),
        "folder": str(accelerator.folder),
        "error": None,
    }


def _show(console: Console, rows: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    table.add_column("Accelerator", no_wrap=True)
    table.add_column("Operations", overflow="fold")
    table.add_column("What it is", overflow="fold")
    for row in rows:
        table.add_row(row["name"], ", ".join(o["name"] for o in row["operations"]), row["description"])
    console.print(table)
    console.print("  Your own: give the path of its folder; 'uaccel new accelerator NAME' begins one.", soft_wrap=True)
