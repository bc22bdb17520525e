"""Defines ``uaccel evaluate``, which measures a model's accuracy on a board over samples with labels."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from uaccel.cli.command import group
from uaccel.cli.options import Cached, ModelCommand
from uaccel.cli.output import emit, progress, show_lines
from uaccel.frontend.bundle import stem
from uaccel.runner.options import ProjectRunOptions
from uaccel.util.option import option

if TYPE_CHECKING:
    from rich.console import Console


WORST: Final = 10  # So many classes are shown, those that are the least often right.


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
    frames: Literal["last", "mean", "max"] | None = option(
        None,
        "Samples are sequences of frames, for a model with a state: the scores of the last frame count, or of all "
        "the mean, or the largest.",
        metavar="last|mean|max",
    )
    wishes: ProjectRunOptions = group(only=("port", "no-flash"))

    def run(self) -> None:
        request = self.request(self.model, wishes=self.wishes)
        place = self.output or Path(f"{stem(self.model)}-{request.board.name}.jsonl")
        with progress() as step:
            from uaccel.runner.evaluate import Evaluation, evaluate

            wanted = Evaluation(request, self.data, self.labels, place, self.limit, self.frames)
            report = evaluate(wanted, step, self.cache)
        emit(report, self.as_json, lambda console: show_evaluation(console, report))


def show_evaluation(console: Console, report: dict[str, Any]) -> None:
    resumed = f", {report['resumed']:,} of them from {report['kept']}" if report["resumed"] else ""
    show_lines(console, [("Inputs", note) for note in report.get("inputs_made", ())])
    console.print(f"  Samples   {report['samples']:,} on board {report['board']}{resumed}", soft_wrap=True)
    if report["top1"] is not None:
        console.print(f"  Top-1     {100 * report['top1']:.2f} %, {report['correct']:,} are right", soft_wrap=True)
    worst = sorted(report.get("classes", ()), key=lambda row: row["correct"] / row["samples"])[:WORST]
    for row in worst:
        taken = f"; most others are taken for {row['taken_for']}" if row["taken_for"] is not None else ""
        show_lines(console, [("Class", f"{row['label']}: {row['correct']:,} of {row['samples']:,} are right{taken}")])
    auc = "unknown: no samples of some class" if report["auc"] is None else format(report["auc"], ".4f")
    console.print(f"  AUC       {auc}", soft_wrap=True)
    console.print(f"  Kept      {report['kept']}: the same command goes on from there", soft_wrap=True)
