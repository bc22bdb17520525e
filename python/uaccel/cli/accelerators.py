"""Defines ``uaccel accelerators``, which lists the accelerators that are installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uaccel.cli.command import Command
from uaccel.cli.output import emit, new_table
from uaccel.errors import AcceleratorError
from uaccel.util.files import accelerator_entries, accelerator_folders

KIB: Final = 1024

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, kw_only=True)
class AcceleratorsCommand(Command):
    """List the accelerators that uaccel brings and those that other packages install."""

    def run(self) -> None:
        rows = [_row(name) for name in sorted({*accelerator_folders(), *accelerator_entries()})]
        emit({"accelerators": rows}, self.as_json, lambda console: _show(console, rows))


def _row(name: str) -> dict[str, Any]:
    """Makes a row for an accelerator; one that cannot be used is listed with the reason."""
    from uaccel.accelerator import OBJECTIVES, load_accelerator

    try:
        accelerator = load_accelerator(name)
    except AcceleratorError as error:
        unknown = dict.fromkeys(("exact", "tolerance", "objectives", "folder", "macs_per_cycle", "memories"))
        text = f"cannot be used: {error}"
        return {"name": name, "description": text, "operations": [], "models": [], **unknown, "error": str(error)}
    return {
        "name": accelerator.name,
        "description": accelerator.description,
        "operations": [
            {"name": operation.name, "operators": operation.operators} for operation in accelerator.operations
        ],
        "exact": accelerator.tolerance == 0,
        "tolerance": accelerator.tolerance,
        "objectives": list(OBJECTIVES if accelerator.objective is not None else OBJECTIVES[:1]),
        "models": _models(accelerator.folder, accelerator.base),
        "macs_per_cycle": accelerator.macs_per_cycle,
        "memories": dict(accelerator.memories),
        "folder": str(accelerator.folder),
        "error": None,
    }


def _apart(operations: list[dict[str, Any]]) -> list[str]:
    """The names of operations without their variants, such as ``add_of_view`` beside ``add``."""
    names = [operation["name"] for operation in operations]
    return [name for name in names if name.partition("_of_")[0] == name or name.partition("_of_")[0] not in names]


def _models(folder: Path, base: Path) -> list[str]:
    """What can stand in for the hardware: a model in C, and its RTL."""
    kinds = {"C": ("device", "unit"), "RTL": ("rtl",)}
    return [
        kind for kind, parts in kinds.items() if any((of / part).is_dir() for of in (folder, base) for part in parts)
    ]


def _size(row: dict[str, Any]) -> str:
    """Says how many products it computes at once and how much memory it has, as far as its description states them."""
    products, on_chip = row["macs_per_cycle"], sum((row["memories"] or {}).values())
    words = [f"{products:g} products a cycle"] if products else []
    words += [f"{on_chip / KIB:g} KiB on chip"] if on_chip else []
    return ", ".join(words)


def _show(console: Console, rows: list[dict[str, Any]]) -> None:
    table = new_table("Accelerator", "~What it is", "~What it computes", "~Size", "Models")
    for row in rows:
        computes = ", ".join(_apart(row["operations"]))
        table.add_row(row["name"], row["description"], computes, _size(row), ", ".join(row["models"]))
    console.print(table)
    for line in (
        "Its size on an FPGA: uaccel synth NAME.",
        "Your own: a folder's path; 'uaccel new accelerator NAME'.",
    ):
        console.print(f"  {line}", soft_wrap=True)
