"""Defines ``uaccel boards``, which lists the boards that come with uaccel."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from uaccel.board import Board, Memory, available_boards
from uaccel.cli.output import JsonFlag, emit

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("boards", short_help="The boards that come with uaccel.")(list_boards)


def list_boards(as_json: JsonFlag = False) -> None:
    """List the boards that come with uaccel.

    A board of your own is given to --board as the path of its file.
    """
    boards = available_boards()
    emit({"boards": [_as_json(board) for board in boards]}, as_json, lambda console: _show(console, boards))


def _as_json(board: Board) -> dict[str, Any]:
    return {
        "name": board.name,
        "description": board.description,
        "cpu": {"name": board.cpu.name, "arch": board.cpu.arch, "features": list(board.cpu.features)},
        "run": [run.kind for run in board.runs],
        "proven": board.proven,
        "flash": board.flash.tool if board.flash else None,
        "memories": [asdict(memory) for memory in board.memories],
        "file": str(board.file),
    }


def _show(console: Console, boards: list[Board]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table("Board", "CPU", "Runs", "What it is, its memories", box=SIMPLE_HEAD, collapse_padding=True)
    for column in table.columns[:2]:
        column.no_wrap = True  # names are for copying
    table.columns[3].overflow = "fold"
    for board in boards:
        memories = ", ".join(f"{memory.name} {size(memory)}" for memory in board.memories)
        runs = "\n".join(run.kind for run in board.runs) + ("\n(linked only)" if board.proven == "linked" else "")
        table.add_row(board.name, board.cpu.name, runs, "\n".join(filter(None, (board.description, memories))))
    console.print(table)
    folders = dict.fromkeys(str(board.file.parent) for board in boards)
    console.print(f"  Board files: {', '.join(folders)}", soft_wrap=True)


def size(memory: Memory) -> str:
    """Writes a memory's size in the largest binary unit that leaves an integer."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if memory.length % (1 << power) == 0:
            return f"{memory.length >> power} {unit}"
    return f"{memory.length} B"
