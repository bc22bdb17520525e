"""Defines ``uaccel accelerators``, which lists the accelerators that are installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uaccel.cli.command import Command
from uaccel.cli.output import emit, new_table, say
from uaccel.cli.synth import read_synthesis
from uaccel.errors import AcceleratorError, UaccelError
from uaccel.util.files import accelerator_entries, accelerator_folders, data_dir

KIB: Final = 1024

if TYPE_CHECKING:
    from rich.console import Console


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
        keys = ("exact", "tolerance", "objectives", "folder", "page", "macs_per_cycle", "memories", "fpga")
        unknown = dict.fromkeys(keys)
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
        "fpga": _fpga(accelerator.folder),
        "folder": str(accelerator.folder),
        "page": _page(accelerator.folder, accelerator.page),
        "error": None,
    }


def _fpga(folder: Path) -> dict[str, Any] | None:
    """What its RTL takes of an FPGA, as ``uaccel synth --json`` wrote it to ``rtl/synth.json``."""
    path = folder / "rtl" / "synth.json"
    if not path.exists():
        return None
    try:
        found = read_synthesis(path, str(path))
    except UaccelError as error:
        say(f"warning: {error}")
        return None
    return {"part": found["part"], **found["area"]}


def _page(folder: Path, page: str) -> str | None:
    """A URL as it is, and the path of a file."""
    if not page or "://" in page:
        return page or None
    file, mark, section = page.partition("#")
    return f"{(folder / file).resolve()}{mark}{section}"


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
    """Says what it computes at once, its memory, what stands in for it and its share of an FPGA, as far as is known."""
    products, on_chip, fpga = row["macs_per_cycle"], sum((row["memories"] or {}).values()), row["fpga"]
    words = [f"{products:g} products a cycle"] if products else []
    words += [f"{on_chip / KIB:g} KiB on chip"] if on_chip else []
    words += [f"model in {' and '.join(row['models'])}"] if row["models"] else []
    words += [f"{fpga['lut']:,} LUT and {fpga['dsp']} DSP of {fpga['part']}"] if fpga else []
    return "; ".join(words)


def _where(page: str | None) -> str:
    """A page of these pages by its name among them, any other one by its path or URL."""
    docs = f"{data_dir('docs').parent}/"
    return (page or "").removeprefix(docs)


def _show(console: Console, rows: list[dict[str, Any]]) -> None:
    table = new_table("Accelerator", "~")
    for row in rows:
        computes = ", ".join(_apart(row["operations"]))
        lines = (row["description"], f"computes {computes}" if computes else "", _size(row), _where(row["page"]))
        table.add_row(row["name"], "\n".join(line for line in lines if line), end_section=True)
    console.print(table)
    for line in (
        "Size of others on an FPGA: uaccel synth NAME --json > FOLDER/rtl/synth.json.",
        "Your own: a folder's path; 'uaccel new accelerator NAME'.",
    ):
        console.print(f"  {line}", soft_wrap=True)
