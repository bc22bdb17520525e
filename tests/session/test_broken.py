"""What no repetition mends: dead, reset, stolen, wrong and talkative devices. Each ends in an error that says so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from support.device.device import Device, VirtualLine, known_inputs, known_outputs, session_on
from uaccel.errors import DeviceError
from uaccel.session.description import Identity
from uaccel.session.link import Link, Timeouts
from uaccel.session.protocol_ids import VERSION, Boot, Error, ErrorCode, Fault, HelloReply, Type
from uaccel.session.session import Session
from uaccel.session.transport import WRITE_SECONDS, Decoder, Packet, Transport, encode

INPUTS = known_inputs(2)
OUTPUTS = known_outputs(INPUTS)
PATIENCE = 8.0
"""Seconds of the line's time until the session must have given up."""


def attempt(line: VirtualLine) -> str:
    """``right``, or how it failed."""
    try:
        with session_on(line, timeouts=Timeouts(run=3)) as session:
            for name, got in session.run(INPUTS).items():
                np.testing.assert_array_equal(got, OUTPUTS[name])
    except DeviceError as error:
        return str(error)
    return "right"


def lengths(device: Device) -> dict[str, int]:
    line = VirtualLine(device)
    assert attempt(line) == "right"
    return {"to_device": line.sent, "to_host": line.received}


def happens_at(position: int, event: Callable[[], None], *, passes: bool) -> Callable[[int, bytes], bytes]:
    """At this byte of the session; what follows in the same piece is lost, all else too unless it ``passes``."""
    happened = False

    def mangle(begin: int, data: bytes) -> bytes:
        nonlocal happened
        if happened:
            return data if passes else b""
        if begin <= position < begin + len(data):
            happened = True
            event()
            return data[: position - begin]
        return data

    return mangle


@pytest.mark.parametrize("direction", ["to_device", "to_host"])
def test_a_reset_at_every_position(device: Device, direction: str) -> None:
    outcomes = []
    for position in range(lengths(device)[direction]):
        line = VirtualLine(device)
        setattr(line, direction, happens_at(position, line.power_cycle, passes=True))
        outcomes.append(attempt(line))
        assert line.now < PATIENCE, f"byte {position}"
    assert set(outcomes) == {
        "right",
        "the test device was reset while the session was going on: start again",
    }
    greeting_bytes = 130
    assert outcomes.count("right") < greeting_bytes, "only a reset before the session has begun goes unnoticed"


def test_a_reset_that_nobody_saw(device: Device) -> None:
    line = VirtualLine(device)
    session = session_on(line)
    device.power_on()
    with pytest.raises(DeviceError, match=r"^the test device was reset while the session was going on: start again$"):
        session.run(INPUTS)


@pytest.mark.parametrize("direction", ["to_device", "to_host"])
def test_silence_from_every_position_on(device: Device, direction: str) -> None:
    for position in range(0, lengths(device)[direction], 3):
        line = VirtualLine(device)
        setattr(line, direction, happens_at(position, lambda: None, passes=False))
        seen = attempt(line)
        assert seen.startswith(
            (
                "no answer from the test device within ",
                "the test device stopped answering: nothing on ",
                "the test device sends bytes that are no frames of uaccel's (",  # the first one is incomplete
                'the test device: "run" did not finish within 3 s: ',
            )
        ), f"byte {position}: {seen}"
        assert line.now < PATIENCE, f"byte {position}"


def test_a_device_that_was_never_there(device: Device) -> None:
    line = VirtualLine(device)
    line.to_host = lambda begin, data: b""
    assert attempt(line) == (
        "no answer from the test device within 5.8 s: is it powered, is it the right port, is the firmware flashed?"
    )


def test_an_error_ends_the_session_for_good(device: Device) -> None:
    line = VirtualLine(device)
    session = session_on(line)
    line.to_host = lambda begin, data: b""
    with pytest.raises(DeviceError, match=r'^the test device stopped answering: nothing on "write the inputs" for '):
        session.run(INPUTS)
    now = line.now
    with pytest.raises(DeviceError, match=r"^the test device stopped answering"):
        session.run(INPUTS)
    assert line.now == now, "it must not wait again"


@pytest.mark.parametrize("doing", ["read", "write"])
def test_a_port_that_vanishes(device: Device, doing: str) -> None:
    class Vanishing(VirtualLine):
        calls = 0

        def read(self, timeout: float) -> bytes:
            self._count("read")
            return super().read(timeout)

        def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
            self._count("write")
            super().write(data, timeout)

        def _count(self, what: str) -> None:
            self.calls += what == doing
            if self.calls == last:
                raise DeviceError("the test device vanished: Input/output error")

    for last in range(1, 6):
        line = Vanishing(device)
        assert attempt(line) == "the test device vanished: Input/output error", f"call {last}"


