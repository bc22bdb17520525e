"""Which programs and Python packages a board needs here: to build firmware for it, to run it, to flash it."""

from __future__ import annotations

from typing import Final

from uaccel.board import Board, HostRun, OpenOcdFlash, PyOcdFlash, QemuRun, RtlRun

BUILDING: Final = ("cmake", "ninja or make")
SIMULATING: Final = ("verilator", "C++ compiler")
CORES: Final = {"vexriscv": "pythondata-cpu-vexriscv"}
"""The Python package that brings each core as Verilog."""


def programs_of(board: Board, *, emulated: bool = True) -> list[str]:
    """By their names in ``PROGRAMS``, or as the board file has them; what flashes it where it is not ``emulated``."""
    if isinstance(board.runs[0], HostRun):
        return [*BUILDING, "C compiler"]
    needed = [*BUILDING, f"{board.cpu.toolchain}-gcc"]
    if emulated and isinstance(board.runs[0], QemuRun):
        needed.append(f"qemu-system-{board.runs[0].system}")
    elif emulated and isinstance(board.runs[0], RtlRun):
        needed += SIMULATING
    elif isinstance(board.flash, OpenOcdFlash | PyOcdFlash):
        needed.append(board.flash.tool)
    return needed


def packages_of(board: Board) -> list[str]:
    """Python packages, by their names on the package index."""
    run = board.runs[0]
    return [CORES[run.core]] if isinstance(run, RtlRun) else []
