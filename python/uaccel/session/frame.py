"""Packets on the line: a CRC-32 behind each, zeros taken out by COBS, a zero as the end of a frame."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from cobs import cobs

from uaccel.session.ids import HEADER

CRC_BYTES: Final = 4
OVERHEAD: Final = HEADER.size + CRC_BYTES
"""Bytes of a packet beside its body."""
LONGEST_FRAME: Final = 1 << 17
"""Longer than any device may send: what goes on without a zero beyond this is noise."""


@dataclass(frozen=True)
class Packet:
    """One message, unread."""

    type: int
    sequence: int
    token: int
    body: bytes = b""


def encode(packet: Packet) -> bytes:
    """The frame, with the zero that ends it."""
    data = HEADER.pack(packet.type, packet.sequence, packet.token) + packet.body
    crc = zlib.crc32(data).to_bytes(CRC_BYTES, "little")
    return bytes(cobs.encode(data + crc)) + b"\0"


def decode(frame: bytes) -> Packet | None:
    """A frame without its zero; nothing where it is damaged."""
    try:
        data = cobs.decode(frame)
    except cobs.DecodeError:
        return None
    if len(data) < OVERHEAD or zlib.crc32(data[:-CRC_BYTES]) != int.from_bytes(data[-CRC_BYTES:], "little"):
        return None
    kind, sequence, token = HEADER.unpack_from(data)
    return Packet(kind, sequence, token, data[HEADER.size : -CRC_BYTES])


class Decoder:
    """Takes a stream apart, in whatever pieces it comes."""

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