def test_a_second_client_takes_over(device: Device) -> None:
    line = VirtualLine(device)
    first = session_on(line)
    first.run(INPUTS)
    second = Session(line)
    with pytest.raises(DeviceError, match=r"^another client took the test device over: one session at a time$"):
        first.run(INPUTS)
    np.testing.assert_array_equal(second.run(INPUTS)["sums"], OUTPUTS["sums"])


def test_a_second_client_between_any_two_requests(device: Device) -> None:
    """The first gets an error, never the other's tensor."""
    other = known_inputs(3)
    for delay in range(1, 30):
        line = VirtualLine(device, baud=115200)
        first = session_on(line)
        stream = first.stream([INPUTS, INPUTS, INPUTS])
        np.testing.assert_array_equal(next(stream).outputs["sums"], OUTPUTS["sums"])
        line.now += delay * 0.001
        with Session(line) as second:
            np.testing.assert_array_equal(second.run(other)["sums"], known_outputs(other)["sums"])
        with pytest.raises(DeviceError, match=r"^another client took the test device over: one session at a time$"):
            next(stream)


def test_the_wrong_model(device: Device) -> None:
    wanted = Identity(b"\x22" * 32, bytes(range(1, 9)))
    with pytest.raises(DeviceError) as caught:
        session_on(VirtualLine(device), expect=wanted)
    assert str(caught.value) == (
        "the test device runs another model: known 111111111111, wanted 222222222222: build and flash its firmware anew"
    )


def test_the_right_model_of_another_build(device: Device) -> None:
    wanted = Identity(b"\x11" * 32, b"\xab" * 8)
    with pytest.raises(DeviceError) as caught:
        session_on(VirtualLine(device), expect=wanted)
    assert str(caught.value) == (
        "the test device runs another build: known 010203040506, wanted abababababab: build and flash its firmware anew"
    )


def test_the_wanted_model_is_met_again_after_a_reset(device: Device) -> None:
    wanted = Identity(b"\x11" * 32, bytes(range(1, 9)))
    session = session_on(VirtualLine(device), expect=wanted)
    session.reset()
    np.testing.assert_array_equal(session.run(INPUTS)["sums"], OUTPUTS["sums"])


def test_a_buffer_that_overflows_costs_repetitions() -> None:
    device = Device("WAVE=6000")
    inputs = known_inputs(1, 6000)
    line = VirtualLine(device, baud=921600, compute_seconds=0.05, receive_bytes=700)
    with session_on(line) as session:
        for result in session.stream([inputs] * 4):
            np.testing.assert_array_equal(result.outputs["mask"], known_outputs(inputs)["mask"])
        assert session.traffic.repeated > 4


class Scripted(Transport):
    """A device that ``answer`` plays; its clock runs only while the host waits."""

    name = "the scripted device"

    def __init__(self, answer: Callable[[Packet], list[Packet] | bytes]) -> None:
        self.now = 0.0
        self._answer = answer
        self._decoder = Decoder()
        self._waiting = b""

    def clock(self) -> float:
        return self.now

    def close(self) -> None:
        """Nothing to let go of."""

    def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
        for packet in self._decoder.feed(data):
            assert packet is not None
            said = self._answer(packet)
            self._waiting += said if isinstance(said, bytes) else b"".join(map(encode, said))

    def read(self, timeout: float) -> bytes:
        if not self._waiting:
            self.now += max(timeout, 0.001)
        data, self._waiting = self._waiting, b""
        return data


def greeting(packet: Packet, version: int = VERSION) -> Packet:
    body = HelloReply(version, 0, 512, 4096, 0, 0, 0, 0, 0, 2, 0, bytes(32), bytes(8), b"x").pack()
    return Packet(Type.HELLO_REPLY, packet.sequence, packet.token, body)


def scripted(answer: Callable[[Packet], list[Packet]]) -> str:
    """The error that a device ends in that greets properly and then answers so."""

    def play(packet: Packet) -> list[Packet]:
        return [greeting(packet)] if packet.type == Type.HELLO else answer(packet)

    line = Scripted(play)
    with pytest.raises(DeviceError) as caught:
        session_on(line)
    assert line.now < 4 * PATIENCE
    return str(caught.value)


def reply(packet: Packet, kind: int, body: bytes = b"") -> Packet:
    return Packet(kind, packet.sequence, packet.token, body)


def test_an_echo_is_named() -> None:
    line = Scripted(lambda packet: [packet])
    with pytest.raises(DeviceError) as caught:
        session_on(line)
    assert str(caught.value) == (
        "the scripted device sends back what uaccel sends: is the line wired in a loop, or an echo on?"
    )


def test_another_program_that_talks_is_named() -> None:
    line = Scripted(lambda packet: b"login: ")
    with pytest.raises(DeviceError) as caught:
        session_on(line)
    assert str(caught.value) == (
        "the scripted device sends bytes that are no frames of uaccel's (6c 6f 67 69 6e 3a 20 6c 6f 67 69 6e ...): "
        "is the baud rate right, and is it uaccel's firmware that runs?"
    )


