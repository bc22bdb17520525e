"""What carries bytes to a device and back: this is all that a session asks of it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Final

WRITE_SECONDS: Final = 10.0


class Transport(ABC):
    """``name`` is how messages call the device; ``bytes_per_second`` the line's speed, None where it is no matter.

    ``instructions_per_second``: where the device's clock advances with its instructions alone, as an emulator's can.

    Every method may raise :class:`~uaccel.errors.DeviceError`, for example where the port has vanished.
    """

    name: str = "the device"
    bytes_per_second: float | None = None
    instructions_per_second: float | None = None

    @abstractmethod
    def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
        """Send all of it, within so many seconds; may return before it has left. Takes in meanwhile, in memory that is
        bounded, what arrives, or the two ends could wait for each other."""

    @abstractmethod
    def read(self, timeout: float) -> bytes:
        """What has arrived, at least a byte; empty where nothing does within so many seconds."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the line. Never raises, and may be called again."""

    def clock(self) -> float:
        """The time in seconds by which timeouts are measured."""
        return time.monotonic()
