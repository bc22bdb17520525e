"""Handles boards on a desk: flashes them, finds their ports, locks them; run as a program it emulates one."""

from uaccel.session.board_ports import (
    BoardAbsentError,
    BoardBusyError,
    find_port,
    flash,
    hold,
    hold_if_known,
    port_of_project,
    reset,
)

__all__ = [
    "BoardAbsentError",
    "BoardBusyError",
    "find_port",
    "flash",
    "hold",
    "hold_if_known",
    "port_of_project",
    "reset",
]


if __name__ == "__main__":
    import sys

    from uaccel.session.emulated_board import main

    sys.exit(main())
