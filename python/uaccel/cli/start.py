"""Defines ``uaccel new``, which writes starting points, and ``uaccel demo``, which shows a run from end to end."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from uaccel.board import Board, QemuRun, SerialRun, available_boards, load_board
from uaccel.board.chips import Chip, chip_board_text, core_named, find_chip, starter_text
from uaccel.board.cmsis_pack import chip_in_pack
from uaccel.board.types import ports_folder
from uaccel.cli.command import Command, add_command
from uaccel.cli.options import OnBoard
from uaccel.cli.output import emit, new_table, progress, show_lines
from uaccel.cli.tables import show_latency, show_memory
from uaccel.cli.verdict import show_verified
from uaccel.errors import BoardError, UaccelError, VerificationError, need
from uaccel.runner.options import EngineRequest, ProjectRunOptions
from uaccel.runner.request import RunRequest
from uaccel.session.board_ports import chip_of_pyocd
from uaccel.util import incoming
from uaccel.util.cache import cache_of_user
from uaccel.util.files import models, page
from uaccel.util.option import argument, option

# ``uaccel new``: a board file or an accelerator that works, for the user to change.


class NewBoardCommand(Command):
    """Write a board file with comments, in this folder: a board that works, for you to change."""

    name: str = argument("The board's name; NAME.toml is written.", "NAME")
    like: str = option("mps2_an386", "The board to begin with.", metavar="BOARD")
    with_port: bool = option(False, "Copy the drivers too, into NAME_port, to change them.")
    target: str | None = option(
        None, "A chip instead of a board: one that uaccel, pyOCD or a pack knows. No driver is needed.", metavar="CHIP"
    )
    core: str = option(
        "", "The chip's processor, where only pyOCD knows the chip, or where it has several.", metavar="CORE"
    )
    pack: Path | None = option(
        None, "A CMSIS-Pack that has the chip: memories, processor, flash algorithms.", metavar="FILE"
    )

    def run(self) -> None:
        name = self.name
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise BoardError(f"{name!r} cannot name a board; wanted lower-case letters, digits and underscores")
        if self.core and self.target is None and self.pack is None:
            raise BoardError(f"--core {self.core} is for a chip: name it with --target")
        if self.target is not None or self.pack is not None:
            if self.with_port:
                raise BoardError(
                    "--with-port copies drivers, and a board with --target has none; leave one of them out"
                )
            _new_board_of_chip(name, _chip(self.target or "", self.core, self.pack), self.as_json)
            return
        model = load_board(self.like)
        port = f"{name}_port" if self.with_port else None
        written = [Path(f"{name}.toml"), *([Path(port)] if port else [])]
        _require_new(written)
        written[0].write_text(starter_text(model, name, port or _own_port(model)), encoding="utf-8")
        if port is not None:
            incoming.copy_folder(model.port.folder, Path(port))
        load_board(written[0])
        files = [str(path) for path in written]
        _told(name, {"like": model.name}, files, f"{model.name} as {name}", self.as_json)


def commands() -> typer.Typer:
    """Makes the group of commands."""
    group = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Write a working starting point.")
    add_command(group, "board", None, NewBoardCommand)
    add_command(group, "accelerator", None, NewAcceleratorCommand)
    return group


def _chip(target: str, core: str, pack: Path | None) -> Chip:
    if pack is not None:
        return chip_in_pack(pack, target, core)
    chip = find_chip(target)
    if chip is None:
        if core:
            core_named(core)
        chip = chip_of_pyocd(target, core)
    return chip


def _new_board_of_chip(name: str, chip: Chip, as_json: bool) -> None:
    file = Path(f"{name}.toml")
    _require_new([file])
    file.write_text(chip_board_text(name, chip), encoding="utf-8")
    try:
        load_board(file)
    except BoardError:
        file.unlink()
        raise
    _told(name, {"target": chip.name}, [str(file)], f"{chip.about}, through a debug probe (RTT)", as_json)


def _require_new(paths: list[Path]) -> None:
    for path in paths:
        need(not path.exists(), f"{path} exists already; choose another name, or remove it", UaccelError)


def _told(name: str, origin: dict[str, str], files: list[str], what: str, as_json: bool) -> None:
    emit(
        {"board": name, **origin, "files": files},
        as_json,
        lambda console: console.print(
            f"  Wrote {' and '.join(files)}: {what}.\n  Use it with --board ./{name}.toml",
            soft_wrap=True,
        ),
    )


class NewAcceleratorCommand(Command):
    """Write a small accelerator that works, for you to change: description, driver, device model and tests."""

    name: str = argument("The accelerator's name, as C will have it.", "NAME")
    folder: Path | None = argument("The folder to write (NAME).", "DIR", None)

    def run(self) -> None:
        from uaccel.accelerator.discovery import write_starter

        target = self.folder or Path(self.name)
        files = [str(target / path) for path in write_starter(self.name, target)]
        where = str(target) if target.is_absolute() else f"./{target}"
        get_pytest = "" if find_spec("pytest") else "pip install pytest; "  # no part of uaccel
        test, use = shlex.join(["pytest", str(target)]), shlex.join(["--accelerator", where])
        emit(
            {"accelerator": self.name, "folder": str(target), "files": files},
            self.as_json,
            lambda console: console.print(
                "\n".join(f"  Wrote {file}" for file in files)
                + f"\n  Test it with: {get_pytest}{test}\n  Use it with {use}\n  How to change it tells {page(PAGE)}",
                soft_wrap=True,
            ),
        )


def _own_port(board: Board) -> str | None:
    """Returns the path of a port from here if it is the user's own; None for one that comes with uaccel."""
    if board.port.folder.parent == ports_folder():
        return None
    return os.path.relpath(board.port.folder)


