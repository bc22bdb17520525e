"""Defines ``uaccel evaluate``, which measures a model's accuracy on a board over samples with labels."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uaccel.cli.command import group
from uaccel.cli.options import Cached, ModelCommand
from uaccel.cli.output import emit, progress
from uaccel.runner.options import ProjectRunOptions
from uaccel.util.option import option

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, kw_only=True)
class EvaluateCommand(ModelCommand, Cached):
    """Run a model on a board over samples with labels, and tell how often it is right (top-1) and its AUC."""

    data: Path = option(MISSING, "An .npz or .npy file, or a folder of .npy files.", metavar="DATA")
    labels: Path = option(MISSING, "Classes from 0: .npy, .csv or .txt.", metavar="LABELS")
    output: Path | None = option(
        None,
        "Where results are kept as they come (MODEL-BOARD.jsonl); the same command goes on from there.",
        "-o",
        metavar="KEPT.jsonl",
    )
    limit: int | None = option(None, "The first N samples alone.", metavar="N", least=1)
    wishes: ProjectRunOptions = group(only=("port", "no-flash"))

    def run(self) -> None:
        request = self.request(self.model, wishes=self.wishes)
        place = self.output or Path(f"{self.model.stem}-{request.board.name}.jsonl")
        with progress() as step:
            from uaccel.runner.evaluate import Evaluation, evaluate

            wanted = Evaluation(request, self.data, self.labels, place, self.limit)
            report = evaluate(wanted, step, self.cache)
        emit(report, self.as_json, lambda console: _show(console, report))


def _show(console: Console, report: dict[str, Any]) -> None:
    resumed = f", {report['resumed']:,} of them from {report['kept']}" if report["resumed"] else ""
    console.print(f"  Samples   {report['samples']:,} on board {report['board']}{resumed}", soft_wrap=True)
    if report["top1"] is not None:
        console.print(f"  Top-1     {100 * report['top1']:.2f} %, {report['correct']:,} are right", soft_wrap=True)
    console.print(f"  AUC       {'-' if report['auc'] is None else format(report['auc'], '.4f')}", soft_wrap=True)
