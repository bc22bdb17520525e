"""The table of boards in docs/boards.md, from the board files. ``python scripts/boards_table.py`` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from uaccel.board import Board, available_boards
from uaccel.cli.boards import size

PAGE = Path(__file__).resolve().parents[1] / "docs" / "boards.md"
BEGIN, END = "<!-- boards: scripts/boards_table.py -->\n", "<!-- /boards -->\n"
TITLES = ("board", "what it is", "RAM", "flash", "how it is flashed", "how it talks", "proven how")
FLASHED = {"pyocd": "pyOCD", "openocd": "OpenOCD", "command": "a command"}
TALKS = {
    "stdio": "standard input and output",
    "uart": "UART",
    "rtt": "rings in RAM (RTT)",
    "semihosting": "semihosting",
}
RAM = ("ram", "tcm", "external")


def table() -> str:
    """All rows; those that more was seen of come first."""
    order = {"here": 0, "hardware": 1, "emulated": 2, "simulated": 3, "linked": 4}
    boards = sorted(available_boards(), key=lambda board: (order[board.proven], board.name))
    rows = [TITLES, ["---"] * len(TITLES), *map(_cells, boards)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cells(board: Board) -> Iterator[str]:
    yield f"`{board.name}`"
    yield board.description
    yield _sizes(board, RAM)
    yield _sizes(board, ("flash",))
    yield _flashed(board)
    yield TALKS[board.console.kind]
    yield board.proven


def _sizes(board: Board, kinds: tuple[str, ...]) -> str:
    return " + ".join(size(memory) for memory in board.memories if memory.kind in kinds) or "the computer's"


def _flashed(board: Board) -> str:
    if board.flash is not None:
        return FLASHED[board.flash.tool]
    return "not at all" if board.proven in ("here", "emulated", "simulated") else "OpenOCD, by hand"


def page() -> str:
    """The page with the table as it must be."""
    text = PAGE.read_text(encoding="utf-8")
    return re.sub(f"(?s){re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: BEGIN + table() + END, text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
