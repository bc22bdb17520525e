"""Which port a board is at: the one that is named, or the one whose USB identity is the board's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from serial.tools.list_ports_common import ListPortInfo

from uaccel.bench.plugged import fits, identity, usb_ports
from uaccel.board import Board, RttConsole, SerialRun
from uaccel.errors import BoardError, DeviceError
from uaccel.project.api_options import port_from_here
from uaccel.project.boardjson import FILE, read_board_json
from uaccel.session.ports import for_board

AUTO: Final = "auto"
PROBE: Final = "rtt://pyocd"
"""The only debug probe that is plugged in."""


class BoardAbsentError(DeviceError):
    """No such board is plugged in."""


def find_port(board: Board, port: str | None = None) -> str:
    """A device path or a URL. ``port`` overrides what the board file says; ``auto`` looks among the USB ports."""
    if port and port != AUTO:
        return for_board(board, port)
    run = serial_run(board)
    if isinstance(board.console, RttConsole):
        return for_board(board, PROBE if run.port == AUTO else run.port)
    return _search(board, run) if port == AUTO or run.port == AUTO else run.port


def only_port() -> str:
    """The only USB port that there is, whatever board may be there."""
    seen = usb_ports()
    if len(seen) == 1:
        return str(seen[0].device)
    raise BoardAbsentError(
        f"the only USB port is wanted, seen {_list(seen) or 'none'}; name one with --port, or the board with --board"
    )


def port_of_project(project: Path, port: str = "") -> str | None:
    """The port by which a project's board is known to others; None where nothing tells one.

    What is flashed through a debug probe need not be at any port, so it is no error that there is none.
    """
    runs = read_board_json(project).runs if (project / FILE).is_file() else []
    serial = next((run for run in runs if run["kind"] == "serial"), {})
    named = port or serial.get("port")
    if named != AUTO:
        return port_from_here(named) if named else None
    run = SerialRun(AUTO, serial.get("usb"), serial.get("serial_number"))
    fitting = [info for info in usb_ports() if _fits(info, run)]
    told = run.usb is not None or run.serial_number is not None
    return str(fitting[0].device) if told and len(fitting) == 1 else None


def serial_run(board: Board) -> SerialRun:
    """How the board file says that the board is reached."""
    for run in board.runs:
        if isinstance(run, SerialRun):
            return run
    raise BoardError(f"{board.file}: board {board.name} has no serial line: there is no [run.serial]")


def _search(board: Board, run: SerialRun) -> str:
    seen = usb_ports()
    fitting = [info for info in seen if _fits(info, run)]
    if len(fitting) == 1:
        return str(fitting[0].device)
    if not fitting:
        raise BoardAbsentError(
            f"board {board.name} is at no USB port: wanted {_wanted(run)}; seen {_list(seen) or 'none'}; "
            "plug it in, or name its port with --port"
        )
    raise DeviceError(
        f"{len(fitting)} USB ports may be board {board.name}: {_list(fitting)}; "
        f"name one with --port, or give 'serial_number' in [run.serial] of {board.file}"
    )


def _fits(info: ListPortInfo, run: SerialRun) -> bool:
    return fits(run, identity(info), info.serial_number)


def _wanted(run: SerialRun) -> str:
    what = [run.usb or "any device"]
    what += [f"with serial number {run.serial_number}"] if run.serial_number else []
    return " ".join(what)


def _list(ports: Sequence[ListPortInfo]) -> str:
    return ", ".join(
        f"{info.device} ({identity(info)}, serial number {info.serial_number or 'unknown'})" for info in ports
    )
