"""``uaccel ports``: what is plugged in, and which board it may be."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from uaccel.bench.plugged import probes, serial_ports
from uaccel.board import available_boards
from uaccel.cli.output import JsonFlag, emit

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
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
