"""Defines the commands for firmware projects and connected boards: create, build, flash, monitor, ports."""

from __future__ import annotations

import shlex
import sys
from contextlib import closing, suppress
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uaccel.bench import find_port, hold, hold_if_known, port_of_project
from uaccel.board import available_boards, load_board
from uaccel.cli.options import (
    OptionOption,
    ProjectArgument,
    StandaloneCrtOption,
    TemplateOption,
    VerboseFlag,
    board_names,
    ports_here,
    read_options,
)
from uaccel.cli.output import JsonFlag, console, emit, progress, write_json
from uaccel.session.board_ports import only_port, probes, serial_ports
from uaccel.session.connect import open_port
from uaccel.session.monitor import Heard, listen
from uaccel.session.protocol_ids import LogLevel
from uaccel.session.transport import Transport

# ``uaccel create``: make a firmware project of an archive.

if TYPE_CHECKING:
    from rich.console import Console

ArchiveArgument = Annotated[
    Path, typer.Argument(metavar="OUT.tar", help="The archive, as 'uaccel compile' writes it.", readable=False)
]
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The project's folder, a new one.")]
CreateBoardOption = Annotated[
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
    """Names the protocols that firmware can speak."""

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


def add_create(app: typer.Typer) -> None:
    """Add the command."""
    app.command("create", short_help="Make a firmware project of an archive.")(create_command)


def create_command(
    archive: ArchiveArgument,
    folder: FolderArgument,
    board: CreateBoardOption = "",
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
        from uaccel.build.project import create_from_archive

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
    emit(report, as_json, lambda console: _show_created(console, report))


def _show_created(console: Console, report: dict[str, Any]) -> None:
    project = report["project"]
    console.print(f"  Project   {project}, model {report['model']} for board {report['board']}", soft_wrap=True)
    console.print(f"  Next      uaccel build {shlex.quote(str(project))}", soft_wrap=True)


# ``uaccel build``: build a project's firmware.

ObserveFlag = Annotated[
    bool, typer.Option("--observe", help="Firmware that can show every layer, in a build folder of its own.")
]


def add_build(app: typer.Typer) -> None:
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
        from uaccel.build.project import build_any

        step(f"build {folder}")
        built = build_any(folder, options, observe=observe, verbose=verbose)
    report = {
        "project": str(folder),
        "platform": built.platform,
        "firmware": None if built.firmware is None else str(built.firmware),
    }
    emit(report, as_json, lambda console: _show_built(console, report))


def _show_built(console: Console, report: dict[str, Any]) -> None:
    console.print(f"  Firmware  {report['firmware'] or report['project']}", soft_wrap=True)


# ``uaccel flash``: write a project's firmware to its board.

FlashPortOption = Annotated[
    str,
    typer.Option(
        "--port",
        "-p",
        metavar="PORT",
        help="The board's port: a device path, or auto to look for it.",
        autocompletion=ports_here,
    ),
]


def add_flash(app: typer.Typer) -> None:
    """Add the command."""
    app.command("flash", short_help="Write a project's firmware to its board.")(flash_command)


def flash_command(
    folder: ProjectArgument,
    port: FlashPortOption = "",
    verbose: VerboseFlag = False,
    option: OptionOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a project's firmware to its board, through its Project API server."""
    options = read_options(option)
    with progress() as step, hold_if_known(port_of_project(folder, port)):
        from uaccel.build.project import flash_any

        step(f"flash {folder}")
        flashed = flash_any(folder, options, port=port, verbose=verbose)
    report = {"project": str(folder), "platform": flashed.platform, "board": flashed.board, "flashed": flashed.done}
    emit(report, as_json, lambda console: _show_flashed(console, report))


def _show_flashed(console: Console, report: dict[str, Any]) -> None:
    if report["flashed"]:
        console.print(f"  Flashed   {report['board'] or report['project']}", soft_wrap=True)
    else:
        console.print(f"  Flashed   nothing: 'uaccel run' loads the firmware of board {report['board']} itself")


# ``uaccel monitor``: show a board's log as it comes.

DEFAULT_BAUD = 115200
Level = Annotated[
    str,
    typer.Option(
        "--level",
        metavar="debug|info|warning|error",
        help="Begin a session, and ask for lines of this level and graver ones.",
    ),
]
BoardOption = Annotated[
    str,
    typer.Option(
        "--board",
        "-b",
        metavar="BOARD",
        help="Whose board file says where it is, and how fast its line.",
        autocompletion=board_names,
    ),
]
PortOption = Annotated[
    str,
    typer.Option(
        "--port", "-p", metavar="PORT", help="Its port or URL (the only USB port there is).", autocompletion=ports_here
    ),
]
SecondsOption = Annotated[
    float | None, typer.Option("--seconds", metavar="S", min=0, help="End after so long, not with Ctrl-C.")
]
BaudOption = Annotated[int | None, typer.Option("--baud", min=300, metavar="N", help="If not the board file's.")]


def add_monitor(app: typer.Typer) -> None:
    """Add the command."""
    app.command("monitor", short_help="Show what a board logs.")(monitor_command)


def monitor_command(
    board: BoardOption = "",
    port: PortOption = "",
    seconds: SecondsOption = None,
    baud: BaudOption = None,
    level: Level = "",
    as_json: JsonFlag = False,
) -> None:
    """Show what a board logs, until Ctrl-C or for --seconds.

    With --json each line is an object: kind (log, fault, boot, text), level, text.
    Without --level nothing is sent to the board: whoever else uses it is not disturbed.
    """
    wanted = _level(level) if level else None
    described = load_board(board) if board else None
    line = port or only_port() if described is None else find_port(described, port)
    rate = baud or int(getattr(getattr(described, "console", None), "baud", DEFAULT_BAUD))
    with hold(line), closing(open_port(line, rate)) as transport, suppress(KeyboardInterrupt):
        if wanted is not None:
            _greet(transport, wanted, as_json)
        for heard in listen(transport, seconds):
            _show_heard(heard, as_json)


def _level(word: str) -> LogLevel:
    levels = {level.name.lower(): level for level in LogLevel}
    if word not in levels:
        raise typer.BadParameter(f"--level {word}: wanted one of {', '.join(levels)}")
    return levels[word]


def _greet(transport: Transport, level: LogLevel, as_json: bool) -> None:
    """Begins a session and sets the level; log lines that come meanwhile are shown."""
    from uaccel.session.session import Session

    session = Session(
        transport, on_log=lambda line: _show_heard(Heard("log", line.level.name.lower(), line.text), as_json)
    )
    session.set_verbosity(level)


def _show_heard(heard: Heard, as_json: bool) -> None:
    if as_json:
        write_json({"kind": heard.kind, "level": heard.level, "text": heard.text})
        return
    mark = f"{heard.level}: " if heard.level else ""
    style = {"error": "red", "warning": "yellow"}.get(heard.level)
    console(sys.stdout).print(f"{mark}{heard.text}", style=style, soft_wrap=True)
    sys.stdout.flush()


# ``uaccel ports``: list what is plugged in, and which board it may be.


def add_ports(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ports", short_help="Serial ports and debug probes, and which boards they may be.")(ports_command)


def ports_command(as_json: JsonFlag = False) -> None:
    """List the serial ports and debug probes of this computer, and the boards that have their USB identity.

    Boards with the same probe on them have the same identity: then there are several guesses.
    """
    boards = available_boards()
    report = {
        "ports": [asdict(port) for port in serial_ports(boards)],
        "probes": [asdict(probe) for probe in probes(boards)],
    }
    emit(report, as_json, lambda console: _show(console, report))


def _show(console: Console, report: dict[str, list[dict[str, Any]]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    for title, key, name in (("Port", "ports", "port"), ("Probe", "probes", "kind")):
        if not report[key]:
            console.print(f"  No {'serial port' if key == 'ports' else 'debug probe'} is here.")
            continue
        table = Table(title, "USB", "Serial number", "What it says", "May be", box=SIMPLE_HEAD, collapse_padding=True)
        table.columns[0].no_wrap = True  # for copying
        for row in report[key]:
            words = (row[name], row["usb"] or "", row["serial_number"] or "", row["description"])
            table.add_row(*words, " or ".join(row["boards"]))
        console.print(table)
