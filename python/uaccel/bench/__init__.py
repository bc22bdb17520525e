"""Boards on a bench: flash them, find their ports, keep them to oneself; and a stand-in where there is none."""

from uaccel.bench.find import BoardAbsentError, find_port, port_of_project
from uaccel.bench.flash import flash, reset
from uaccel.bench.lock import BoardBusyError, hold, hold_if_known

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
