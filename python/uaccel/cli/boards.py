"""Defines ``uaccel boards``, which lists the boards that come with uaccel, or checks and describes one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from uaccel.board import Board, Memory, available_boards, load_board
from uaccel.cli.command import Command
from uaccel.cli.output import emit, new_table, show_lines
from uaccel.util.option import argument

if TYPE_CHECKING:
    from rich.console import Console


class BoardsCommand(Command):
    """List the boards that come with uaccel, or check and describe one.

    A board of your own is given as the path of its file, here and to --board.
    """

    board: str | None = argument("The board to describe: a name, or the path of a board file.", "BOARD", None)

    def run(self) -> None:
        boards = available_boards() if self.board is None else [load_board(self.board)]
        report = {"boards": [_as_json(board) for board in boards]}
        show = _show if self.board is None else _describe
        emit(report, self.as_json, lambda console: show(console, boards))


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


def _describe(console: Console, boards: list[Board]) -> None:
    for board in boards:
        show_lines(console, _told(board))


def _told(board: Board) -> Iterator[tuple[str, str]]:
    """Says what a board file was understood to say, a line for each of its parts."""
    cpu, timer = board.cpu, board.timer
    yield "Board", f"{board.name}: {board.description}"
    yield "CPU", f"{cpu.name} ({cpu.arch}), features: {', '.join(cpu.features) or 'none'}"
    if cpu.flags:
        yield "Compiler", " ".join((f"{cpu.toolchain}-gcc", *cpu.flags))
    for memory in board.memories:
        reached = ", reached by accelerators" if memory.accelerator else ""
        span = f"{memory.origin:#010x} to {memory.end - 1:#010x}"
        yield "Memory", f"{memory.name} ({memory.kind}): {size(memory)}, {span}{reached}"
    for fixed in board.fixed:
        yield "Fixed", f"{fixed.address:#010x}: {' '.join(f'{word:#010x}' for word in fixed.words)}"
    yield "Port", f"{board.port.name}, console {board.console.kind}, timer {timer.kind}, stack {board.stack:,} bytes"
    if timer.hz and timer.kind != "host":
        yield "Clock", f"{timer.hz:,} Hz"
    yield "Runs", ", ".join(run.kind for run in board.runs)
    yield "Flash", board.flash.tool if board.flash else "not at all"
    yield "File", f"{board.file}: nothing is wrong in it"


def size(memory: Memory) -> str:
    """Writes a memory's size in the largest binary unit that leaves an integer."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if memory.length % (1 << power) == 0:
            return f"{memory.length >> power} {unit}"
    return f"{memory.length} B"
