"""Listening to a board, and when its engines worked."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Literal

from uaccel.errors import DeviceError
from uaccel.session.message import Message, describe_bytes
from uaccel.session.protocol_ids import Boot, Fault, Log, LogLevel, Type
from uaccel.session.transport import Transport, decode

# Listening to a board: its log, its faults, and what it says that is no frame.

SLICE: Final = 0.2  # Seconds between two looks whether it is over.
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
    text = describe_bytes(data)
    return [Heard("text", "", text)] if text else []


def _told(kind: int, body: bytes) -> list[Heard]:
    readers: dict[int, type[Message]] = {Type.LOG: Log, Type.FAULT: Fault, Type.BOOT: Boot}
    if kind not in readers:
        return []
    message = readers[kind].unpack(body)
    if isinstance(message, Log):
        return [Heard("log", LogLevel(min(message.level, LogLevel.ERROR)).name.lower(), describe_bytes(message.text))]
    if isinstance(message, Fault):
        return [Heard("fault", "error", describe_bytes(message.text))]
    return [Heard("boot", "info", "the firmware has started")]


def listen(transport: Transport, seconds: float | None) -> Iterator[Heard]:
    """Each line as it comes; for so long, or until the line ends."""
    monitor = Monitor()
    end = None if seconds is None else transport.clock() + seconds
    while end is None or transport.clock() < end:
        left = SLICE if end is None else min(SLICE, max(0.0, end - transport.clock()))
        yield from monitor.feed(transport.read(left))


# When the engines of accelerators' device models worked: what the models tell while a session runs.

# Names the file; processes and emulators that are started hand it on to the models.
VARIABLE: Final = "UACCEL_DEVICE_TIMELINE"


@dataclass(frozen=True)
class CommandSpan:
    """One command on an engine, in cycles since the device's reset."""

    engine: str
    command: int
    begin: int
    end: int


@dataclass(frozen=True)
class Job:
    """What one start of a device set off; ``spans`` is empty where the model does not tell them."""

    device: str
    begin: int
    end: int
    spans: tuple[CommandSpan, ...]

    @property
    def cycles(self) -> int:
        return self.end - self.begin


class Recorder:
    """While it is entered, device models that are started write down what they do; then ``jobs`` holds it."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self._before: str | None = None
        self._file = Path()

    def __enter__(self) -> Recorder:
        number, name = tempfile.mkstemp(prefix="uaccel-", suffix=".timeline")
        os.close(number)
        self._file = Path(name)
        self._before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = name
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = self._before
        self.jobs = read_jobs(self._file.read_text().splitlines())
        self._file.unlink()


@contextlib.contextmanager
def recorded(wanted: bool) -> Iterator[list[Job]]:
    """What device models tell until the end of the block, where that is wanted; the list is filled then."""
    jobs: list[Job] = []
    if not wanted:
        yield jobs
        return
    with Recorder() as recorder:
        yield jobs
    jobs += recorder.jobs


def read_jobs(lines: list[str]) -> list[Job]:
    """In the order in which they were started."""
    jobs: list[Job] = []
    spans: dict[str, list[CommandSpan]] = {}
    for line in lines:
        device, what, *rest = line.split()
        if what == "span":
            command, begin, end = map(int, rest[1:])
            spans.setdefault(device, []).append(CommandSpan(rest[0], command, begin, end))
        else:
            begin, end = map(int, rest)
            jobs.append(Job(device, begin, end, tuple(spans.pop(device, ()))))
    return jobs
