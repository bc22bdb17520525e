"""A device that a script plays: well behaved, until the script says otherwise. On a line in a time of its own, and on
pipes, sockets and terminals.

A script yields what the device does next: bytes that it sends, seconds that it rests, or None: it waits for the host.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import threading
import time
import tty
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from uaccel.session.message import Message
from uaccel.session.protocol_ids import (
    VERSION,
    Boot,
    Data,
    ErrorCode,
    Flag,
    HelloReply,
    ObjectKind,
    Read,
    ReadReply,
    Run,
    RunReply,
    Type,
    Write,
)
from uaccel.session.protocol_ids import Error as ErrorMessage
from uaccel.session.transport import WRITE_SECONDS, Decoder, Packet, StreamTransport, Transport, encode

Step: TypeAlias = "bytes | float | None"
Script: TypeAlias = Iterator[Step]
Array = NDArray[Any]

SHORT = 1000
ELEMENTS = 400
TENSOR = {"shape": [1, ELEMENTS], "dtype": "int8"}
DESCRIPTION: dict[str, Any] = {
    "model": "scripted",
    "inputs": [{"name": "x", **TENSOR}],
    "outputs": [{"name": "y", **TENSOR}],
    "layers": [{"name": "turn", "op": "turn", "engine": "cpu", "outputs": [TENSOR]}],
}
INPUT = (np.arange(ELEMENTS) % 251 - 120).astype(np.int8).reshape(1, ELEMENTS)
OUTPUT = INPUT ^ np.int8(0x5A)


def reply(packet: Packet, kind: int, message: Message | None = None) -> Packet:
    return Packet(kind, packet.sequence, packet.token, message.pack() if message is not None else b"")


BOOT = encode(Packet(Type.BOOT, 0, 0, Boot(VERSION).pack()))


@dataclass
class Device:
    """What it answers as long as it behaves; ``said`` may be changed for a device that lies."""

    description: bytes = field(default_factory=lambda: json.dumps(DESCRIPTION).encode())
    hello: dict[str, Any] = field(default_factory=dict)
    piece: int = 64
    inputs: bytearray = field(default_factory=lambda: bytearray(ELEMENTS))

    def greeting(self) -> HelloReply:
        sizes = (1, 1, 1, ELEMENTS, ELEMENTS, len(self.description))
        usual = HelloReply(VERSION, Flag.OBSERVE, 96, 512, *sizes, 1000, bytes(32), bytes(8), b"scripted")
        return replace(usual, **self.hello)

    @property
    def outputs(self) -> bytes:
        return bytes(byte ^ 0x5A for byte in self.inputs)

    def answer(self, packet: Packet) -> list[Packet]:
        if packet.type == Type.HELLO:
            return [reply(packet, Type.HELLO_REPLY, self.greeting())]
        if packet.type == Type.WRITE:
            write = Write.unpack(packet.body)
            self.inputs[write.offset : write.offset + len(write.data)] = write.data
            return [reply(packet, Type.WRITE_REPLY)]
        if packet.type == Type.RUN:
            run, started = Run.unpack(packet.body), reply(packet, Type.STARTED)
            if run.input_crc != zlib.crc32(self.inputs):
                return [started, started, refused(packet, ErrorCode.INPUT)]
            data = self.outputs if run.outputs else b""
            return [started, started, *self.pieces(packet, data), reply(packet, Type.RUN_REPLY, self.run_reply())]
        if packet.type == Type.READ:
            return self.read(packet, Read.unpack(packet.body))
        return [reply(packet, packet.type | 0x80)]

    def run_reply(self, **change: Any) -> RunReply:
        usual = RunReply(0, zlib.crc32(self.outputs), 7, 7, 70, 99, 0, 0)
        return replace(usual, **change)

    def read(self, packet: Packet, read: Read) -> list[Packet]:
        layer = struct.pack("<HHI", 0, 0, ELEMENTS) + self.outputs
        objects = {
            ObjectKind.DESCRIPTION: self.description,
            ObjectKind.OUTPUTS: self.outputs,
            ObjectKind.LAYERS: layer,
            ObjectKind.TIMES: struct.pack("<HQQ", 0, 7, 70),
            ObjectKind.ACCOUNTS: struct.pack("<I", 1),
        }
        whole = objects[ObjectKind(read.object)]
        pieces = self.pieces(packet, whole, read.offset, min(len(whole), read.offset + read.length))
        return [*pieces, reply(packet, Type.READ_REPLY, ReadReply(len(whole)))]

    def pieces(self, packet: Packet, whole: bytes, begin: int = 0, end: int = ELEMENTS) -> list[Packet]:
        ranges = [(at, min(end, at + self.piece)) for at in range(begin, min(end, len(whole)), self.piece)]
        return [reply(packet, Type.DATA, Data(at, whole[at:stop])) for at, stop in ranges]


class Heard(deque[Packet]):
    """What the host has said, taken apart."""

    def __init__(self) -> None:
        super().__init__()
        self._decoder = Decoder()

    def feed(self, data: bytes) -> None:
        self.extend(packet for packet in self._decoder.feed(data) if packet is not None)


Misbehave: TypeAlias = Callable[[Device, Packet], Script]
When: TypeAlias = Callable[[Packet], bool]


def play(device: Device, heard: Heard, when: When, misbehave: Misbehave) -> Script:
    """``misbehave`` is what it does instead of an answer, each time ``when`` says so."""
    while True:
        while not heard:
            yield None
        packet = heard.popleft()
        if when(packet):
            yield from misbehave(device, packet)
        else:
            yield b"".join(encode(answer) for answer in device.answer(packet))


class Played(Transport):
    """In a time of its own: what the device sends takes ``bytes_a_second``, but for large pieces; the rest nothing."""

    name = "the device"
    bytes_a_second = 5_000.0

    def __init__(self, device: Device, when: When, misbehave: Misbehave) -> None:
        self.now = 0.0
        self._heard = Heard()
        self._script = play(device, self._heard, when, misbehave)
        self._rests_until = 0.0
        self._next: bytes | None = None

    def clock(self) -> float:
        return self.now

    def close(self) -> None:
        """Nothing to let go of."""

    def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
        self._heard.feed(data)

    def read(self, timeout: float) -> bytes:
        until = self.now + max(0.0, timeout)
        while True:
            if self._rests_until > until:
                self.now = max(self.now, until)
                return b""
            self.now = max(self.now, self._rests_until)
            if self._next is not None:
                data, self._next = self._next, None
                return data
            step = next(self._script, None)
            if step is None and not self._heard:
                self.now = until
                return b""
            if isinstance(step, bytes):
                self._next, self._rests_until = step or None, self.now + min(len(step), SHORT) / self.bytes_a_second
            elif step is not None:
                self._rests_until = self.now + step


def act(script: Script, heard: Heard, reading: int, writing: int, stop: threading.Event) -> None:
    """The same at the far end of real descriptors, until the line ends."""
    with suppress(OSError):
        for step in script:
            if stop.is_set():
                return
            if isinstance(step, bytes):
                rest = memoryview(step)
                while rest and not stop.is_set():
                    with suppress(BlockingIOError):
                        rest = rest[os.write(writing, rest[:4096]) :]
                        continue
                    select.select([], [writing], [], 0.05)
            elif step is not None:
                time.sleep(step)
            elif select.select([reading], [], [], 0.05)[0]:
                data = os.read(reading, 1 << 16)
                if not data:
                    return
                heard.feed(data)


def ends_of(kind: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Descriptors to read and to write: the host's, the device's."""
    if kind == "pipe":
        (host_reads, device_writes), (device_reads, host_writes) = os.pipe(), os.pipe()
        return (host_reads, host_writes), (device_reads, device_writes)
    if kind == "socket":
        ours, theirs = (end.detach() for end in socket.socketpair())
    else:
        theirs, ours = os.openpty()
        tty.setraw(ours)
    return (ours, ours), (theirs, theirs)


