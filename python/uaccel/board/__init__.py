"""Board files: what a board is, where its memories lie, how firmware gets there and runs."""

from uaccel.board.load import available_boards, load_board
from uaccel.board.types import (
    Board,
    CommandFlash,
    Console,
    Cpu,
    Flash,
    HostRun,
    Memory,
    OpenOcdFlash,
    PyOcdFlash,
    QemuRun,
    Run,
    SerialRun,
    StdioConsole,
    Timer,
    UartConsole,
)

__all__ = [
    "Board",
    "CommandFlash",
    "Console",
    "Cpu",
    "Flash",
    "HostRun",
    "Memory",
    "OpenOcdFlash",
    "PyOcdFlash",
    "QemuRun",
    "Run",
    "SerialRun",
    "StdioConsole",
    "Timer",
    "UartConsole",
    "available_boards",
    "load_board",
]
