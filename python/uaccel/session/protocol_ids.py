"""The numbers and layouts of the session protocol (docs/protocol.md).

Written by scripts/protocol.py from firmware/protocol.toml; do not edit.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final

from uaccel.session.message import Message

VERSION: Final = 1
FROM_DEVICE: Final = 0x80
MOST_RUNS: Final = 65535
HEADER: Final = Struct("<BHI")  # type, sequence, token


class Type(IntEnum):
    """What a packet is."""

    HELLO = 0x01
    WRITE = 0x02
    RUN = 0x03
    READ = 0x04
    VERBOSITY = 0x05
    RESET = 0x06
    WRITE_STATE = 0x07
    HELLO_REPLY = 0x81
    WRITE_REPLY = 0x82
    RUN_REPLY = 0x83
    READ_REPLY = 0x84
    VERBOSITY_REPLY = 0x85
    RESET_REPLY = 0x86
    WRITE_STATE_REPLY = 0x87
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
    STATE = 6


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
    STATE = 13


class LogLevel(IntEnum):
    """Log levels."""

    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3
    SILENT = 4


class Hello(Message, type_=Type.HELLO, layout="<H"):
    """Begins a session: the packet's token becomes the device's, and the next request has sequence 1."""

    version: int


class Write(Message, type_=Type.WRITE, layout="<I", tail=True):
    """Writes a piece of the inputs."""

    offset: int
    data: bytes = b""


class Run(Message, type_=Type.RUN, layout="<IIIBB"):
    """Runs the model on the inputs that were written."""

    run: int
    count: int
    input_crc: int
    outputs: int
    continues: int


class Read(Message, type_=Type.READ, layout="<BHIII"):
    """Reads a range of an object; `data` packets bring it."""

    object: int
    index: int
    run: int
    offset: int
    length: int


class Verbosity(Message, type_=Type.VERBOSITY, layout="<B"):
    """Says which log lines the device may send from now on."""

    level: int


class Reset(Message, type_=Type.RESET, layout="<"):
    """Restarts the firmware, after the answer."""


class WriteState(Message, type_=Type.WRITE_STATE, layout="<II", tail=True):
    """Writes a piece of the state, from which a `run` that `continues` goes on."""

    mark: int
    offset: int
    data: bytes = b""


class HelloReply(Message, type_=Type.HELLO_REPLY, layout="<HHHIHHHIIII32s8s", tail=True):
    """Who is there."""

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


class RunReply(Message, type_=Type.RUN_REPLY, layout="<iIQQQIIQ", tail=True):
    """What came of a run."""

    status: int
    output_crc: int
    ticks: int
    least_ticks: int
    instructions: int
    stack_bytes: int
    calls: int
    cycles: int
    failure: bytes = b""


class ReadReply(Message, type_=Type.READ_REPLY, layout="<I"):
    """All `data` packets of the range were sent."""

    object_bytes: int


class Data(Message, type_=Type.DATA, layout="<I", tail=True):
    """A piece of what a `read` or a `run` asked for, with its sequence."""

    offset: int
    data: bytes = b""


class Error(Message, type_=Type.ERROR, layout="<BI", tail=True):
    """The answer to a request that cannot be served; repeats its sequence and its token."""

    code: int
    detail: int
    text: bytes = b""


class Boot(Message, type_=Type.BOOT, layout="<H"):
    """The firmware has started; token and sequence are 0."""

    version: int


class Log(Message, type_=Type.LOG, layout="<B", tail=True):
    """A line of the device's log. The sequence counts them, so that a lost one is noticed; none is sent twice."""

    level: int
    text: bytes = b""


class Fault(Message, type_=Type.FAULT, layout="<", tail=True):
    """The firmware has stopped for good; token and sequence are 0."""

    text: bytes = b""
