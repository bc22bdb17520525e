"""A device's memory through a debug probe at USB, by pyOCD, where that is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from uaccel.errors import DeviceError, ToolError
from uaccel.session.rtt import UnreadableError


class ProbeMemory:
    """Reads and writes while the device runs. ``target`` is pyOCD's name of the chip, ``pack`` the CMSIS-Pack that
    has it."""

    def __init__(self, serial_number: str | None, target: str | None, pack: str | None = None) -> None:
        try:
            from pyocd.core.helpers import ConnectHelper
        except ImportError as error:
            raise ToolError(
                "pyOCD is not installed: pip install 'uaccel[probe]', or name a debugger's server as rtt://HOST:PORT"
            ) from error
        self.name = f"debug probe {serial_number or 'at USB'}"
        options: dict[str, Any] = {"connect_mode": "attach", "resume_on_disconnect": True}
        if target is not None:
            options["target_override"] = target
        if pack is not None:
            options["pack"] = [pack]
        try:
            self._session: Any = ConnectHelper.session_with_chosen_probe(
                unique_id=serial_number, blocking=False, return_first=True, options=options
            )
            if self._session is None:
                raise DeviceError(f"no {self.name} is here; 'uaccel ports' lists what is plugged in")
            self._session.open()
            self._core: Any = self._session.target
            self._core.resume()
        except DeviceError:
            raise
        except Exception as error:
            raise self._failed("cannot be used", error) from error

    @contextmanager
    def access(self) -> Iterator[None]:
        yield

    def read(self, address: int, count: int) -> bytes:
        try:
            return bytes(self._core.read_memory_block8(address, count))
        except Exception as error:
            raise UnreadableError(str(self._failed(f"cannot read {count} bytes at {address:#010x}", error))) from error

    def write(self, address: int, data: bytes) -> None:
        try:
            if len(data) == 4 and address % 4 == 0:
                self._core.write32(address, int.from_bytes(data, "little"))  # in one go: the device may look meanwhile
            else:
                self._core.write_memory_block8(address, list(data))
        except Exception as error:
            raise self._failed(f"cannot write at {address:#010x}", error) from error

    def close(self) -> None:
        with suppress(Exception):
            self._session.close()

    def _failed(self, what: str, error: Exception) -> DeviceError:
        """pyOCD's errors have many kinds."""
        return DeviceError(f"{self.name} {what}: {' '.join(str(error).split()) or type(error).__name__}")
