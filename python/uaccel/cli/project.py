"""Defines the commands for firmware projects and connected boards: create, build, flash, monitor, ports."""

from __future__ import annotations

import shlex
import sys
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from uaccel.bench import find_port, hold, hold_if_known, port_of_project
from uaccel.board import available_boards, load_board
from uaccel.cli.command import Command, group
from uaccel.cli.options import ProjectCommand, Templated
from uaccel.cli.output import console, emit, new_table, progress, write_json
from uaccel.runner.options import ProjectRunOptions
from uaccel.session.board_ports import only_port, probes, serial_ports
from uaccel.session.connect import open_port
from uaccel.session.monitor import Heard, listen
from uaccel.session.protocol_ids import LogLevel
from uaccel.session.transport import Transport
from uaccel.util.option import argument, option

# ``uaccel create``: make a firmware project of an archive.

if TYPE_CHECKING:
    from rich.console import Console


class CreateCommand(Templated):
    """Make a firmware project of an archive: plain C and CMake in a folder of its own."""

    archive: Path = argument("The archive, as 'uaccel compile' writes it.", "OUT.tar")
    folder: Path = argument("The project's folder, a new one.", "DIR")
    board: str = option("", "A board's name or file (the archive's when left away).", "-b", metavar="BOARD")
    server: ProjectRunOptions = group(only=("option",))
    protocol: Literal["session", "mlperf-tiny"] = option(
        "session", "What the firmware speaks: uaccel's sessions, or MLPerf Tiny's serial protocol."
    )
    energy_pin: Path | None = option(
        None, "MLPerf Tiny's energy mode: C with the pin that the power monitor watches.", metavar="PIN.c"
    )
    standalone_crt: Path | None = option(
        None,
        "With --template: the folder of C sources that it copies from, such as TVM's build/standalone_crt.",
        metavar="DIR",
        rare=True,
    )

    def run(self) -> None:
        target = load_board(self.board) if self.board else None
        with progress() as step:
            from uaccel.build.project import create_from_archive

            step(f"create {self.folder}")
            metadata = create_from_archive(
                self.archive,
                self.folder,
                target,
                template=self.template,
                options=self.server.options,
                runtime=self.standalone_crt,
                protocol="" if self.protocol == "session" else self.protocol,
                energy_pin=self.energy_pin,
            )
        report = {
            "project": str(self.folder),
            "model": metadata.model,
            "board": target.name if target else metadata.board,
            "archive": str(self.archive),
            "template": None if self.template is None else str(self.template),
        }
        emit(report, self.as_json, lambda console: _show_created(console, report))


def _show_created(console: Console, report: dict[str, Any]) -> None:
    project = report["project"]
    console.print(f"  Project   {project}, model {report['model']} for board {report['board']}", soft_wrap=True)
    console.print(f"  Next      uaccel build {shlex.quote(str(project))}", soft_wrap=True)


# ``uaccel build``: build a project's firmware.


class BuildCommand(ProjectCommand):
    """Build a project's firmware, through its Project API server."""

    observe: bool = option(False, "Firmware that can show every layer, in a build folder of its own.")

    def run(self) -> None:
        with progress() as step:
            from uaccel.build.project import build_any

            step(f"build {self.folder}")
            report = build_any(self.folder, self.server.options, observe=self.observe, verbose=self.verbose)
        emit(report, self.as_json, lambda console: _show_built(console, report))


def _show_built(console: Console, report: dict[str, Any]) -> None:
    console.print(f"  Firmware  {report['firmware'] or report['project']}", soft_wrap=True)


# ``uaccel flash``: write a project's firmware to its board.


class FlashCommand(ProjectCommand):
    """Write a project's firmware to its board, through its Project API server."""

    port: str = option("", "The board's port: a device path, or auto to look for it.", "-p", metavar="PORT")

    def run(self) -> None:
        folder, port = self.folder, self.port
        with progress() as step, hold_if_known(port_of_project(folder, port)):
            from uaccel.build.project import flash_any

            step(f"flash {folder}")
            report = flash_any(folder, self.server.options, port=port, verbose=self.verbose)
        emit(report, self.as_json, lambda console: _show_flashed(console, report))


def _show_flashed(console: Console, report: dict[str, Any]) -> None:
    if report["flashed"]:
        console.print(f"  Flashed   {report['board'] or report['project']}", soft_wrap=True)
    else:
        console.print(f"  Flashed   nothing: 'uaccel run' loads the firmware of board {report['board']} itself")


# ``uaccel monitor``: show a board's log as it comes.

DEFAULT_BAUD = 115200


class MonitorCommand(Command):
    """Show what a board logs, until Ctrl-C or for --seconds.

    With --json each line is an object: kind (log, fault, boot, text), level, text.
    Without --level nothing is sent to the board: whoever else uses it is not disturbed.
    """

    board: str = option("", "Whose board file says where it is, and how fast its line.", "-b", metavar="BOARD")
    port: str = option("", "Its port or URL (the only USB port there is).", "-p", metavar="PORT")
    seconds: float | None = option(None, "End after so long, not with Ctrl-C.", metavar="S", least=0)
    baud: int | None = option(None, "If not the board file's.", metavar="N", least=300)
    level: str = option(
        "",
        "Begin a session, and ask for lines of this level and graver ones.",
        metavar="debug|info|warning|error",
    )

    def run(self) -> None:
        wanted = _level(self.level) if self.level else None
        described = load_board(self.board) if self.board else None
        line = self.port or only_port() if described is None else find_port(described, self.port)
        rate = self.baud or int(getattr(getattr(described, "console", None), "baud", DEFAULT_BAUD))
        with hold(line), closing(open_port(line, rate)) as transport, suppress(KeyboardInterrupt):
            if wanted is not None:
                _greet(transport, wanted, self.as_json)
            for heard in listen(transport, self.seconds):
                _show_heard(heard, self.as_json)


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


class PortsCommand(Command):
    """List the serial ports and debug probes of this computer, and the boards that have their USB identity.

    Boards with the same probe on them have the same identity: then there are several guesses.
    """

    def run(self) -> None:
        boards = available_boards()
        report = {
            "ports": [asdict(port) for port in serial_ports(boards)],
            "probes": [asdict(probe) for probe in probes(boards)],
        }
        emit(report, self.as_json, lambda console: _show(console, report))


def _show(console: Console, report: dict[str, list[dict[str, Any]]]) -> None:
    for title, key, name in (("Port", "ports", "port"), ("Probe", "probes", "kind")):
        if not report[key]:
            console.print(f"  No {'serial port' if key == 'ports' else 'debug probe'} is here.")
            continue
        table = new_table(title, "~USB", "~Serial number", "~What it says", "~May be")
        for row in report[key]:
            words = (row[name], row["usb"] or "", row["serial_number"] or "", row["description"])
            table.add_row(*words, " or ".join(row["boards"]))
        console.print(table)
