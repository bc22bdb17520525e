"""``uaccel create``: an archive to a firmware project."""

from __future__ import annotations

import shlex
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uaccel.board import load_board
from uaccel.cli.completion import board_names
from uaccel.cli.output import JsonFlag, emit, progress
from uaccel.cli.project_options import OptionOption, StandaloneCrtOption, TemplateOption, read_options

if TYPE_CHECKING:
    from rich.console import Console

ArchiveArgument = Annotated[
    Path, typer.Argument(metavar="OUT.tar", help="The archive, as 'uaccel compile' writes it.", readable=False)
]
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The project's folder, a new one.")]
BoardOption = Annotated[
    str,
    typer.Option(
        "--board",
        "-b",
        metavar="BOARD",
        help="A board's name or file (the archive's when left away).",
        autocompletion=board_names,
    ),
]


class Protocol(str, Enum):
    """What firmware speaks."""

    session = "session"
    mlperf_tiny = "mlperf-tiny"


ProtocolOption = Annotated[
    Protocol,
    typer.Option("--protocol", help="What the firmware speaks: uaccel's sessions, or MLPerf Tiny's serial protocol."),
]


EnergyPinOption = Annotated[
    Path | None,
    typer.Option(
        "--energy-pin",
        metavar="PIN.c",
        help="MLPerf Tiny's energy mode: C with the pin that the power monitor watches.",
        readable=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("create", short_help="Make a firmware project of an archive.")(create_command)


def create_command(
    archive: ArchiveArgument,
    folder: FolderArgument,
    board: BoardOption = "",
    template: TemplateOption = None,
    option: OptionOption = None,
    protocol: ProtocolOption = Protocol.session,
    energy_pin: EnergyPinOption = None,
    standalone_crt: StandaloneCrtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a firmware project of an archive: plain C and CMake in a folder of its own."""
    target = load_board(board) if board else None
    options = read_options(option)
    with progress() as step:
        from uaccel.project.create import create_from_archive

        step(f"create {folder}")
        metadata = create_from_archive(
            archive,
            folder,
            target,
            template=template,
            options=options,
            runtime=standalone_crt,
            protocol="" if protocol is Protocol.session else protocol.value,
            energy_pin=energy_pin,
        )
    report = {
        "project": str(folder),
        "model": metadata.model,
        "board": target.name if target else metadata.board,
        "archive": str(archive),
        "template": None if template is None else str(template),
    }
    emit(report, as_json, lambda console: _show(console, report))


def _show(console: Console, report: dict[str, Any]) -> None:
    project = report["project"]
    console.print(f"  Project   {project}, model {report['model']} for board {report['board']}", soft_wrap=True)
    console.print(f"  Next      uaccel build {shlex.quote(str(project))}", soft_wrap=True)
