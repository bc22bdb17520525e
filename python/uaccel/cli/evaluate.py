"""Defines ``uaccel evaluate``, which measures a model's accuracy on a board over samples with labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uaccel.cli.cache import NoCacheFlag, open_cache
from uaccel.cli.options import ModelArgument, PlacedOptions
from uaccel.cli.output import add_command, emit, progress
from uaccel.cli.run import NoFlashFlag, PortOption
from uaccel.runner.request import ProjectRunOptions

if TYPE_CHECKING:
    from rich.console import Console

DataOption = Annotated[
    Path,
    typer.Option("--data", metavar="DATA", help="An .npz or .npy file, or a folder of .npy files.", readable=False),
]
LabelsOption = Annotated[
    Path,
    typer.Option("--labels", metavar="LABELS", help="Classes from 0: .npy, .csv or .txt.", readable=False),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="KEPT.jsonl",
        help="Where results are kept as they come (MODEL-BOARD.jsonl); the same command goes on from there.",
    ),
]
LimitOption = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="The first N samples alone.")]


@dataclass(frozen=True, kw_only=True)
class EvaluateCommand(PlacedOptions):
    """Run a model on a board over samples with labels, and tell how often it is right (top-1) and its AUC."""

    model: ModelArgument
    data: DataOption
    labels: LabelsOption
    output: OutputOption = None
    limit: LimitOption = None
    port: PortOption = ""
    no_flash: NoFlashFlag = False
    no_cache: NoCacheFlag = False

    def run(self) -> None:
        request = self.request(self.model, wishes=ProjectRunOptions(port=self.port, flashes=not self.no_flash))
        place = self.output or Path(f"{self.model.stem}-{request.board.name}.jsonl")
        with progress() as step:
            from uaccel.runner.evaluate import Evaluation, evaluate

            wanted = Evaluation(request, self.data, self.labels, place, self.limit)
            report = evaluate(wanted, step, open_cache(self.no_cache))
        emit(report, self.as_json, lambda console: _show(console, report))


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, "evaluate", "Tell a model's accuracy on a board.", EvaluateCommand)


def _show(console: Console, report: dict[str, Any]) -> None:
    resumed = f", {report['resumed']:,} of them from {report['kept']}" if report["resumed"] else ""
    console.print(f"  Samples   {report['samples']:,} on board {report['board']}{resumed}", soft_wrap=True)
    if report["top1"] is not None:
        console.print(f"  Top-1     {100 * report['top1']:.2f} %, {report['correct']:,} are right", soft_wrap=True)
    console.print(f"  AUC       {'-' if report['auc'] is None else format(report['auc'], '.4f')}", soft_wrap=True)
