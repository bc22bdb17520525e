"""Defines ``uaccel boards``, which lists the boards that come with uaccel."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from uaccel.board import Board, Memory, available_boards
from uaccel.cli.command import Command
from uaccel.cli.output import emit, new_table

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, kw_only=True)
class BoardsCommand(Command):
    """List the boards that come with uaccel.

    A board of your own is given to --board as the path of its file.
    """

    def run(self) -> None:
        boards = available_boards()
        report = {"boards": [_as_json(board) for board in boards]}
        emit(report, self.as_json, lambda console: _show(console, boards))


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
    table = new_table("Board", "CPU", "~Runs", "~What it is, its memories")
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
