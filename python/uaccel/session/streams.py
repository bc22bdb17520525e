"""Transports over file descriptors: pipes of a process, sockets, terminals."""

from __future__ import annotations

import math
import os
import select
import socket
import time
from collections.abc import Callable
from typing import Final

from uaccel.errors import DeviceError
from uaccel.session.transport import WRITE_SECONDS, Transport

CHUNK: Final = 1 << 16
MOST_ARRIVED: Final = 1 << 24
"""Bytes that are taken in while the other end takes none."""


class StreamTransport(Transport):
    """Reads one descriptor and writes another, or the same; ``release`` closes them."""

    def __init__(
        self,
        name: str,
        reading: int,
        writing: int,
        release: Callable[[], None],
        bytes_per_second: float | None = None,
    ) -> None:
        self.name = name
        self.bytes_per_second = bytes_per_second
        self._reading = reading
        self._writing = writing
        self._release: Callable[[], None] | None = release
        self._arrived = bytearray()
        for descriptor in {reading, writing}:
            os.set_blocking(descriptor, False)

    def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
        self._check_open()
        rest, end = memoryview(data), time.monotonic() + timeout
        while rest:
            to_read = len(self._arrived) < MOST_ARRIVED
            readable, writable = self._wait(end - time.monotonic(), to_read=to_read, to_write=True)
            if readable:
                self._arrived += self._take()
            if writable:
                rest = rest[self._give(rest) :]
            if rest and time.monotonic() >= end:
                sent = f"{len(data) - len(rest)} of {len(data)} bytes"
                raise DeviceError(f"{self.name} took {sent} within {timeout:.3g} s: is its line held?")

    def read(self, timeout: float) -> bytes:
        self._check_open()
        if not self._arrived:
            readable, _ = self._wait(timeout, to_read=True, to_write=False)
            return self._take() if readable else b""
        data = bytes(self._arrived[:CHUNK])
        del self._arrived[:CHUNK]
        return data

    def close(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()

    def vanished(self, reason: str) -> DeviceError:
        """What to raise when the line ends."""
        return DeviceError(f"{self.name} vanished: {reason}")

    def _check_open(self) -> None:
        if self._release is None:
            raise DeviceError(f"{self.name} is closed")

    def _wait(self, timeout: float, *, to_read: bool, to_write: bool) -> tuple[bool, bool]:
        """Until there are bytes to take in, or room for some where that is asked; by poll, which knows any number of
        open files. A line that has ended counts as both: to use it tells the reason."""
        wanted = {self._reading: select.POLLIN} if to_read else {}
        if to_write:
            wanted[self._writing] = wanted.get(self._writing, 0) | select.POLLOUT
        poll = select.poll()
        for descriptor, events in wanted.items():
            poll.register(descriptor, events)
        seen = dict(poll.poll(math.ceil(max(0.0, timeout) * 1000)))
        readable = to_read and bool(seen.get(self._reading, 0) & ~select.POLLOUT)
        return readable, to_write and bool(seen.get(self._writing, 0) & ~select.POLLIN)

    def _take(self) -> bytes:
        try:
            data = os.read(self._reading, CHUNK)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self.vanished(error.strerror or str(error)) from error
        if not data:
            raise self.vanished("the other end has closed the line")
        return data

    def _give(self, data: memoryview) -> int:
        try:
            return os.write(self._writing, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self.vanished(error.strerror or str(error)) from error


def connect_tcp(host: str, port: int, *, name: str = "", timeout: float = 5.0) -> StreamTransport:
    """A device behind a TCP port."""
    name = name or f"{host}:{port}"
    try:
        connection = socket.create_connection((host, port), timeout)
    except OSError as error:
        raise DeviceError(f"cannot connect to {name}: {error.strerror or error}; is it running?") from error
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return StreamTransport(name, connection.fileno(), connection.fileno(), connection.close)
