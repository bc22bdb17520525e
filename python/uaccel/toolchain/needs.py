"""Which programs a board needs here: to build firmware for it, to run it, to flash it."""

from __future__ import annotations

from uaccel.board import Board, HostRun, OpenOcdFlash, PyOcdFlash, QemuRun

BUILDING = ("cmake", "ninja or make")


def programs_of(board: Board, *, emulated: bool = True) -> list[str]:
    """By their names in ``PROGRAMS``, or as the board file has them; what flashes it where it is not ``emulated``."""
    if isinstance(board.runs[0], HostRun):
        return [*BUILDING, "C compiler"]
    needed = [*BUILDING, f"{board.cpu.toolchain}-gcc"]
    if emulated and isinstance(board.runs[0], QemuRun):
        needed.append(f"qemu-system-{board.runs[0].system}")
    elif isinstance(board.flash, OpenOcdFlash | PyOcdFlash):
        needed.append(board.flash.tool)
    return needed
