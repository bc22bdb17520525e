"""Which boards a run of pytest is for, and where they are."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from uaccel.bench.find import AUTO, BoardAbsentError, find_port
from uaccel.board import Board, CommandFlash, SerialRun
from uaccel.errors import ToolError, UaccelError
from uaccel.toolchain import find_command
from uaccel.toolchain.needs import packages_of, programs_of
from uaccel.toolchain.python_packages import require_package

VARIABLE: Final = "UACCEL_PORT"
USUAL: Final = "host"


def ports_of(boards: Sequence[Board], options: Sequence[str]) -> dict[str, str]:
    """The port of each board that runs over a serial line, by the board's name.

    Each option is ``PORT`` or ``BOARD=PORT``, which may be for a board that only a test itself names; without options
    the variable UACCEL_PORT holds them, apart by blanks.
    """
    with_line = [board.name for board in boards if any(isinstance(run, SerialRun) for run in board.runs)]
    ports: dict[str, str] = {}
    for text in list(options) or os.environ.get(VARIABLE, "").split():
        named = re.match(r"([a-z][a-z0-9_]*)=", text)
        if named is not None:
            ports[named[1]] = text[named.end() :]
        elif text == AUTO or len(with_line) == 1:
            ports |= dict.fromkeys(with_line, text)
        elif with_line:
            raise UaccelError(f"--uaccel-port {text}: for which of {', '.join(with_line)}? Say {with_line[0]}={text}")
        elif options:
            names = ", ".join(board.name for board in boards)
            raise UaccelError(f"--uaccel-port {text}: none of {names} has a serial line; see --uaccel-board")
    return ports


def over_line(board: Board, port: str) -> bool:
    """Whether the board runs over a serial line: its only way, or the one that a port was given for."""
    return bool(port) or isinstance(board.runs[0], SerialRun)


def absence(board: Board, port: str) -> str | None:
    """Why nothing can be run on the board here, if so."""
    try:
        _find_tools(board, port)
        if over_line(board, port):
            return _missing_port(board, port)
    except (ToolError, BoardAbsentError) as error:
        return str(error)
    return None


def _find_tools(board: Board, port: str) -> None:
    """What builds, flashes and runs; a :class:`ToolError` names what is not there."""
    for program in programs_of(board, emulated=not over_line(board, port)):
        find_command(program, f"board {board.name}")
    if not over_line(board, port):
        for package in packages_of(board):
            require_package(package)
    if over_line(board, port) and isinstance(board.flash, CommandFlash):
        _find_own(board, board.flash.command[0])


def _find_own(board: Board, program: str) -> None:
    beside = board.file.resolve().parent / program if "/" in program else None
    if shutil.which(str(beside or program)) is None:
        raise ToolError(f"{program} (needed for flashing board {board.name}) is not there; see [flash] in {board.file}")


def _missing_port(board: Board, port: str) -> str | None:
    found = find_port(board, port)
    if "://" in found or Path(found).exists():
        return None
    return f"board {board.name}: there is no port {found}; plug the board in, or name its port with --uaccel-port"
