"""``uaccel build``: a project's firmware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from uaccel.cli.output import JsonFlag, emit, progress
from uaccel.cli.project_options import OptionOption, ProjectArgument, VerboseFlag, read_options

if TYPE_CHECKING:
    from rich.console import Console

ObserveFlag = Annotated[
    bool, typer.Option("--observe", help="Firmware that can show every layer, in a build folder of its own.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("build", short_help="Build a project's firmware.")(build_command)


def build_command(
    folder: ProjectArgument,
    observe: ObserveFlag = False,
    verbose: VerboseFlag = False,
    option: OptionOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Build a project's firmware, through its Project API server."""
    options = read_options(option)
    with progress() as step:
        from uaccel.project.build import build_any

        step(f"build {folder}")
        built = build_any(folder, options, observe=observe, verbose=verbose)
    report = {
        "project": str(folder),
        "platform": built.platform,
        "firmware": None if built.firmware is None else str(built.firmware),
    }
    emit(report, as_json, lambda console: _show(console, report))


def _show(console: Console, report: dict[str, Any]) -> None:
    console.print(f"  Firmware  {report['firmware'] or report['project']}", soft_wrap=True)
