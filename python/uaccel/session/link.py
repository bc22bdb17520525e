"""Carries requests over a line that may lose, double, change or invent bytes (docs/protocol.md).

Each request is served once and answered, or the operation ends with an error within a bounded time. Requests have
consecutive numbers. The device serves them in order; a repeated one gets its answer again and changes nothing. So the
host may repeat whatever has no answer, whether the request or the answer was lost.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from uaccel.errors import DeviceError
from uaccel.session.message import Message, describe_bytes
from uaccel.session.protocol_ids import (
    FROM_DEVICE,
    VERSION,
    Boot,
    Data,
    Error,
    ErrorCode,
    Fault,
    Hello,
    HelloReply,
    Log,
    Reset,
    Type,
)
from uaccel.session.transport import OVERHEAD, Decoder, Packet, Transport, encode

# Requests, and the pieces of an object that ``data`` packets bring.

OnData = Callable[[int, bytes], int]  # Takes an offset and bytes, and returns how many of them were new.
# Most bytes of an object whose size is not known from elsewhere.
LARGEST_OBJECT: Final = 1 << 26
MOST_GAPS: Final = 1024  # Most separate pieces of an object, so that scattered data cannot fill the memory with spans.


@dataclass
class Request:
    """Holds a request and what has come back for it.

    ``label`` is how error messages call it; ``limit`` how many seconds it may run the model. ``unattended``: nobody
    waits for its answer, and a refusal ends the session.
    """

    message: Message
    label: str
    limit: float = 0.0
    on_data: OnData | None = None
    unattended: bool = False
    sequence: int = 0
    frame: bytes = b""
    ends: float | None = None  # When the model must be done; set when the device says that it has started.
    repaired: bool = False  # It was sent again because a later one was answered first; that is done once.
    reply: bytes | None = None
    error: Error | None = None

    @property
    def done(self) -> bool:
        return self.reply is not None or self.error is not None


class Pieces:
    """Collects an object whose pieces arrive in any order and more than once; ``size`` may become known at the end.

    Until then it has at most ``most`` bytes. Whatever arrives, it takes no more memory than for that.
    """

    def __init__(self, size: int | None = None, *, most: int = LARGEST_OBJECT) -> None:
        self.size = size
        self._most = most if size is None else size
        self._data = bytearray()
        # Begin and end of what has arrived. In order, and spans neither overlap nor touch: pieces that do are joined.
        self._there: list[tuple[int, int]] = []

    def add(self, offset: int, data: bytes) -> int:
        """Adds a piece, and returns how many of its bytes are new.

        What lies beyond the end is left out, and so is a piece that would make one span too many: both can be read
        again. Since the spans are in order, two binary searches find those that the piece overlaps or touches; one
        span takes their place. Only new bytes count as progress, so doubled ones cannot prolong an operation.
        """
        begin, end = offset, min(offset + len(data), self._most)
        first = bisect_left(self._there, begin, key=lambda span: span[1])
        last = bisect_right(self._there, end, lo=first, key=lambda span: span[0])
        met = self._there[first:last]
        known = sum(min(end, stop) - max(begin, start) for start, stop in met)
        if begin >= end or known == end - begin or (not met and len(self._there) >= MOST_GAPS):
            return 0
        self._there[first:last] = [(min(begin, met[0][0]), max(end, met[-1][1])) if met else (begin, end)]
        self._data.extend(bytes(max(0, end - len(self._data))))
        self._data[begin:end] = data[: end - begin]
        return end - begin - known

    def missing(self) -> list[tuple[int, int]]:
        """Offset and length of each gap; the size must be known."""
        assert self.size is not None
        gaps, end = [], 0
        for start, stop in [*self._there, (self.size, self.size)]:
            if min(start, self.size) > end:
                gaps.append((end, min(start, self.size) - end))
            end = stop
        return gaps

    def value(self) -> bytes:
        """The whole object; nothing must be missing."""
        return bytes(self._data[: self.size])


# The link. Several requests are under way at once, as many as the device's receive buffer holds. One is sent again for
# three reasons: the device asks for it (``expect``), a later one is answered first, or time is up.
#
# Deadlines. An operation ends ``Timeouts.operation`` seconds after it began. To this is added the time of the longest
# inference, and for each new byte, sent or received, what a slow device needs for it. Objects have a largest size and
# repeated bytes add nothing, so that an operation ends whatever the line or the device does.

SEQUENCES: Final = 1 << 16  # A packet has 16 bits for the number.
LONGEST_PAUSE: Final = 2.0  # Seconds between two repetitions, at most.
LONGEST_PAUSE_WHILE_RUNNING: Final = 8.0  # The same while the device computes and cannot answer.
# Most doublings of the pause. A long inference has any number of repetitions, and 2**1024 is no float any more; after
# 16 doublings 0.25 s would be hours, which the longest pauses cut anyway.
MOST_DOUBLINGS: Final = 16
SHOWN_BYTES: Final = 12  # Bytes that an error message shows of what is no frame.
LONGEST_HELLO_REPLY: Final = 512  # The longest body before ``hello_reply`` has told the device's own limit.
LEAST_BODY: Final = 16  # The longest request that is not cut into pieces, ``read`` with 15 bytes, rounded up.
# Restarts while a session begins: opening a port resets some boards, and a line may hold an earlier ``boot``.
MOST_BOOTS: Final = 8
# How many times longer than the line needs a byte may take: repetitions, answers, and a device that has other work.
SLOWNESS: Final = 4.0


class DeviceResetError(DeviceError):
    """The firmware has restarted, which ends the session."""


class RefusedError(DeviceError):
    """The device has answered that it cannot serve a request; the session goes on."""

    def __init__(self, message: str, error: Error) -> None:
        super().__init__(message)
        self.error = error


@dataclass(frozen=True)
class Timeouts:
    """Holds the time limits of a session, in seconds.

    ``answer``: until a request is sent again, on top of the time that the line needs. ``silence``: without any
    progress, until the device counts as dead. ``run``: for one inference. ``operation``: for all that a call does,
    whatever arrives; inferences and the time for each new byte are added to it.
    """

    answer: float = 0.25
    silence: float = 5.0
    run: float = 60.0
    operation: float = 30.0
    write: float = 10.0  # Until the line takes what is sent.
    retries: int = 12  # Repetitions without progress until the device counts as dead.
    slowest: float = 500.0  # Bytes a second that a line of unknown speed brings at least.


@dataclass
class Traffic:
    """Counts the bytes that a line has carried; many ``repeated`` requests or ``damaged`` frames mean a bad line."""

    sent: int = 0
    received: int = 0
    repeated: int = 0
    damaged: int = 0


class Link:
    """Keeps one session with a device: numbers requests, repeats them, matches answers and watches the time.

    Invariants: ``_under_way`` holds sent requests without an answer, the oldest first, ``_waiting`` those that still
    lack room in the device. Both are in the order of their numbers. The frames under way together fit into the
    device's receive buffer, except that one request is always allowed.
    """

    def __init__(
        self,
        transport: Transport,
        timeouts: Timeouts,
        on_log: Callable[[Log, int], None],
        new_token: Callable[[], int] = lambda: secrets.randbelow((1 << 32) - 1) + 1,
    ) -> None:
        self.timeouts = timeouts
        self.traffic = Traffic()
        self._transport = transport
        self._on_log = on_log
        self._new_token = new_token
        self._begun = 0.0
        self._deadline: float | None = None
        self._granted = 0.0
        self._forget()

    def _forget(self) -> None:
        self._failure: DeviceError | None = None
        self._decoder = Decoder()
        self._token = 0
        self._next = 0
        self._greeting = False
        self._boots = 0
        self._waiting: deque[Request] = deque()
        self._under_way: deque[Request] = deque()
        self._body_bytes = LONGEST_HELLO_REPLY
        self._receive_bytes = 0
        self._tries = 0
        self._again_at = 0.0
        self._progress_at = 0.0
        self._missed = -1
        self._missed_at = 0.0
        self._heard = b""
        self._understood = 0

    @property
    def name(self) -> str:
        """How messages call the device."""
        return self._transport.name

    @property
    def body_bytes(self) -> int:
        """The longest body that the device takes."""
        return self._body_bytes

    @contextmanager
    def operation(self) -> Iterator[None]:
        """Sets one deadline for all that is done inside. An operation inside another one shares its deadline."""
        if self._deadline is not None:
            yield
            return
        self._begun = self._transport.clock()
        self._deadline, self._granted = self._begun + self.timeouts.operation, 0.0
        self._grant(max((request.limit for request in self._under_way if request.ends is not None), default=0.0))
        try:
            yield
        finally:
            self._deadline = None

    def hello(self) -> HelloReply:
        """Begins a session with any device that speaks this version of the protocol."""
        self._forget()
        self._token = self._new_token()
        self._greeting = True
        reply = self.wait(self.submit(Hello(VERSION), "begin a session"))
        version = int.from_bytes(reply[:2], "little")
        self._check_version(version)
        self._greeting = False
        self._next = 1
        device = HelloReply.unpack(reply)
        if device.body_bytes < LEAST_BODY:
            raise DeviceError(
                f"{self.name} takes bodies of {device.body_bytes} bytes; a session needs {LEAST_BODY}: "
                "build its firmware with a larger UACCEL_BODY_BYTES"
            )
        self._body_bytes, self._receive_bytes = device.body_bytes, device.receive_bytes
        return device

    def _check_version(self, version: int) -> None:
        if version != VERSION:
            raise DeviceError(
                f"{self.name} speaks version {version} of the session protocol, this uaccel speaks {VERSION}: "
                "build and flash its firmware with this uaccel"
            )

    def submit(
        self,
        message: Message,
        label: str,
        *,
        limit: float = 0.0,
        on_data: OnData | None = None,
        unattended: bool = False,
    ) -> Request:
        """Queues a request; it is sent as soon as the device has room for it."""
        if self._failure is not None:
            raise self._failure
        request = Request(message, label, limit, on_data, unattended)
        request.sequence = self._next
        self._next = (self._next + 1) % SEQUENCES
        request.frame = encode(Packet(message.TYPE, request.sequence, self._token, message.pack()))
        self._waiting.append(request)
        with self.operation(), self._remembering_failure():
            self._send_waiting()
        return request

    def wait(self, request: Request) -> bytes:
        """Waits for the answer of a request, and returns its body."""
        with self.operation(), self._remembering_failure():
            while not request.done:
                self._wait_and_act()
        if request.error is not None:
            raise self._refusal(request, request.error)
        assert request.reply is not None
        return request.reply

    def reset(self) -> HelloReply:
        """Restarts the firmware, and begins a new session."""
        with suppress(DeviceResetError):
            self.wait(self.submit(Reset(), "reset"))
        return self.hello()

    @contextmanager
    def _remembering_failure(self) -> Iterator[None]:
        """Keeps an error of the line, so that it ends the session for good."""
        try:
            yield
        except DeviceError as error:
            self._failure = error
            raise

    def _wait_and_act(self) -> None:
        """Waits for bytes or for the next repetition, whichever comes first, and acts on it."""
        data = self._transport.read(min(self._next_event() - self._transport.clock(), self._left()))
        if data:
            self.traffic.received += len(data)
            self._heard = (self._heard + data)[-1024:] if not self._understood else b""
            for packet in self._decoder.feed(data):
                self._take(packet)
        if self._under_way:
            self._check_time()
        self._send_waiting()

    # ------------------------------------------------------------------------------------------------ sending

    def _send_waiting(self) -> None:
        while self._waiting and self._has_room(self._waiting[0]):
            request = self._waiting.popleft()
            first = not self._under_way
            self._under_way.append(request)
            self._send(request, alone=self._greeting)
            if first:
                self._progress()

    def _has_room(self, request: Request) -> bool:
        under_way = sum(len(other.frame) for other in self._under_way)
        return not under_way or under_way + len(request.frame) <= self._receive_bytes

    def _send(self, request: Request, *, alone: bool) -> None:
        """Sends a frame. ``alone``: behind a zero, which ends the rest of a frame that may be on the line."""
        frame = b"\0" + request.frame if alone else request.frame
        self.traffic.sent += len(frame)
        self._transport.write(frame, min(self.timeouts.write + len(frame) / self._pace, self._left()))

    def _send_again(self, requests: list[Request]) -> None:
        for number, request in enumerate(requests):
            self.traffic.repeated += 1
            self._send(request, alone=number == 0)

    def _go_back(self) -> None:
        """Sends all that has no answer again. The device serves what is new to it, and answers the rest once more."""
        self._send_again(list(self._under_way))

    # ------------------------------------------------------------------------------------------------ time

    def _line_seconds(self) -> float:
        """Seconds that the line itself needs for all requests under way and two answers of the largest size."""
        rate = self._transport.bytes_per_second
        if not rate:
            return 0.0
        return (sum(len(request.frame) for request in self._under_way) + 2 * (self._body_bytes + OVERHEAD)) / rate

    @property
    def _pace(self) -> float:
        """Bytes a second that even a slow device manages."""
        rate = self._transport.bytes_per_second
        return rate / SLOWNESS if rate else self.timeouts.slowest

    def _left(self) -> float:
        """Seconds until the operation must be over; an error when none are left."""
        assert self._deadline is not None
        left = self._deadline + self._line_seconds() - self._transport.clock()
        if left > 0:
            return left
        what = f'"{self._under_way[0].label}"' if self._under_way else "anything"
        took = f"{self._transport.clock() - self._begun:.1f} s"
        raise DeviceError(
            f"{self.name} goes on sending and does not finish {what}, after {took}: "
            "reset the board; is it uaccel's firmware that runs?"
        )

    def _grant(self, run: float) -> None:
        """Adds the time of inferences to the deadline. Only the longest of an operation counts, however many start."""
        assert self._deadline is not None
        self._deadline += max(0.0, run - self._granted)
        self._granted = max(self._granted, run)

    def _brought(self, size: int) -> None:
        """Prolongs the operation by the time for new bytes: of data, or of a request and its answer."""
        assert self._deadline is not None
        self._deadline += size / self._pace
        self._progress()

    def _progress(self) -> None:
        self._tries = 0
        self._progress_at = self._transport.clock()
        self._again_at = self._progress_at + self.timeouts.answer + self._line_seconds()

    def _next_event(self) -> float:
        return self._again_at if self._under_way else self._transport.clock() + self.timeouts.silence

    def _check_time(self) -> None:
        now, head = self._transport.clock(), self._under_way[0]
        if head.ends is not None:
            if now > head.ends + self._line_seconds():
                raise DeviceError(
                    f'{self.name}: "{head.label}" did not finish within {head.limit:g} s: '
                    "allow more time, or reset the board if it hangs"
                )
        elif now - self._progress_at > self.timeouts.silence + self._line_seconds():
            raise self._silent(head)
        if now >= self._again_at:
            self._time_is_up(now, head)

    def _time_is_up(self, now: float, head: Request) -> None:
        """Repeats requests, after pauses that double.

        While the oldest one runs the model, it is repeated alone, for the case that its answer was lost. The device
        serves nothing else meanwhile, so copies of the others would be in vain. Then ``ends`` limits the wait, instead
        of a number of repetitions.
        """
        self._tries += 1
        longest = LONGEST_PAUSE if head.ends is None else LONGEST_PAUSE_WHILE_RUNNING
        pause = min(self.timeouts.answer * 2 ** min(self._tries, MOST_DOUBLINGS), longest)
        self._again_at = now + pause + self._line_seconds()
        if head.ends is not None:
            self._send_again([head])
            return
        if self._tries > self.timeouts.retries:
            raise self._silent(head)
        self._go_back()

    def _silent(self, request: Request) -> DeviceError:
        waited = f"{self._transport.clock() - self._progress_at:.1f} s"
        damaged = f"; {self.traffic.damaged} frames came damaged: check the cable" if self.traffic.damaged else ""
        if self._understood:
            return DeviceError(f'{self.name} stopped answering: nothing on "{request.label}" for {waited}{damaged}')
        if self._heard:
            return DeviceError(
                f"{self.name} sends bytes that are no frames of uaccel's ({self._heard[:SHOWN_BYTES].hex(' ')} ...): "
                "is the baud rate right, and is it uaccel's firmware that runs?"
            )
        return DeviceError(
            f"no answer from {self.name} within {waited}: is it powered, is it the right port, is the firmware flashed?"
        )

    # ------------------------------------------------------------------------------------------------ receiving

    def _take(self, packet: Packet | None) -> None:
        if packet is None:
            self.traffic.damaged += 1
            return
        if packet.type < FROM_DEVICE:
            raise DeviceError(f"{self.name} sends back what uaccel sends: is the line wired in a loop, or an echo on?")
        self._understood += 1
        if packet.type == Type.FAULT:
            raise DeviceError(f"{self.name} stopped: {describe_bytes(Fault.unpack(packet.body).text)}")
        if packet.type == Type.BOOT:
            self._booted(Boot.unpack(packet.body))
        elif packet.type == Type.LOG:
            self._on_log(Log.unpack(packet.body), packet.sequence)
        elif packet.token != self._token:
            return  # meant for an earlier session
        elif packet.type == Type.EXPECT:
            self._lost(packet.sequence)
        else:
            self._answer(packet)

    def _booted(self, boot: Boot) -> None:
        if not self._greeting:
            raise DeviceResetError(f"{self.name} was reset while the session was going on: start again")
        self._check_version(boot.version)
        self._boots += 1
        if self._boots > MOST_BOOTS:
            raise DeviceError(
                f"{self.name} starts anew again and again, {self._boots} times since it was greeted: "
                "does its firmware crash, is its power supply sound?"
            )
        self._go_back()  # it cannot have seen what was sent before

    def _lost(self, expected: int) -> None:
        """Handles ``expect``: the device misses a request. It says so for each damaged frame, and a burst of noise may
        damage several. One repetition covers them all, so within its time the same number is acted on once."""
        now = self._transport.clock()
        pause = self.timeouts.answer / 2 + self._line_seconds()
        if self._under_way and (expected != self._missed or now - self._missed_at > pause):
            self._missed, self._missed_at = expected, now
            self._go_back()

    def _answer(self, packet: Packet) -> None:
        request = next((r for r in self._under_way if r.sequence == packet.sequence), None)
        if request is None:
            return  # answered already
        if packet.type == Type.DATA:
            self._data(request, packet.body)
        elif packet.type == Type.STARTED:
            if request.ends is None and request.limit:
                request.ends = self._transport.clock() + request.limit
                self._grant(request.limit)
                self._progress()
        elif packet.type == Type.ERROR:
            self._refused(request, Error.unpack(packet.body))
        elif packet.type == request.message.TYPE | FROM_DEVICE:
            request.reply = packet.body
            self._finish(request)
        else:
            raise DeviceError(f'{self.name} answered "{request.label}" with type 0x{packet.type:02X}: reset the board')

    def _data(self, request: Request, body: bytes) -> None:
        piece = Data.unpack(body)
        new = request.on_data(piece.offset, piece.data) if request.on_data is not None else 0
        if new:
            self._brought(new)
            if request.ends is not None:
                request.ends += new / self._pace

    def _refused(self, request: Request, error: Error) -> None:
        if error.code == ErrorCode.STALE:
            if error.detail == 0:
                raise DeviceResetError(f"{self.name} was reset while the session was going on: start again")
            raise DeviceError(f"another client took {self.name} over: one session at a time")
        if request.unattended:
            raise self._refusal(request, error)
        request.error = error
        self._finish(request)

    def _refusal(self, request: Request, error: Error) -> RefusedError:
        return RefusedError(f"{self.name} refused to {request.label}: {_refusal(error)}", error)

    def _finish(self, request: Request) -> None:
        """Takes an answered request off the line. Requests are served in order: if a later one is answered first, the
        oldest was served, too, and only its answer is lost. It is sent again, alone, to get that answer."""
        head = self._under_way[0]
        self._under_way.remove(request)
        if request is not head and not head.repaired:
            head.repaired = True
            self._send_again([head])
        self._brought(len(request.frame) + len(request.reply or b""))


def as_signed(word: int) -> int:
    """The i32 that a u32 carries."""
    return word - (word >> 31 << 32)


def _refusal(error: Error) -> str:
    """An error code in words; docs/protocol.md has the table."""
    words = {
        ErrorCode.TYPE: f"it knows no request 0x{error.detail:02X}",
        ErrorCode.LENGTH: f"the request had only {error.detail} bytes",
        ErrorCode.OBJECT: f"it knows no object {error.detail}",
        ErrorCode.RANGE: f"only {error.detail} bytes are there",
        ErrorCode.INPUT: "its inputs are not what was sent; its memory, or a driver, has changed them",
        ErrorCode.RUN: "the outputs are of another run",
        ErrorCode.OBSERVE: "its firmware cannot watch layers; build it with -DOBSERVE=ON",
        ErrorCode.MODEL: f"the model returned {as_signed(error.detail)}",
        ErrorCode.SPENT: "an inference has used its inputs up, which lie in the workspace; write them before each run",
        ErrorCode.FORGOTTEN: "it does not remember the answer; start again",
        ErrorCode.STATE: "it is of another model file or another build; write what read_state gave of this firmware",
        ErrorCode.COUNT: f"it runs the model {error.detail} times at most for one request",
    }
    return words.get(ErrorCode(error.code), "") if error.code in set(ErrorCode) else f"error {error.code}"
