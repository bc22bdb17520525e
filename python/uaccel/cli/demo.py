"""``uaccel demo``: the main job from end to end, with a model and an accelerator that come along."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from uaccel.board import Board, QemuRun, SerialRun, available_boards, load_board
from uaccel.cache import cache_of_user
from uaccel.cli.model_options import BoardOption
from uaccel.cli.output import JsonFlag, emit, progress
from uaccel.cli.verdict import opinion, show_verified
from uaccel.errors import BoardError, VerificationError
from uaccel.resources import models, page
from uaccel.running.engines import Engines
from uaccel.running.request import RunRequest, Wishes

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from uaccel.running.perform import Performed

ACCELERATOR: Final = "matrix8"
EMULATED: Final = "mps2_an386"
"""The board to try after this computer."""
PAGE: Final = "bring-your-accelerator.md"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", short_help="Compile, build, run and verify a model that comes along.")(demo_command)


def demo_command(board: BoardOption = "host", as_json: JsonFlag = False) -> None:
    """Compile a trained model, partly for an accelerator, run it, and prove every output right.

    It needs no file of yours, and says what to try next.
    """
    target = load_board(board)
    _require_no_hardware(target)
    model = models()["gesture"]
    samples = model.with_name("gesture_samples.npz")
    wishes = Wishes(samples, verify=True)
    job = RunRequest(model, target, Path(board).name, "", None, wishes, Engines((ACCELERATOR,)), False)
    with progress() as step:
        from uaccel.running.perform import perform

        ran = perform(job, step, cache_of_user())
        told, complaint = _second_opinion(ran, model)
    complaint = ran.complaint or complaint
    report = ran.report | {
        "verify": ran.report["verify"] | told,
        "answers": _answers(ran, model.with_name("gesture_labels.txt").read_text(encoding="utf-8").split()),
        "model_file": str(model),
        "samples_file": str(samples),
        "next": [] if complaint else list(_next(board, model, samples)),
    }
    emit(report, as_json, lambda console: _show(console, report, target))
    if complaint:
        raise VerificationError(complaint)


def _require_no_hardware(board: Board) -> None:
    if isinstance(board.runs[0], SerialRun):
        names = [other.name for other in available_boards() if _runs_the_demo(other)]
        raise BoardError(
            f"board {board.name} is a real one, and the demo runs where nothing is flashed: {', '.join(names)}; "
            f"how a real board is used tells {page('boards.md')}"
        )


def _runs_the_demo(board: Board) -> bool:
    """Nothing is flashed, and an accelerator reaches its memory."""
    reaches = not board.memories or any(memory.accelerator for memory in board.memories)
    return reaches and not isinstance(board.runs[0], SerialRun)


def _second_opinion(ran: Performed, model: Path) -> tuple[dict[str, Any], str]:
    """TensorFlow Lite Micro's, a program that shares no code with this one, where it is installed; and what it
    finds wrong, in words."""
    from uaccel.running.second_opinion import second_opinion, tflite_micro

    found = second_opinion(
        ran.compiled.model, model, ran.measured.samples, ran.measured.run.outputs, runtime=tflite_micro
    )
    if found is None or found.equal == found.elements:
        return opinion(found), ""
    apart = found.elements - found.equal
    return opinion(found), f"verification failed: {apart} of {found.elements} elements differ from {found.runtime}"


def _answers(ran: Performed, labels: list[str]) -> list[dict[str, str]]:
    """What each sample is, and what the firmware takes it for; there is a sample of each label, in their order."""
    taken = [labels[int(outputs[0].argmax())] for outputs in ran.measured.run.outputs]
    return [{"sample": label, "answer": answer} for label, answer in zip(labels, taken, strict=True)]


def _next(board: str, model: Path, samples: Path) -> Iterator[dict[str, str]]:
    """What to try after this, as commands that work as they stand."""
    uaccel, engine = _program(), f"--accelerator {ACCELERATOR}"
    file, inputs, where = (shlex.quote(str(word)) for word in (model, samples, board))
    if board == "host":
        about = "The same firmware on an emulated Arm Cortex-M4, its instructions counted:"
        yield {"about": about, "command": f"{uaccel} demo --board {EMULATED}"}
    about = "The same step by step, as with a model of yours:"
    yield {"about": about, "command": f"{uaccel} run {file} --board {where} {engine} --inputs {inputs} --verify"}
    yield {"about": "Why each layer runs where it does:", "command": f"{uaccel} explain {file} {engine}"}
    yield {"about": "An accelerator of your own, to begin with:", "command": f"{uaccel} new accelerator mine"}


def _program() -> str:
    """What to type for this command; where the shell would not find it, its path."""
    if shutil.which("uaccel"):
        return "uaccel"
    itself = sys.argv[0]
    return shlex.quote(itself) if Path(itself).name == "uaccel" else f"{shlex.quote(sys.executable)} -m uaccel"


def _show(console: Console, report: dict[str, Any], board: Board) -> None:
    from uaccel.cli.tables import show_lines, show_memory

    emulated = ", emulated by QEMU" if isinstance(board.runs[0], QemuRun) else ""
    about = [
        ("Model", "gesture: which of six gestures did an accelerometer see? Trained, int8, 32 samples of x, y, z"),
        ("Hardware", f"{ACCELERATOR}, a matrix unit that comes along; its driver is real, its device a model in C"),
        ("Board", f"{board.description}{emulated} ({board.name})"),
    ]
    show_lines(console, about)
    console.print(_table(report["layers"]))
    show_lines(console, list(_engines(report)))
    show_memory(console, report)
    right = sum(row["sample"] == row["answer"] for row in report["answers"])
    show_lines(console, [("Answers", f"{right} of {len(report['answers'])} right: {_answer_words(report['answers'])}")])
    show_verified(console, report)
    read = {"about": "How to describe hardware of yours, and other pages beside it:", "command": page(PAGE)}
    for row in (*report["next"], read):
        console.print(f"\n  {row['about']}\n    {row['command']}", soft_wrap=True)


def _table(layers: list[dict[str, Any]]) -> Table:
    """A row a layer, with what is known of its cost."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    costs = {"macs": "MACs", "instructions": "Instructions", "cycles": f"Cycles of {ACCELERATOR}"}
    known = [key for key in costs if any(layer[key] for layer in layers)]
    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    for title in ("Layer", "Runs on"):
        table.add_column(title, no_wrap=True)
    for key in known:
        table.add_column(costs[key], justify="right", no_wrap=True)
    for layer in layers:
        table.add_row(layer["name"], layer["engine"], *(f"{layer[key]:,}" if layer[key] else "" for key in known))
    return table


