"""What the host keeps under way, and how it puts together what comes back."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from support.device.device import tokens
from uaccel.session.link import Link, Pieces, Timeouts
from uaccel.session.protocol_ids import VERSION, HelloReply, Type, Write
from uaccel.session.transport import Decoder, Packet, Transport, encode


class Deaf(Transport):
    """A device that greets, states the size of its buffer, and never takes anything out of it."""

    name = "the deaf device"

    def __init__(self, receive_bytes: int) -> None:
        self.written = 0
        self.patience: list[float] = []
        self.now = 0.0
        self._receive_bytes = receive_bytes
        self._decoder = Decoder()
        self._waiting = b""

    def clock(self) -> float:
        return self.now

    def close(self) -> None:
        """Nothing to let go of."""

    def write(self, data: bytes, timeout: float = 0.0) -> None:
        self.written += len(data)
        self.patience.append(timeout)
        for packet in self._decoder.feed(data):
            if packet is not None and packet.type == Type.HELLO:
                reply = HelloReply(VERSION, 0, 512, self._receive_bytes, 0, 0, 0, 0, 0, 2, 0, bytes(32), bytes(8), b"x")
                self._waiting += encode(Packet(Type.HELLO_REPLY, packet.sequence, packet.token, reply.pack()))
                self.written = 0

    def read(self, timeout: float) -> bytes:
        data, self._waiting = self._waiting, b""
        return data


MESSAGE = Write(0, b"\1" * 20)
SIZE = len(encode(Packet(MESSAGE.TYPE, 1, next(tokens()), MESSAGE.pack())))


def greeted(line: Deaf) -> Link:
    fresh = tokens()
    link = Link(line, Timeouts(), lambda log, lines: None, lambda: next(fresh))
    link.hello()
    return link


@pytest.mark.parametrize(("spare", "frames"), [(0, 3), (-1, 2), (1, 3)])
def test_no_more_is_under_way_than_the_device_has_room_for(spare: int, frames: int) -> None:
    line = Deaf(3 * SIZE + spare)
    link = greeted(line)
    for _ in range(5):
        link.submit(MESSAGE, "write")
    assert line.written == frames * SIZE


def test_how_long_a_line_may_take_what_is_sent() -> None:
    """The bytes at their slowest, and ten seconds: the operation as a whole has thirty."""
    line = Deaf(SIZE)
    greeted(line).submit(MESSAGE, "write")
    assert line.patience[-1] == pytest.approx(10 + SIZE / 500)


def test_what_a_device_misses_again_and_again_is_sent_once_in_a_while() -> None:
    line = Deaf(SIZE)
    link = greeted(line)
    sent = []
    with link.operation():
        link.submit(MESSAGE, "write")
        for line.now in (0.0, 0.1, 0.12, 0.13, 0.24, 0.26):  # half of the quarter of a second until an answer
            line.written = 0
            link._lost(7)
            sent.append(line.written > 0)
        link._lost(8)
    assert sent == [True, False, False, True, False, True]
    assert link.traffic.repeated == 4, "another one is told at once"


@pytest.mark.parametrize(("drawn", "token"), [(lambda below: 0, 1), (lambda below: below - 1, 2**32 - 1)])
def test_tokens_are_of_32_bits_and_not_0(
    drawn: Callable[[int], int], token: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "randbelow", drawn)
    assert Link(Deaf(0), Timeouts(), lambda log, lines: None)._new_token() == token


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
