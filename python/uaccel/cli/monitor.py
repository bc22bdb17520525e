"""``uaccel monitor``: a board's log, as it comes."""

from __future__ import annotations

import sys
from contextlib import closing, suppress
from typing import Annotated

import typer

from uaccel.bench import find_port, hold
from uaccel.bench.find import only_port
from uaccel.board import load_board
from uaccel.cli.completion import board_names, ports_here
from uaccel.cli.output import JsonFlag, console, write_json
from uaccel.session.ids import LogLevel
from uaccel.session.monitor import Heard, listen
from uaccel.session.ports import open_port
from uaccel.session.transport import Transport

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


def register(app: typer.Typer) -> None:
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
            _show(heard, as_json)


def _level(word: str) -> LogLevel:
    levels = {level.name.lower(): level for level in LogLevel}
    if word not in levels:
        raise typer.BadParameter(f"--level {word}: wanted one of {', '.join(levels)}")
    return levels[word]


def _greet(transport: Transport, level: LogLevel, as_json: bool) -> None:
    """What is said meanwhile is shown as well."""
    from uaccel.session.session import Session

    session = Session(transport, on_log=lambda line: _show(Heard("log", line.level.name.lower(), line.text), as_json))
    session.set_verbosity(level)


def _show(heard: Heard, as_json: bool) -> None:
    if as_json:
        write_json({"kind": heard.kind, "level": heard.level, "text": heard.text})
        return
    mark = f"{heard.level}: " if heard.level else ""
    style = {"error": "red", "warning": "yellow"}.get(heard.level)
    console(sys.stdout).print(f"{mark}{heard.text}", style=style, soft_wrap=True)
    sys.stdout.flush()
