"""What a host may do to firmware: a catalogue. Whatever it was, the next session gets the right tensors.

A case yields what it writes: packets of its session or bytes as they are.
"""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from uaccel.session.message import Message
from uaccel.session.protocol_ids import MOST_RUNS, VERSION, Hello, Read, Run, Type, Verbosity, Write
from uaccel.session.transport import Packet, encode

TOKEN: Final = 0x600DF00D
MOST: Final = 2**32 - 1
REQUESTS: Final = (Type.WRITE, Type.RUN, Type.READ, Type.VERBOSITY)
HELLO: Final = Hello(VERSION).pack()
Said: TypeAlias = "Packet | bytes"
Script: TypeAlias = Callable[[], Iterator[Said]]


@dataclass(frozen=True)
class HostCase:
    """``greets``: it begins a session first, whose first request has sequence 1. ``answers``: types that must come."""

    name: str
    script: Script
    greets: bool = True
    answers: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return self.name

    def data(self) -> Iterator[bytes]:
        """What goes over the line."""
        if self.greets:
            yield b"\0" + encode(Packet(Type.HELLO, 0, TOKEN, HELLO))
        for said in self.script():
            yield said if isinstance(said, bytes) else encode(said)


def asks(kind: int, message: Message | bytes, number: int = 1, token: int = TOKEN) -> Packet:
    return Packet(kind, number & 0xFFFF, token, message if isinstance(message, bytes) else message.pack())


def requests(*messages: tuple[int, Message | bytes]) -> Script:
    """In order, each with the sequence that is expected."""
    return lambda: (asks(kind, message, number) for number, (kind, message) in enumerate(messages, 1))


def noise(count: int, *, zeros: bool) -> Script:
    def script() -> Iterator[Said]:
        drawn = random.Random(count)
        yield bytes(drawn.randrange(0 if zeros else 1, 256) for _ in range(count))

    return script


def greetings(count: int) -> Script:
    return lambda: (asks(Type.HELLO, HELLO, 0, 1 + number) for number in range(count))


def bodies_of_every_length() -> Iterator[Said]:
    """Of all types, those of the device and unknown ones too."""
    kinds = [*REQUESTS, Type.HELLO, 0, 7, 0x7F, Type.DATA, Type.BOOT, 0xFF]
    for number, (kind, length) in enumerate(itertools.product(kinds, [*range(20), 511, 512, 513, 4000]), 1):
        yield asks(kind, b"\xff" * length, number)


def ranges_of_objects() -> Iterator[Said]:
    edges = (0, 1, 39, 40, 46, 47, 2**31 - 1, 2**31, MOST - 3, MOST)
    numbers = itertools.count(1)
    for kind, begin, length in itertools.product((*range(7), 255), edges, edges):
        yield asks(Type.READ, Read(kind, 0xFFFF if kind == 3 else 0, 0, begin, length), next(numbers))


def writes_beyond() -> Iterator[Said]:
    edges = (45, 46, 47, 2**16, 2**31 - 1, 2**31, MOST - 8, MOST)
    for number, (begin, length) in enumerate(itertools.product(edges, (0, 1, 8, 508)), 1):
        yield asks(Type.WRITE, Write(begin, b"\xee" * length), number)


def absurd_runs() -> Iterator[Said]:
    counts = (0, MOST_RUNS + 1, 2**31, MOST)
    for number, (name, count, crc, flag) in enumerate(itertools.product((0, MOST), counts, (0, MOST), (0, 255)), 1):
        yield asks(Type.RUN, Run(name, count, crc, flag, flag), number)


def out_of_order() -> Iterator[Said]:
    """Each request thrice, the last first; then from around the whole circle of sequences."""
    yield from [asks(Type.VERBOSITY, Verbosity(1), number) for number in (3, 2, 1) for _ in range(3)]
    yield from [asks(Type.READ, Read(0, 0, 0, 0, 8), number) for number in (0, 1, 2, 32767, 32768, 32769, 65535)]


def resets() -> Iterator[Said]:
    """Before each message, and one more."""
    for number, kind in enumerate(REQUESTS):
        token = TOKEN + number
        yield from (
            asks(Type.HELLO, HELLO, 0, token),
            asks(kind, b"\0" * 14, 1, token),
            asks(Type.RESET, b"", 2, token),
        )
    yield asks(Type.RESET, b"", 3)


def frames_that_lie() -> Iterator[Said]:
    """COBS codes that lead beyond the frame, into the next one, or nowhere; sums that are not those."""
    sound = encode(asks(Type.VERBOSITY, Verbosity(1)))
    for at, value in itertools.product(range(len(sound) - 1), (1, 2, 127, 128, 254, 255)):
        yield sound[:at] + bytes([value]) + sound[at + 1 :]
    yield sound[:-1] * 400 + b"\0"


def floods() -> Iterator[Said]:
    """More asked for than is ever taken: the description, over and over."""
    for number in range(1, 400):
        yield asks(Type.READ, Read(0, 0, 0, 0, MOST), number)


HOSTS: Final = (
    HostCase("noise", noise(60_000, zeros=True)),
    HostCase("noise before any session", noise(60_000, zeros=True), greets=False),
    HostCase("a frame that never ends", noise(60_000, zeros=False)),
    HostCase("zeros", lambda: iter([bytes(60_000)])),
    HostCase("frames that lie", frames_that_lie, answers=(Type.EXPECT,)),
    HostCase("a thousand greetings", greetings(1000), greets=False, answers=(Type.HELLO_REPLY,)),
    HostCase(
        "greetings of other versions",
        lambda: (asks(Type.HELLO, struct.pack("<H", version), 0, 5) for version in (0, VERSION + 1, 0xFFFF)),
        greets=False,
        answers=(Type.HELLO_REPLY,),
    ),
    HostCase("no session", lambda: (asks(kind, b"\0" * 14) for kind in REQUESTS), greets=False, answers=(Type.ERROR,)),
    HostCase("token 0", lambda: (asks(kind, b"\0" * 14, 1, 0) for kind in range(256))),
    HostCase("another's token", lambda: (asks(kind, b"\0" * 14, 1, 7) for kind in REQUESTS), answers=(Type.ERROR,)),
    HostCase("bodies of every length", bodies_of_every_length, answers=(Type.ERROR,)),
    HostCase("ranges of 4 GB", ranges_of_objects, answers=(Type.ERROR, Type.DATA, Type.READ_REPLY)),
    HostCase("writes beyond the end", writes_beyond, answers=(Type.ERROR,)),
    HostCase("absurd runs", absurd_runs, answers=(Type.ERROR,)),
    HostCase("out of order", out_of_order, answers=(Type.EXPECT, Type.VERBOSITY_REPLY)),
    HostCase("layers that are not", requests((Type.READ, Read(3, 9, 0, 0, MOST)), (Type.READ, Read(4, 9, 0, 0, MOST)))),
    HostCase("every level", requests(*((Type.VERBOSITY, bytes([level])) for level in range(256)))),
    HostCase("resets", resets, answers=(Type.BOOT, Type.RESET_REPLY)),
    HostCase("more asked than taken", floods, answers=(Type.DATA,)),
)