@contextmanager
def on_a_real_line(kind: str, device: Device, when: When, misbehave: Misbehave) -> Iterator[StreamTransport]:
    """``kind``: pipe, socket or terminal."""
    (reading, writing), theirs = ends_of(kind)
    for descriptor in theirs:
        os.set_blocking(descriptor, False)
    heard, stop = Heard(), threading.Event()
    thread = threading.Thread(target=act, args=(play(device, heard, when, misbehave), heard, *theirs, stop))
    thread.start()
    try:
        yield StreamTransport("the device", reading, writing, lambda: None)
    finally:
        stop.set()
        thread.join()
        for descriptor in {reading, writing, *theirs}:
            os.close(descriptor)


def refused(packet: Packet, code: ErrorCode | int, detail: int = 0, text: bytes = b"") -> Packet:
    return reply(packet, Type.ERROR, ErrorMessage(int(code), detail, text))


@contextmanager
def behind_tcp(device: Device, when: When, misbehave: Misbehave) -> Iterator[str]:
    """For whoever connects, one after the other: the port."""
    server, stop = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        with suppress(OSError):
            while not stop.is_set():
                connection, _ = server.accept()
                with connection:
                    connection.setblocking(False)
                    heard, ends = Heard(), (connection.fileno(), connection.fileno())
                    act(play(device, heard, when, misbehave), heard, *ends, stop)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"socket://127.0.0.1:{server.getsockname()[1]}"
    finally:
        stop.set()
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        server.close()
