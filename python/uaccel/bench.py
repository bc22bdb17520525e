"""Boards on a bench: flash them, find their ports, keep them to oneself; and a stand-in where there is none."""

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
