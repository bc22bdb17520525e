"""Finds the boards of a pytest run and their ports, and says whether one meets the needs of a test."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, get_args

from uaccel.board import Board, CommandFlash, SerialRun, load_board
from uaccel.board.types import Feature
from uaccel.build.doctor import packages_of, programs_of, require_package
from uaccel.build.programs import find_command
from uaccel.errors import ToolError, UaccelError
from uaccel.session.board_ports import AUTO, BoardAbsentError, find_port
from uaccel.util.text import bytes_of, did_you_mean

# The boards of a pytest run, and where they are.

VARIABLE: Final = "UACCEL_PORT"
USUAL: Final = "host"


def ports_of(boards: Sequence[Board], options: Sequence[str]) -> dict[str, str]:
    """Returns the port of each board that runs over a serial line, by the board's name.

    Each option is ``PORT`` or ``BOARD=PORT``, which may be for a board that only a test itself names, by name or by the
    path of its file; without options the variable UACCEL_PORT holds them, apart by blanks.
    """
    source = "--uaccel-port" if options else VARIABLE
    with_line = [board.name for board in boards if any(isinstance(run, SerialRun) for run in board.runs)]
    ports: dict[str, str] = {}
    for text in list(options) or os.environ.get(VARIABLE, "").split():
        named = re.match(r"([a-z][a-z0-9_]*|[^=]+\.toml)=", text)
        if named is not None:
            ports[_board_at(named[1], boards, f"{source} {text}")] = text[named.end() :]
        elif text == AUTO or len(with_line) == 1:
            ports |= dict.fromkeys(with_line, text)
        elif with_line:
            raise UaccelError(f"--uaccel-port {text}: for which of {', '.join(with_line)}? Say {with_line[0]}={text}")
        elif options:
            names = ", ".join(board.name for board in boards)
            raise UaccelError(f"--uaccel-port {text}: none of {names} has a serial line; see --uaccel-board")
    return ports


def _board_at(name: str, boards: Sequence[Board], option: str) -> str:
    """Returns the name of a board that has a port, by its name or file; an error for one that cannot have any."""
    try:
        board = next((board for board in boards if board.name == name), None) or load_board(name)
    except UaccelError as error:
        raise UaccelError(f"{option}: {error}") from error
    if board.cpu.arch == "native":
        raise UaccelError(f"{option}: board {board.name} has no serial line; name the board that has it")
    return board.name


def over_line(board: Board, port: str) -> bool:
    """Says whether the board runs over a serial line: by itself, or because a port was given."""
    return bool(port) or isinstance(board.runs[0], SerialRun)


def absence(board: Board, port: str) -> str | None:
    """Says why nothing can be run on the board here; None if it can."""
    try:
        _find_tools(board, port)
        if over_line(board, port):
            return _missing_port(board, port)
    except (ToolError, BoardAbsentError) as error:
        return str(error)
    return None


def _find_tools(board: Board, port: str) -> None:
    """Looks for all that builds, flashes and runs; a :class:`ToolError` names what is missing."""
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


# The needs of a test: the arguments of the marker ``uaccel_needs``.

KINDS: Final = ("host", "qemu", "rtl", "serial")
_RAM: Final = ("ram", "tcm", "external")


def lacks(board: Board, port: str, need: str) -> str | None:
    """Says why the board does not meet a need; None if it does. An unknown need raises :class:`UaccelError`.

    The host has all the memory that is asked for, and may have any accelerator.
    """
    word, equals, amount = need.partition("=")
    check = _AMOUNTS.get(word) if equals else None
    if check is not None:
        return check(board, _bytes(need, amount))
    features = get_args(Feature)
    if need in features:
        return None if need in board.cpu.features else f"{board.cpu.name} has no {need}"
    if need in KINDS:
        kind = "serial" if over_line(board, port) else board.runs[0].kind
        return None if need == kind else f"it runs by {kind}"
    if need == "accelerator":
        reached = board.cpu.arch == "native" or any(memory.accelerator for memory in board.memories)
        return None if reached else "no memory of it is for an accelerator"
    known = [*features, *KINDS, "accelerator", *(f"{name}=SIZE" for name in _AMOUNTS)]
    raise UaccelError(f"uaccel_needs: there is no need {need!r}{did_you_mean(need, known)} (known: {', '.join(known)})")


def _bytes(need: str, text: str) -> int:
    size = bytes_of(text)
    if size is None:
        raise UaccelError(f"uaccel_needs: {need!r} names no size; wanted a number of bytes such as 4096, 64K or 16M")
    return size


def _memory(kinds: tuple[str, ...], what: str) -> Callable[[Board, int], str | None]:
    """Makes a check for so many bytes in one memory, as an arena cannot be divided."""

    def check(board: Board, wanted: int) -> str | None:
        largest = max((memory.length for memory in board.memories if memory.kind in kinds), default=0)
        enough = board.cpu.arch == "native" or largest >= wanted
        return None if enough else f"its largest {what} has {largest:,} bytes, wanted {wanted:,}"

    return check


_AMOUNTS: Final = {"memory": _memory(_RAM, "RAM"), "flash": _memory(("flash",), "flash")}
