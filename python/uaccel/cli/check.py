"""Defines ``uaccel check``, which compares an accelerator's meaning, model and RTL on random layers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from uaccel.cli.options import OnBoard
from uaccel.cli.output import emit, new_table, progress
from uaccel.runner.request import KINDS, Devices
from uaccel.util.option import argument, option

if TYPE_CHECKING:
    from rich.console import Console


class CheckCommand(OnBoard):
    """Run random layers of each operation on the accelerator's model and on its RTL, and compare every byte with what
    the layers mean. The first wrong layer is made as small as can be. Cycles stand side by side. Instructions of a core
    are compared one by one before that."""

    accelerator: str = argument("The accelerator.", "NAME|PATH")
    device: str | None = option(None, "Check the model alone, or the RTL too; where there is RTL, both.", choices=KINDS)
    layers: int = option(50, "Random layers, of all operations.", metavar="N", least=1)
    seed: int = option(0, "Of the random layers.", metavar="S", least=0)
    layer: str | None = option(None, "This layer alone, in the words of a check that failed.", metavar="LAYER")
    waves: Path | None = option(None, "Where the waveform of a wrong layer goes.", metavar="FILE.fst|FILE.vcd")

    def run(self) -> None:
        with progress() as step:
            from uaccel.accelerator import load_accelerator
            from uaccel.build.rtl.description import has_rtl
            from uaccel.testing.accelerator_check import CheckRequest, check
            from uaccel.testing.random_case import Case

            found = load_accelerator(self.accelerator)
            kind = self.device or ("rtl" if has_rtl(found.folder) else "model")
            Devices(kind, self.waves).require_sense([found.name])
            waveform = self.waves if self.waves is not None or kind == "model" else Path(f"{found.name}-check.fst")
            layer = None if self.layer is None else Case.of(self.layer)
            question = CheckRequest(found, kind, self.layers, self.seed, self.board, waveform, layer=layer)
            report = check(question, step)
        document = report.to_json()
        emit(document, self.as_json, lambda console: _show(console, document))
        report.require_right()


def _show(console: Console, report: dict[str, Any]) -> None:
    numbers = ("Layers", "Cycles: predicted", "model", "RTL", "model's off by", "at most")
    table = new_table("~Operation", *(f">{name}" for name in numbers))
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
