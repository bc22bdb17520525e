"""The line to firmware through a Project API server, uaccel's or any that speaks microTVM's protocol."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from uaccel.errors import UaccelError
from uaccel.project.api_client import ProjectServer
from uaccel.project.api_errors import IoTimeoutError
from uaccel.session.transport import WRITE_SECONDS, Transport

CHUNK: Final = 1 << 16
SLICE: Final = 0.1
"""Seconds of one call. Some servers wait for all the bytes they are asked for, until time is up."""


class ProjectTransport(Transport):
    """Opens the server's transport and closes it; the server itself goes on, for another one."""

    def __init__(
        self,
        server: ProjectServer,
        *,
        bytes_per_second: float | None = None,
        instructions_per_second: float | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = f"project {server.folder}"
        self.bytes_per_second = bytes_per_second
        self.instructions_per_second = instructions_per_second
        self._server = server
        self._on_close = on_close
        self._open = True
        try:
            server.open_transport()
        except BaseException:
            self._open = False
            on_close()
            raise

    def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
        self._server.write_transport(data, timeout)

    def read(self, timeout: float) -> bytes:
        end = time.monotonic() + timeout
        while True:
            left = max(0.0, end - time.monotonic())
            with suppress(IoTimeoutError):
                return self._server.read_transport(CHUNK, min(left, SLICE))
            if left <= SLICE:
                return b""

    def close(self) -> None:
        if self._open:
            self._open = False
            with suppress(UaccelError):
                self._server.close_transport()
            self._on_close()
