"""Defines ``uaccel check``, which compares an accelerator's meaning, model and RTL on random layers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uaccel.cli.options import BoardOption, DeviceChoice
from uaccel.cli.output import JsonFlag, emit, progress

if TYPE_CHECKING:
    from rich.console import Console

AcceleratorArgument = Annotated[str, typer.Argument(metavar="NAME|PATH", help="The accelerator.")]
CheckedOption = Annotated[
    DeviceChoice | None,
    typer.Option("--device", help="Check the model alone, or the RTL too; where there is RTL, both."),
]
LayersOption = Annotated[int, typer.Option("--layers", min=1, metavar="N", help="Random layers, of all operations.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, metavar="S", help="Of the random layers.")]
WavesOption = Annotated[
    Path | None,
    typer.Option("--waves", metavar="FILE.fst|FILE.vcd", help="Where the waveform of a wrong layer goes."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", short_help="Hold an accelerator's model and RTL to what it means.")(check_command)


def check_command(
    accelerator: AcceleratorArgument,
    device: CheckedOption = None,
    layers: LayersOption = 50,
    seed: SeedOption = 0,
    board: BoardOption = "host",
    waves: WavesOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Run random layers of each operation on the accelerator's model and on its RTL, and compare every byte with what
    the layers mean. The first wrong layer is made as small as can be. Cycles stand side by side. Instructions of a core
    are compared one by one before that."""
    with progress() as step:
        from uaccel.accelerator import load_accelerator
        from uaccel.build.rtl.description import has_rtl
        from uaccel.runner.request import Devices
        from uaccel.testing.accelerator_check import CheckRequest, check

        found = load_accelerator(accelerator)
        kind = device.value if device is not None else "rtl" if has_rtl(found.folder) else "model"
        Devices(kind, waves).require_sense([found.name])
        waveform = waves if waves is not None or kind == "model" else Path(f"{found.name}-check.fst")
        report = check(CheckRequest(found, kind, layers, seed, board, waveform), step)
    document = report.to_json()
    emit(document, as_json, lambda console: _show(console, document))
    report.require_right()


def _show(console: Console, report: dict[str, Any]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    table.add_column("Operation", overflow="fold")
    for name in ("Layers", "Predicted", "Model", "RTL", "Model is off by", "at most"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in report["operations"]:
        cycles = row["cycles"]
        table.add_row(
            row["operation"] if row["operator"] == row["operation"] else f"{row['operation']} ({row['operator']})",
            str(row["layers"]),
            f"{row['predicted']:,}",
            *(f"{cycles[device]:,}" if device in cycles else "" for device in ("model", "rtl")),
            *("" if row[key] is None else f"{row[key]:.1%}" for key in ("model_error", "largest_model_error")),
        )
    console.print(table)
    if report["not_drawn"]:
        console.print(f"  Not drawn: {', '.join(report['not_drawn'])}", highlight=False)
    if report["instructions"] and report["wrong"] is None:
        console.print(f"  Every result of {report['instructions']:,} instructions is what they mean", highlight=False)
    if report["wrong"] is None:
        console.print(
            f"  Every byte of {report['layers']} layers is what they mean (seed {report['seed']})", highlight=False
        )