# ``uaccel demo``: compile, build, run and verify a model that comes along, partly on an accelerator.

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from uaccel.runner.perform import Performed

ACCELERATOR: Final = "matrix8"
EMULATED: Final = "mps2_an386"  # The board that the demo suggests next.
PAGE: Final = "bring-your-accelerator.md"


class DemoCommand(OnBoard):
    """Compile a trained model, partly for an accelerator, run it, and prove every output right.

    It needs no file of yours, and says what to try next.
    """

    def run(self) -> None:
        board, model = load_board(self.board), models()["gesture"]
        _require_no_hardware(board)
        samples = model.with_name("gesture_samples.npz")
        wishes, engines = ProjectRunOptions(samples, verify="outputs"), EngineRequest((ACCELERATOR,))
        request = RunRequest(model, board, Path(self.board).name, wishes, engines, workspace_io=False)
        with progress() as step:
            from uaccel.runner.perform import perform

            ran = perform(request, step, cache_of_user())
        complaint = ran.complaint
        report = ran.report | {
            "answers": _answers(ran, incoming.read_text(model.with_name("gesture_labels.txt")).split()),
            "model_file": str(model),
            "samples_file": str(samples),
            "next": [] if complaint else list(_next(self.board, model, samples)),
        }
        emit(report, self.as_json, lambda console: _show(console, report, board))
        need(not complaint, complaint, VerificationError)


def _require_no_hardware(board: Board) -> None:
    if isinstance(board.runs[0], SerialRun):
        names = [other.name for other in available_boards() if _runs_the_demo(other)]
        raise BoardError(
            f"board {board.name} is a real one, and the demo runs where nothing is flashed: {', '.join(names)}; "
            f"how a real board is used tells {page('boards.md')}"
        )


def _runs_the_demo(board: Board) -> bool:
    """Says whether the demo runs there: nothing is flashed, and an accelerator reaches the memory."""
    reaches = not board.memories or any(memory.accelerator for memory in board.memories)
    return reaches and not isinstance(board.runs[0], SerialRun)


def _answers(ran: Performed, labels: list[str]) -> list[dict[str, str]]:
    """Returns what each sample is and what the firmware takes it for; samples are in the order of labels, one each."""
    taken = [labels[int(outputs[0].argmax())] for outputs in ran.measured.run.outputs]
    return [{"sample": label, "answer": answer} for label, answer in zip(labels, taken, strict=True)]


def _next(board: str, model: Path, samples: Path) -> Iterator[dict[str, str]]:
    """Yields what to try next, as commands that work as they stand."""
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
    """Returns what to type for this command: its path if the shell would not find it."""
    if shutil.which("uaccel"):
        return "uaccel"
    itself = sys.argv[0]
    return shlex.quote(itself) if Path(itself).name == "uaccel" else f"{shlex.quote(sys.executable)} -m uaccel"


def _show(console: Console, report: dict[str, Any], board: Board) -> None:
    emulated = ", emulated by QEMU" if isinstance(board.runs[0], QemuRun) else ""
    about = [
        ("Model", "gesture: which of six gestures did an accelerometer see? Trained, int8, 32 samples of x, y, z"),
        ("Hardware", f"{ACCELERATOR}, a matrix unit that comes along; its driver is real, its device a model in C"),
        ("Board", f"{board.description}{emulated} ({board.name})"),
    ]
    show_lines(console, about)
    console.print(_table(report["layers"]))
    show_lines(console, list(_engines(report)))
    if report["instructions"] is not None:
        show_latency(console, report)
    show_memory(console, report)
    right = sum(row["sample"] == row["answer"] for row in report["answers"])
    show_lines(console, [("Answers", f"{right} of {len(report['answers'])} right: {_answer_words(report['answers'])}")])
    show_verified(console, report)
    read = {"about": "How to describe hardware of yours, and other pages beside it:", "command": page(PAGE)}
    for row in (*report["next"], read):
        console.print(f"\n  {row['about']}\n    {row['command']}", soft_wrap=True)


def _table(layers: list[dict[str, Any]]) -> Table:
    """Makes a table with a row for each layer, and what is known of its cost."""
    costs = {"macs": "MACs", "instructions": "Instructions", "cycles": f"Cycles of {ACCELERATOR}"}
    known = [key for key in costs if any(layer[key] for layer in layers)]
    table = new_table("Layer", "Runs on", *(f">{costs[key]}" for key in known))
    for layer in layers:
        table.add_row(layer["name"], layer["engine"], *(f"{layer[key]:,}" if layer[key] else "" for key in known))
    return table


def _engines(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Says who computed how much, and why the accelerator leaves the rest to the CPU."""
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


def _answer_words(answers: list[dict[str, str]]) -> str:
    pairs = [(row["sample"], row["answer"]) for row in answers]
    return ", ".join(sample if sample == answer else f"{sample} taken for {answer}" for sample, answer in pairs)
