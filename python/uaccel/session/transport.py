"""Carries bytes to a device and back, and packs messages into frames that damage cannot pass through unnoticed."""

from __future__ import annotations

import math
import os
import select
import socket
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cobs import cobs

from uaccel.errors import DeviceError
from uaccel.session.protocol_ids import HEADER

# Transport: all that a session needs of whatever carries its bytes.

WRITE_SECONDS: Final = 10.0
CONNECT_SECONDS: Final = 5.0


class Transport(ABC):
    """Carries bytes to a device and back.

    ``name`` is how messages call the device; ``bytes_per_second`` the line's speed, None where it does not matter.
    ``instructions_per_second`` is the rate of a device's clock that advances with its instructions alone, as an
    emulator's can; None for any other clock.

    Every method may raise :class:`~uaccel.errors.DeviceError`, for example where the port has vanished.
    """

    name: str = "the device"
    bytes_per_second: float | None = None
    instructions_per_second: float | None = None

    @abstractmethod
    def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
        """Sends all of it within so many seconds; may return before it has left.

        Meanwhile it takes in what arrives, into bounded memory. Otherwise both ends could wait for each other: each
        with a full buffer that the other does not read.
        """

    @abstractmethod
    def read(self, timeout: float) -> bytes:
        """Returns what has arrived, at least a byte; nothing if none does within so many seconds."""

    @abstractmethod
    def close(self) -> None:
        """Releases the line. Never raises, and may be called again."""

    def clock(self) -> float:
        """The time in seconds by which timeouts are measured."""
        return time.monotonic()


# Transports over file descriptors: pipes of a process, sockets, terminals.

CHUNK: Final = 1 << 16
MOST_ARRIVED: Final = 1 << 24  # Bytes that are taken in, at most, while the other end takes none.


class StreamTransport(Transport):
    """Reads one file descriptor and writes another, or the same; ``release`` closes them."""

    def __init__(
        self, name: str, reading: int, writing: int, release: Callable[[], None], bytes_per_second: float | None = None
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
        """The error to raise when the line ends."""
        return DeviceError(f"{self.name} vanished: {reason}")

    def _check_open(self) -> None:
        if self._release is None:
            raise DeviceError(f"{self.name} is closed")

    def _wait(self, timeout: float, *, to_read: bool, to_write: bool) -> tuple[bool, bool]:
        """Waits for bytes to read or for room to write, as far as asked; says which is there.

        ``poll`` works with descriptors of any number, ``select`` only below 1024. A line that has ended counts as both
        readable and writable: using it then gives the reason.
        """
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


def connect_tcp(host: str, port: int, *, name: str = "") -> StreamTransport:
    """Connects to a device behind a TCP port."""
    name = name or f"{host}:{port}"
    try:
        connection = socket.create_connection((host, port), CONNECT_SECONDS)
    except OSError as error:
        raise DeviceError(f"cannot connect to {name}: {error.strerror or error}; is it running?") from error
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return StreamTransport(name, connection.fileno(), connection.fileno(), connection.close)


# Fair clock: time in which a process waited for a processor, on a busy computer, does not count.

LOOK_SECONDS: Final = 0.05  # Between two looks at how long the process has waited.


class FairClock:
    """Tells the time without a process's waits for a processor; never faster than the wall clock, and never back.

    The thread that waited most counts. The system's figures are read now and then; between two looks a wait that ends
    late could put the clock back, which the last time told prevents.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._looked_at = self._waited = self._told = 0.0

    def __call__(self) -> float:
        now = time.monotonic()
        if now - self._looked_at > LOOK_SECONDS:
            self._looked_at = now
            self._waited = max(self._waited, *_waits(self._pid))
        self._told = max(self._told, now - self._waited)
        return self._told


def _waits(pid: int) -> Iterator[float]:
    """Seconds that each thread of a process waited for a processor; 0 alone where the system does not tell."""
    yield 0.0
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError, ValueError, IndexError):  # the thread has ended meanwhile
            yield int(file.read_text().split()[1]) / 1e9


# Frames: a packet and its CRC-32, from which COBS takes all zeros out, and one zero as the end.

CRC_BYTES: Final = 4
OVERHEAD: Final = HEADER.size + CRC_BYTES  # Bytes of a packet beside its body.
# Bytes without a zero beyond which it is noise. A body has 65535 bytes at most, since a u16 states its limit; with
# header, CRC and COBS, which adds one for each 254, a frame is shorter than 66000.
LONGEST_FRAME: Final = 1 << 17


@dataclass(frozen=True)
class Packet:
    """Holds one message whose body is not yet unpacked."""

    type: int
    sequence: int
    token: int
    body: bytes = b""


def encode(packet: Packet) -> bytes:
    """Encodes a packet as a frame with the zero that ends it."""
    data = HEADER.pack(packet.type, packet.sequence, packet.token) + packet.body
    crc = zlib.crc32(data).to_bytes(CRC_BYTES, "little")
    return bytes(cobs.encode(data + crc)) + b"\0"


def decode(frame: bytes) -> Packet | None:
    """Decodes a frame without its zero; None if it is damaged."""
    try:
        data = cobs.decode(frame)
    except cobs.DecodeError:
        return None
    if len(data) < OVERHEAD or zlib.crc32(data[:-CRC_BYTES]) != int.from_bytes(data[-CRC_BYTES:], "little"):
        return None
    kind, sequence, token = HEADER.unpack_from(data)
    return Packet(kind, sequence, token, data[HEADER.size : -CRC_BYTES])


class Decoder:
    """Splits a stream of bytes into packets, in whatever pieces it comes.

    A damaged frame costs itself alone: the next zero begins a new one. Noise without a zero is forgotten but for one
    byte, which the next zero turns into one damaged frame, so that it is counted.
    """

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Packet | None]:
        """The packets that are complete now; None for each that is damaged."""
        end = data.rfind(b"\0") + 1
        frames = bytes(self._rest + data[:end]).split(b"\0") if end else []
        if end:
            self._rest.clear()
        self._rest += data[end:]
        if len(self._rest) > LONGEST_FRAME:
            del self._rest[:-1]
        return [decode(frame) for frame in frames if frame]
