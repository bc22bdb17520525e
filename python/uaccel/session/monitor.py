"""Listening to a board: its log, its faults, and what it says that is no frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from uaccel.errors import DeviceError
from uaccel.session.frame import decode
from uaccel.session.ids import Boot, Fault, Log, LogLevel, Type
from uaccel.session.message import Message, shown
from uaccel.session.transport import Transport

SLICE: Final = 0.2
"""Seconds between two looks whether it is over."""
LONGEST: Final = 1 << 16
Kind = Literal["log", "fault", "boot", "text"]


@dataclass(frozen=True)
class Heard:
    """A line. ``level`` is that of the log's; ``text`` of anything else."""

    kind: Kind
    level: str
    text: str


class Monitor:
    """Takes a stream apart that holds frames and plain text in any order; answers to other clients are left out."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Heard]:
        """What is complete now."""
        heard = []
        for byte in data:
            if byte == ord("\0"):
                heard += self._frame(self._taken())
            elif byte == ord("\n") and is_text(self._rest):
                heard += _line(self._taken())
            else:
                self._rest.append(byte)
                del self._rest[:-LONGEST]
        return heard

    def _taken(self) -> bytes:
        data = bytes(self._rest)
        self._rest.clear()
        return data

    def _frame(self, frame: bytes) -> list[Heard]:
        packet = decode(frame)
        if packet is None:
            return _line(frame) if is_text(frame) else []
        try:
            return _told(packet.type, packet.body)
        except DeviceError as error:
            return [Heard("text", "", str(error))]


def is_text(data: bytes | bytearray) -> bool:
    """Whether a person could have meant it. A frame holds a CRC and numbers, which hardly ever look so."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return all(char.isprintable() or char in "\r\t" for char in text)


def _line(data: bytes) -> list[Heard]:
    text = shown(data)
    return [Heard("text", "", text)] if text else []


def _told(kind: int, body: bytes) -> list[Heard]:
    readers: dict[int, type[Message]] = {Type.LOG: Log, Type.FAULT: Fault, Type.BOOT: Boot}
    if kind not in readers:
        return []
    message = readers[kind].unpack(body)
    if isinstance(message, Log):
        return [Heard("log", LogLevel(min(message.level, LogLevel.ERROR)).name.lower(), shown(message.text))]
    if isinstance(message, Fault):
        return [Heard("fault", "error", shown(message.text))]
    return [Heard("boot", "info", "the firmware has started")]


def listen(transport: Transport, seconds: float | None) -> Iterator[Heard]:
    """Each line as it comes; for so long, or until the line ends."""
    monitor = Monitor()
    end = None if seconds is None else transport.clock() + seconds
    while end is None or transport.clock() < end:
        left = SLICE if end is None else min(SLICE, max(0.0, end - transport.clock()))
        yield from monitor.feed(transport.read(left))
