"""What the host keeps under way, and how it puts together what comes back."""

from __future__ import annotations

import pytest

from support.device import tokens
from uaccel.session.frame import Decoder, Packet, encode
from uaccel.session.ids import VERSION, HelloReply, Type, Write
from uaccel.session.link import Link, Timeouts
from uaccel.session.request import Pieces
from uaccel.session.transport import Transport


class Deaf(Transport):
    """A device that greets, states the size of its buffer, and never takes anything out of it."""

    name = "the deaf device"

    def __init__(self, receive_bytes: int) -> None:
        self.written = 0
        self._receive_bytes = receive_bytes
        self._decoder = Decoder()
        self._waiting = b""

    def clock(self) -> float:
        return 0.0

    def close(self) -> None:
        """Nothing to let go of."""

    def write(self, data: bytes, timeout: float = 0.0) -> None:
        self.written += len(data)
        for packet in self._decoder.feed(data):
            if packet is not None and packet.type == Type.HELLO:
                reply = HelloReply(VERSION, 0, 512, self._receive_bytes, 0, 0, 0, 0, 0, 2, 0, bytes(32), bytes(8), b"x")
                self._waiting += encode(Packet(Type.HELLO_REPLY, packet.sequence, packet.token, reply.pack()))
                self.written = 0

    def read(self, timeout: float) -> bytes:
        data, self._waiting = self._waiting, b""
        return data


@pytest.mark.parametrize(("spare", "frames"), [(0, 3), (-1, 2), (1, 3)])
def test_no_more_is_under_way_than_the_device_has_room_for(spare: int, frames: int) -> None:
    message, fresh = Write(0, b"\1" * 20), tokens()
    size = len(encode(Packet(message.TYPE, 1, next(tokens()), message.pack())))
    line = Deaf(3 * size + spare)
    link = Link(line, Timeouts(), lambda log, lines: None, lambda: next(fresh))
    link.hello()
    for _ in range(5):
        link.submit(message, "write")
    assert line.written == frames * size


@pytest.mark.parametrize(
    ("pieces", "missing"),
    [
        ([], [(0, 10)]),
        ([(0, 10)], []),
        ([(2, 3), (7, 1)], [(0, 2), (5, 2), (8, 2)]),
        ([(0, 10), (2, 3)], []),  # a piece within another does not move the end back
        ([(0, 6), (2, 3)], [(6, 4)]),
        ([(2, 3), (0, 6), (8, 1)], [(6, 2), (9, 1)]),
        ([(0, 4), (3, 4), (6, 4)], []),
        ([(4, 20)], [(0, 4)]),
    ],
)
def test_what_is_missing_of_an_object(pieces: list[tuple[int, int]], missing: list[tuple[int, int]]) -> None:
    whole, object_ = bytes(range(30)), Pieces(10)
    there: set[int] = set()
    for offset, length in pieces:
        new = set(range(offset, min(offset + length, 10))) - there
        there |= new
        assert object_.add(offset, whole[offset : offset + length]) == len(new)
        assert object_.add(offset, whole[offset : offset + length]) == 0
    assert object_.missing() == missing
    for offset, length in missing:
        object_.add(offset, whole[offset : offset + length])
    assert object_.value() == whole[:10]
