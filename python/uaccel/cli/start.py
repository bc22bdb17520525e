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
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from uaccel.board import Board, QemuRun, SerialRun, available_boards, load_board
from uaccel.board.chips import Chip, chip_board_text, core_named, find_chip, starter_text
from uaccel.board.cmsis_pack import chip_in_pack
from uaccel.board.types import ports_folder
from uaccel.cli.options import BoardOption, board_names, chip_names
from uaccel.cli.output import JsonFlag, emit, progress
from uaccel.cli.verdict import show_verified
from uaccel.errors import BoardError, UaccelError, VerificationError
from uaccel.runner.request import EngineRequest, ProjectRunOptions, RunRequest
from uaccel.session.board_ports import chip_of_pyocd
from uaccel.util import incoming
from uaccel.util.cache import cache_of_user
from uaccel.util.files import models, page

# ``uaccel new``: a board file or an accelerator that works, for the user to change.

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The board's name; NAME.toml is written.")]
AcceleratorArgument = Annotated[str, typer.Argument(metavar="NAME", help="The accelerator's name, as C will have it.")]
FolderArgument = Annotated[Path | None, typer.Argument(metavar="DIR", help="The folder to write (NAME).")]
LikeOption = Annotated[
    str,
    typer.Option("--like", metavar="BOARD", help="The board to begin with.", autocompletion=board_names),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="CHIP",
        help="A chip instead of a board: one that uaccel, pyOCD or a pack knows. No driver is needed.",
        autocompletion=chip_names,
    ),
]
CoreOption = Annotated[
    str,
    typer.Option(
        "--core", metavar="CORE", help="The chip's processor, where only pyOCD knows the chip, or where it has several."
    ),
]
PackOption = Annotated[
    Path | None,
    typer.Option(
        "--pack", metavar="FILE", help="A CMSIS-Pack that has the chip: memories, processor, flash algorithms."
    ),
]
PortFlag = Annotated[bool, typer.Option("--with-port", help="Copy the drivers too, into NAME_port, to change them.")]


def add_new(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Write a working starting point.")
    group.command("board")(new_board)
    group.command("accelerator")(new_accelerator)
    app.add_typer(group, name="new")


def new_board(
    name: NameArgument,
    like: LikeOption = "mps2_an386",
    with_port: PortFlag = False,
    target: TargetOption = None,
    core: CoreOption = "",
    pack: PackOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a board file with comments, in this folder: a board that works, for you to change."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise BoardError(f"{name!r} cannot name a board; wanted lower-case letters, digits and underscores")
    if core and target is None and pack is None:
        raise BoardError(f"--core {core} is for a chip: name it with --target")
    if target is not None or pack is not None:
        if with_port:
            raise BoardError("--with-port copies drivers, and a board with --target has none; leave one of them out")
        _new_board_of_chip(name, _chip(target or "", core, pack), as_json)
        return
    model = load_board(like)
    port = f"{name}_port" if with_port else None
    written = [Path(f"{name}.toml"), *([Path(port)] if port else [])]
    _require_new(written)
    written[0].write_text(starter_text(model, name, port or _own_port(model)), encoding="utf-8")
    if port is not None:
        incoming.copy_folder(model.port.folder, Path(port))
    load_board(written[0])
    files = [str(path) for path in written]
    _told(name, {"like": model.name}, files, f"{model.name} as {name}", as_json)


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
        if path.exists():
            raise UaccelError(f"{path} exists already; choose another name, or remove it")


def _told(name: str, origin: dict[str, str], files: list[str], what: str, as_json: bool) -> None:
    emit(
        {"board": name, **origin, "files": files},
        as_json,
        lambda console: console.print(
            f"  Wrote {' and '.join(files)}: {what}.\n  Use it with --board ./{name}.toml",
            soft_wrap=True,
        ),
    )


def new_accelerator(name: AcceleratorArgument, folder: FolderArgument = None, as_json: JsonFlag = False) -> None:
    """Write a small accelerator that works, for you to change: description, driver, device model and tests."""
    from uaccel.accelerator.discovery import write_starter

    target = folder or Path(name)
    files = [str(target / path) for path in write_starter(name, target)]
    where = str(target) if target.is_absolute() else f"./{target}"
    get_pytest = "" if find_spec("pytest") else "pip install pytest; "  # no part of uaccel
    test, use = shlex.join(["pytest", str(target)]), shlex.join(["--accelerator", where])
    emit(
        {"accelerator": name, "folder": str(target), "files": files},
        as_json,
        lambda console: console.print(
            "\n".join(f"  Wrote {file}" for file in files)
            + f"\n  Test it with: {get_pytest}{test}\n  Use it with {use}",
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


def add_demo(app: typer.Typer) -> None:
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
    wishes = ProjectRunOptions(samples, verify=True)
    job = RunRequest(model, target, Path(board).name, "", None, wishes, EngineRequest((ACCELERATOR,)), False)
    with progress() as step:
        from uaccel.runner.perform import perform

        ran = perform(job, step, cache_of_user())
    complaint = ran.complaint
    report = ran.report | {
        "answers": _answers(ran, incoming.read_text(model.with_name("gesture_labels.txt")).split()),
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
    from uaccel.cli.output import show_lines, show_memory

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
    """Makes a table with a row for each layer, and what is known of its cost."""
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
    if report["instructions"] is not None:
        yield "Time", f"{report['instructions']:,} instructions, one inference"


def _answer_words(answers: list[dict[str, str]]) -> str:
    pairs = [(row["sample"], row["answer"]) for row in answers]
    return ", ".join(sample if sample == answer else f"{sample} taken for {answer}" for sample, answer in pairs)
