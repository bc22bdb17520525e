"""``uaccel flash``: a project's firmware onto its board."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from uaccel.bench import hold_if_known, port_of_project
from uaccel.cli.completion import ports_here
from uaccel.cli.output import JsonFlag, emit, progress
from uaccel.cli.project_options import OptionOption, ProjectArgument, VerboseFlag, read_options

if TYPE_CHECKING:
    from rich.console import Console

PortOption = Annotated[
    str,
    typer.Option(
        "--port",
        "-p",
        metavar="PORT",
        help="The board's port: a device path, or auto to look for it.",
        autocompletion=ports_here,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("flash", short_help="Write a project's firmware to its board.")(flash_command)


def flash_command(
    folder: ProjectArgument,
    port: PortOption = "",
    verbose: VerboseFlag = False,
    option: OptionOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a project's firmware to its board, through its Project API server."""
    options = read_options(option)
    with progress() as step, hold_if_known(port_of_project(folder, port)):
        from uaccel.project.flash import flash_any

        step(f"flash {folder}")
        flashed = flash_any(folder, options, port=port, verbose=verbose)
    report = {"project": str(folder), "platform": flashed.platform, "board": flashed.board, "flashed": flashed.done}
    emit(report, as_json, lambda console: _show(console, report))


def _show(console: Console, report: dict[str, Any]) -> None:
    if report["flashed"]:
        console.print(f"  Flashed   {report['board'] or report['project']}", soft_wrap=True)
    else:
        console.print(f"  Flashed   nothing: 'uaccel run' loads the firmware of board {report['board']} itself")
