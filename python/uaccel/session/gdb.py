"""A device's memory through a debugger's server: OpenOCD, pyOCD, J-Link's or QEMU's, by GDB's remote protocol."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from uaccel.errors import DeviceError
from uaccel.session.rtt import UnreadableError
from uaccel.session.transport import Transport

MOST: Final = 1024
"""Bytes of one packet; every server takes these."""
ANSWER_SECONDS: Final = 5.0
TRY_SECONDS: Final = 0.5
STOPPED: Final = (b"T", b"S")
INTERRUPT: Final = b"\x03"


class GdbMemory:
    """``line`` leads to the server. Some servers read while the device runs; for others it is halted meanwhile."""

    def __init__(self, line: Transport) -> None:
        self.name = line.name
        self._line = line
        self._rest = b""
        self._halts: bool | None = None
        """Whether the device must be halted; not known before it was tried."""
        self._running = False
        self._depth = 0
        self._begin()

    @contextmanager
    def access(self) -> Iterator[None]:
        self._depth += 1
        try:
            if self._halts and self._running:
                self._halt()
            yield
        finally:
            self._depth -= 1
            if not self._running and not self._depth:
                self._go_on()

    def read(self, address: int, count: int) -> bytes:
        data = b""
        while len(data) < count:
            size = min(MOST, count - len(data))
            told = self._ask(f"m{address + len(data):x},{size:x}")
            try:
                piece = bytes.fromhex(told.decode())
            except ValueError:
                piece = b""
            if not piece or len(piece) > size:
                raise UnreadableError(
                    f"{self.name}: the debugger cannot read {size} bytes at {address + len(data):#010x} "
                    f"({told.decode(errors='replace') or 'no answer'}): does the board file state this chip's RAM?"
                )
            data += piece
        return data

    def write(self, address: int, data: bytes) -> None:
        for at in range(0, len(data), MOST):
            piece = data[at : at + MOST]
            told = self._ask(f"M{address + at:x},{len(piece):x}:{piece.hex()}")
            if told != b"OK":
                raise DeviceError(
                    f"{self.name}: the debugger cannot write at {address + at:#010x} ({told.decode(errors='replace')})"
                )

    def close(self) -> None:
        with suppress(DeviceError):
            if not self._running:
                self._go_on()
        self._line.close()

    def _begin(self) -> None:
        """Servers halt the device when somebody connects."""
        self._send("?")
        told = self._receive(ANSWER_SECONDS)
        if told is None:
            self._line.write(INTERRUPT)
            told = self._receive(ANSWER_SECONDS)
        if told is None or not told.startswith(STOPPED):
            raise DeviceError(f"{self.name} is no debugger's server: it does not answer; name its GDB port")
        self._go_on()

    def _ask(self, words: str) -> bytes:
        """The answer; where the device runs and the server does not serve meanwhile, with the device halted."""
        if self._running and self._halts is None:
            self._send(words)
            told = self._receive(TRY_SECONDS)
            if told is not None and not told.startswith(STOPPED) and told:
                self._halts = False
                return told
            self._halts = True
            self._running = told is None or not told.startswith(STOPPED)
        if self._running and self._halts:
            self._halt()
        self._send(words)
        told = self._receive(ANSWER_SECONDS)
        while told is not None and told.startswith(STOPPED):  # of a halt that came late
            told = self._receive(ANSWER_SECONDS)
        if told is None:
            raise DeviceError(f"{self.name}: the debugger does not answer within {ANSWER_SECONDS:g} s")
        return told

    def _halt(self) -> None:
        self._line.write(INTERRUPT)
        told = self._receive(ANSWER_SECONDS)
        if told is None or not told.startswith(STOPPED):
            raise DeviceError(f"{self.name}: the debugger does not halt the device; reset the board")
        self._running = False

    def _go_on(self) -> None:
        self._send("c")
        self._running = True

    def _send(self, words: str) -> None:
        self._line.write(f"${words}#{sum(words.encode()) & 0xFF:02x}".encode())

    def _receive(self, seconds: float) -> bytes | None:
        """The next packet; acknowledgements and what a program prints are left out."""
        end = time.monotonic() + seconds
        while True:
            begin = self._rest.find(b"$")
            stop = self._rest.find(b"#", begin)
            if begin >= 0 and stop >= 0 and len(self._rest) >= stop + 3:
                packet, self._rest = self._rest[begin + 1 : stop], self._rest[stop + 3 :]
                self._line.write(b"+")
                if not packet.startswith(b"O") or packet == b"OK":
                    return _expanded(packet)
                continue
            left = end - time.monotonic()
            if left <= 0:
                return None
            self._rest += self._line.read(left)


def _expanded(packet: bytes) -> bytes:
    """With what run-length encoding left out."""
    if b"*" not in packet:
        return packet
    found = bytearray()
    place = 0
    while place < len(packet):
        if packet[place : place + 1] == b"*" and found and place + 1 < len(packet):
            found += found[-1:] * (packet[place + 1] - 29)
            place += 2
        else:
            found += packet[place : place + 1]
            place += 1
    return bytes(found)