def _engines(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Who computed how much, and why the accelerator leaves the rest to the CPU."""
    layers, total = report["layers"], sum(layer["macs"] for layer in report["layers"])
    reasons: dict[str, list[str]] = {}
    for engine in (ACCELERATOR, "cpu"):
        its = [layer for layer in layers if layer["engine"] == engine]
        macs = sum(layer["macs"] for layer in its)
        calls = sum(layer["calls"] for layer in its)
        driver = f"; {calls} calls of its driver in {report['runs']} inferences" if engine != "cpu" else ""
        yield "Engine", f"{engine}: {len(its)} layers, {macs:,} multiply-accumulates ({macs / total:.0%}){driver}"
    for layer in layers:
        _, refused, reason = layer["reason"].partition(f"; {ACCELERATOR}: ")
        if refused:
            reasons.setdefault(reason, []).append(layer["name"])
    for reason, names in reasons.items():
        yield "Why cpu", f"{', '.join(names)}: {reason}"
    if report["instructions"] is not None:
        yield "Time", f"{report['instructions']:,} instructions, one inference"


def _answer_words(answers: list[dict[str, str]]) -> str:
    pairs = [(row["sample"], row["answer"]) for row in answers]
    return ", ".join(sample if sample == answer else f"{sample} taken for {answer}" for sample, answer in pairs)
