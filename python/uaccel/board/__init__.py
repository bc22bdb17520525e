"""Board files: what a board is, where its memories lie, how firmware gets there and runs."""

from uaccel.board.load import available_boards, load_board
from uaccel.board.port import Port, Setting, available_ports
from uaccel.board.types import (
    Board,
    CommandFlash,
    Console,
    Cpu,
    Device,
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
    "Device",
    "Flash",
    "HostRun",
    "Memory",
    "OpenOcdFlash",
    "Port",
    "PyOcdFlash",
    "QemuRun",
    "Run",
    "SerialRun",
    "Setting",
    "StdioConsole",
    "Timer",
    "UartConsole",
    "available_boards",
    "available_ports",
    "load_board",
]