@pytest.mark.parametrize("kind", ["hello", "boot"])
def test_another_version_is_named(kind: str) -> None:
    boot = Packet(Type.BOOT, 0, 0, Boot(9).pack())
    line = Scripted(lambda packet: [greeting(packet, 9) if kind == "hello" else boot])
    with pytest.raises(DeviceError) as caught:
        session_on(line)
    assert str(caught.value) == (
        f"the scripted device speaks version 9 of the session protocol, this uaccel speaks {VERSION}: "
        "build and flash its firmware with this uaccel"
    )


def test_a_fault_is_told_in_the_devices_words() -> None:
    fault = Packet(Type.FAULT, 0, 0, Fault(b"hard fault at 0x08001234").pack())
    assert scripted(lambda packet: [fault]) == "the scripted device stopped: hard fault at 0x08001234"


@pytest.mark.parametrize(
    ("code", "detail", "words"),
    [
        (ErrorCode.TYPE, 4, "it knows no request 0x04"),
        (ErrorCode.LENGTH, 3, "the request had only 3 bytes"),
        (ErrorCode.OBJECT, 7, "it knows no object 7"),
        (ErrorCode.RANGE, 40, "only 40 bytes are there"),
        (ErrorCode.INPUT, 0, "its inputs are not what was sent; its memory, or a driver, has changed them"),
        (ErrorCode.RUN, 0, "the outputs are of another run"),
        (ErrorCode.OBSERVE, 0, "its firmware cannot watch layers; build it with -DOBSERVE=ON"),
        (ErrorCode.MODEL, 0xFFFFFFFB, "the model returned -5"),
        (
            ErrorCode.STATE,
            1,
            "it is of another model file or another build; write what read_state gave of this firmware",
        ),
        (ErrorCode.FORGOTTEN, 0, "it does not remember the answer; start again"),
        (99, 0, "error 99"),
    ],
)
def test_a_refusal_is_told_in_words(code: int, detail: int, words: str) -> None:
    error = Error(code, detail, b"").pack()
    seen = scripted(lambda packet: [reply(packet, Type.ERROR, error)])
    assert seen == f"the scripted device refused to describe the model: {words}"


def test_an_answer_of_the_wrong_kind() -> None:
    seen = scripted(lambda packet: [reply(packet, Type.RUN_REPLY, bytes(64))])
    assert seen == 'the scripted device answered "describe the model" with type 0x83: reset the board'


def test_an_answer_that_is_cut_short() -> None:
    seen = scripted(lambda packet: [reply(packet, Type.ERROR, b"\x01")])
    assert seen == ("the device sent Error with 1 bytes, 5 were wanted: build and flash its firmware with this uaccel")


def test_an_object_that_never_becomes_complete() -> None:
    seen = scripted(lambda packet: [reply(packet, Type.READ_REPLY, b"\x02\0\0\0")])
    assert seen == ("the scripted device: cannot describe the model over this line, 10 attempts lost parts of it")


def test_a_description_that_is_none() -> None:
    def answer(packet: Packet) -> list[Packet]:
        return [reply(packet, Type.DATA, b"\0\0\0\0{]"), reply(packet, Type.READ_REPLY, b"\x02\0\0\0")]

    seen = scripted(answer)
    assert seen.startswith("the scripted device describes its model in a way that this uaccel cannot read: ")


def test_a_device_that_takes_next_to_nothing() -> None:
    body = HelloReply(VERSION, 0, 15, 4096, 0, 0, 0, 0, 0, 2, 0, bytes(32), bytes(8), b"x").pack()
    with pytest.raises(DeviceError) as caught:
        session_on(Scripted(lambda packet: [reply(packet, Type.HELLO_REPLY, body)]))
    assert str(caught.value) == (
        "the scripted device takes bodies of 15 bytes; a session needs 16: "
        "build its firmware with a larger UACCEL_BODY_BYTES"
    )


def test_talk_without_an_answer_does_not_keep_the_host_waiting() -> None:
    """Log lines without end are no progress."""
    line: Scripted
    log = encode(Packet(Type.LOG, 0, 0, b"\x02still here"))

    class Talking(Scripted):
        def read(self, timeout: float) -> bytes:
            self.now += 0.01
            return log

    line = Talking(lambda packet: [])
    with pytest.raises(DeviceError, match=r'^the scripted device stopped answering: nothing on "begin a session" for '):
        session_on(line)
    assert line.now < PATIENCE


def test_a_run_that_never_ends() -> None:
    """The device says that the model runs, and no more."""

    def answer(packet: Packet) -> list[Packet]:
        return [greeting(packet)] if packet.type == Type.HELLO else [reply(packet, Type.STARTED)]

    line = Scripted(answer)
    link = Link(line, Timeouts(run=30), lambda log, number: None)
    link.hello()
    with pytest.raises(DeviceError) as caught:
        link.wait(link.submit(Boot(1), "run", limit=30))
    assert str(caught.value) == (
        'the scripted device: "run" did not finish within 30 s: allow more time, or reset the board if it hangs'
    )
    assert 30 <= line.now < 45
