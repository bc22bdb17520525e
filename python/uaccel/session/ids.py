"""The numbers and layouts of the session protocol (docs/protocol.md).

Written by scripts/protocol.py from firmware/protocol.toml; do not edit.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import ClassVar, Final

from uaccel.session.message import Message

VERSION: Final = 1
FROM_DEVICE: Final = 0x80
MOST_RUNS: Final = 65535
HEADER: Final = Struct("<BHI")
"""type, sequence, token"""


class Type(IntEnum):
    """What a packet is."""

    HELLO = 0x01
    WRITE = 0x02
    RUN = 0x03
    READ = 0x04
    VERBOSITY = 0x05
    RESET = 0x06
    HELLO_REPLY = 0x81
    WRITE_REPLY = 0x82
    RUN_REPLY = 0x83
    READ_REPLY = 0x84
    VERBOSITY_REPLY = 0x85
    RESET_REPLY = 0x86
    DATA = 0x90
    STARTED = 0x91
    EXPECT = 0x92
    ERROR = 0x93
    BOOT = 0xA0
    LOG = 0xA1
    FAULT = 0xA2


class ObjectKind(IntEnum):
    """Objects that `read` reads."""

    DESCRIPTION = 0
    INPUTS = 1
    OUTPUTS = 2
    LAYERS = 3
    TIMES = 4
    ACCOUNTS = 5


class Flag(IntEnum):
    """Flags of `hello_reply`."""

    OBSERVE = 1
    WORKSPACE_IO = 2
    STATE = 4


class ErrorCode(IntEnum):
    """Errors, and what `detail` says."""

    STALE = 1
    TYPE = 2
    LENGTH = 3
    OBJECT = 4
    RANGE = 5
    INPUT = 6
    RUN = 7
    OBSERVE = 8
    MODEL = 9
    FORGOTTEN = 10
    SPENT = 11
    COUNT = 12


class LogLevel(IntEnum):
    """Log levels."""

    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3
    SILENT = 4


@dataclass(frozen=True)
class Hello(Message):
    """Begins a session: the packet's token becomes the device's, and the next request has sequence 1."""

    TYPE: ClassVar[int] = Type.HELLO
    LAYOUT: ClassVar[Struct] = Struct("<H")
    version: int


@dataclass(frozen=True)
class Write(Message):
    """Writes a piece of the inputs."""

    TYPE: ClassVar[int] = Type.WRITE
    LAYOUT: ClassVar[Struct] = Struct("<I")
    TAIL: ClassVar[bool] = True
    offset: int
    data: bytes = b""


@dataclass(frozen=True)
class Run(Message):
    """Runs the model on the inputs that were written."""

    TYPE: ClassVar[int] = Type.RUN
    LAYOUT: ClassVar[Struct] = Struct("<IIIBB")
    run: int
    count: int
    input_crc: int
    outputs: int
    continues: int


@dataclass(frozen=True)
class Read(Message):
    """Reads a range of an object; `data` packets bring it."""

    TYPE: ClassVar[int] = Type.READ
    LAYOUT: ClassVar[Struct] = Struct("<BHIII")
    object: int
    index: int
    run: int
    offset: int
    length: int


@dataclass(frozen=True)
class Verbosity(Message):
    """Says which log lines the device may send from now on."""

    TYPE: ClassVar[int] = Type.VERBOSITY
    LAYOUT: ClassVar[Struct] = Struct("<B")
    level: int


@dataclass(frozen=True)
class Reset(Message):
    """Restarts the firmware, after the answer."""

    TYPE: ClassVar[int] = Type.RESET
    LAYOUT: ClassVar[Struct] = Struct("<")


@dataclass(frozen=True)
class HelloReply(Message):
    """Who is there."""

    TYPE: ClassVar[int] = Type.HELLO_REPLY
    LAYOUT: ClassVar[Struct] = Struct("<HHHIHHHIIII32s8s")
    TAIL: ClassVar[bool] = True
    version: int
    flags: int
    body_bytes: int
    receive_bytes: int
    inputs: int
    outputs: int
    layers: int
    input_bytes: int
    output_bytes: int
    description_bytes: int
    ticks_per_second: int
    model_hash: bytes
    build: bytes
    name: bytes = b""


@dataclass(frozen=True)
class WriteReply(Message):
    """The piece is there."""

    TYPE: ClassVar[int] = Type.WRITE_REPLY
    LAYOUT: ClassVar[Struct] = Struct("<")


@dataclass(frozen=True)
class RunReply(Message):
    """What came of a run."""

    TYPE: ClassVar[int] = Type.RUN_REPLY
    LAYOUT: ClassVar[Struct] = Struct("<iIQQQIIQ")
    TAIL: ClassVar[bool] = True
    status: int
    output_crc: int
    ticks: int
    least_ticks: int
    instructions: int
    stack_bytes: int
    calls: int
    cycles: int
    failure: bytes = b""


@dataclass(frozen=True)
class ReadReply(Message):
    """All `data` packets of the range were sent."""

    TYPE: ClassVar[int] = Type.READ_REPLY
    LAYOUT: ClassVar[Struct] = Struct("<I")
    object_bytes: int


@dataclass(frozen=True)
class VerbosityReply(Message):
    """The level is set."""

    TYPE: ClassVar[int] = Type.VERBOSITY_REPLY
    LAYOUT: ClassVar[Struct] = Struct("<")


@dataclass(frozen=True)
class ResetReply(Message):
    """The firmware restarts now."""

    TYPE: ClassVar[int] = Type.RESET_REPLY
    LAYOUT: ClassVar[Struct] = Struct("<")


@dataclass(frozen=True)
class Data(Message):
    """A piece of what a `read` or a `run` asked for, with its sequence."""

    TYPE: ClassVar[int] = Type.DATA
    LAYOUT: ClassVar[Struct] = Struct("<I")
    TAIL: ClassVar[bool] = True
    offset: int
    data: bytes = b""


@dataclass(frozen=True)
class Started(Message):
    """A request that runs the model has arrived; its answer takes as long as the model does. Sent twice."""

    TYPE: ClassVar[int] = Type.STARTED
    LAYOUT: ClassVar[Struct] = Struct("<")


@dataclass(frozen=True)
class Expect(Message):
    """Something was lost: the packet's sequence is the one that the device waits for."""

    TYPE: ClassVar[int] = Type.EXPECT
    LAYOUT: ClassVar[Struct] = Struct("<")


@dataclass(frozen=True)
class Error(Message):
    """The answer to a request that cannot be served; repeats its sequence and its token."""

    TYPE: ClassVar[int] = Type.ERROR
    LAYOUT: ClassVar[Struct] = Struct("<BI")
    TAIL: ClassVar[bool] = True
    code: int
    detail: int
    text: bytes = b""


@dataclass(frozen=True)
class Boot(Message):
    """The firmware has started; token and sequence are 0."""

    TYPE: ClassVar[int] = Type.BOOT
    LAYOUT: ClassVar[Struct] = Struct("<H")
    version: int


@dataclass(frozen=True)
class Log(Message):
    """A line of the device's log. The sequence counts them, so that a lost one is noticed; none is sent twice."""

    TYPE: ClassVar[int] = Type.LOG
    LAYOUT: ClassVar[Struct] = Struct("<B")
    TAIL: ClassVar[bool] = True
    level: int
    text: bytes = b""


@dataclass(frozen=True)
class Fault(Message):
    """The firmware has stopped for good; token and sequence are 0."""

    TYPE: ClassVar[int] = Type.FAULT
    LAYOUT: ClassVar[Struct] = Struct("<")
    TAIL: ClassVar[bool] = True
    text: bytes = b""
