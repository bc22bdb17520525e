"""Listens to a board's log, and records when the engines of device models worked."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from uaccel.build.children import environment
from uaccel.errors import DeviceError
from uaccel.session.message import Message, describe_bytes
from uaccel.session.protocol_ids import Boot, Fault, Log, LogLevel, Type
from uaccel.session.transport import Transport, decode
from uaccel.util import incoming

# Monitor: a board's log, its faults, and plain text that it sends besides frames.

SLICE: Final = 0.2  # Seconds that one read waits, at most.
LONGEST: Final = 1 << 16  # Bytes of an unfinished line or frame that are kept.
Kind = Literal["log", "fault", "boot", "text"]


@dataclass(frozen=True)
class Heard:
    """Holds a line that a board sent; ``level`` is the level of a log line, and empty for plain text."""

    kind: Kind
    level: str
    text: str


class Monitor:
    """Splits a stream of frames and plain text in any order; answers to other clients are left out.

    A zero ends a frame. A newline ends a line only if all before it is text, since frames may contain newlines.
    """

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Heard]:
        """The lines that are complete now."""
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
    """Whether the bytes are printable text. A frame holds a CRC and numbers, which hardly ever are."""
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
    """Yields each line as it comes, for so many seconds or until the transport ends."""
    monitor = Monitor()
    end = None if seconds is None else transport.clock() + seconds
    while end is None or transport.clock() < end:
        left = SLICE if end is None else min(SLICE, max(0.0, end - transport.clock()))
        yield from monitor.feed(transport.read(left))


# Recorder: when the engines of accelerators' device models worked, as the models write it down during a session.

MOVERS: Final = ("load", "store")  # Engines that move data, and compute nothing.
# The environment variable that names the file; processes and emulators that are started pass it on to the models.
VARIABLE: Final = "UACCEL_DEVICE_TIMELINE"


@dataclass(frozen=True)
class CommandSpan:
    """Holds one command on an engine, in cycles since the device's reset."""

    engine: str
    command: int
    begin: int
    end: int


@dataclass(frozen=True)
class EngineJob:
    """Holds what one start of a device led to; ``spans`` is empty if the model does not state them."""

    device: str
    begin: int
    end: int
    spans: tuple[CommandSpan, ...]

    @property
    def cycles(self) -> int:
        return self.end - self.begin


class Recorder:
    """Makes device models that start inside its block write down what they do; afterwards ``jobs`` holds it, unless it
    was only for the ``first`` jobs."""

    def __init__(self, *, keeps: bool = True) -> None:
        self.jobs: list[EngineJob] = []
        self._keeps = keeps
        self._file = Path()
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Recorder:
        number, name = tempfile.mkstemp(prefix="uaccel-", suffix=".timeline")
        os.close(number)
        self._file = Path(name)
        self._open.enter_context(environment({VARIABLE: name}))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self.jobs = list(self._read()) if self._keeps else []
        self._file.unlink()

    def first(self, cycles: int) -> tuple[EngineJob, ...]:
        """The jobs that were started first, until they have lasted so many cycles: those of the first inference."""
        found: list[EngineJob] = []
        jobs = self._read()
        while cycles > 0 and (job := next(jobs, None)) is not None:
            found.append(job)
            cycles -= job.cycles
        return tuple(found)

    def _read(self) -> Iterator[EngineJob]:
        with io.TextIOWrapper(incoming.opened(self._file), encoding="utf-8") as lines:
            yield from read_jobs(lines)


FirstJobs = Callable[[int], "tuple[EngineJob, ...]"]  # The jobs that were started first, of so many cycles.


@contextlib.contextmanager
def recorded(wanted: bool) -> Iterator[FirstJobs]:
    """Records device models until the end of the block if ``wanted``. It gives what tells the first jobs, of so many
    cycles, once the models have ended: thousands of inferences write more than a run should hold."""
    if not wanted:
        yield lambda cycles: ()
        return
    with Recorder(keeps=False) as recorder:
        yield recorder.first


def read_jobs(lines: Iterable[str]) -> Iterator[EngineJob]:
    """Reads jobs in the order in which they were started. A model writes a job's spans first, then the job itself."""
    spans: dict[str, list[CommandSpan]] = {}
    for line in lines:
        device, what, *rest = line.split()
        if what == "span":
            command, begin, end = map(int, rest[1:])
            spans.setdefault(device, []).append(CommandSpan(rest[0], command, begin, end))
        else:
            begin, end = map(int, rest)
            yield EngineJob(device, begin, end, tuple(spans.pop(device, ())))
