"""Whatever the line does, a session ends in the right tensor or in a clear error, and in time.

Every fault is tried at every single byte of a session, in both directions, on a simulated line whose clock is the
session's own. What is random comes from a seed that the message of a failure names.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from support.device.device import Device, VirtualLine, known_inputs, known_outputs, session_on
from uaccel.errors import DeviceError
from uaccel.session.protocol_ids import Type
from uaccel.session.session import Session
from uaccel.session.transport import Packet, decode, encode

INPUTS = known_inputs(1)
OUTPUTS = known_outputs(INPUTS)
MORE = [known_inputs(seed) for seed in range(2, 5)]
LONGEST = 30.0
"""Seconds of the line's time that a session may take, whatever happens: a retry here and there, or giving up."""

Fault = Callable[[int], bytes]

FAULTS: dict[str, Fault] = {
    "dropped": lambda byte: b"",
    "doubled": lambda byte: bytes([byte, byte]),
    "inverted": lambda byte: bytes([byte ^ 0xFF]),
    "bit 0 flipped": lambda byte: bytes([byte ^ 0x01]),
    "bit 4 flipped": lambda byte: bytes([byte ^ 0x10]),
    "bit 7 flipped": lambda byte: bytes([byte ^ 0x80]),
    "zeroed": lambda byte: bytes([0 if byte else 0x55]),
    "broken in two": lambda byte: bytes([byte, 0, byte]),
}


def whole_session(line: VirtualLine) -> int:
    """Everything that a session can do, checked; returns how often the model had to run."""
    with session_on(line) as session:
        for name, got in session.run(INPUTS).items():
            np.testing.assert_array_equal(got, OUTPUTS[name])
        np.testing.assert_array_equal(session.layer("dot")[0], OUTPUTS["sums"])
        assert [time.name for time in session.layer_times()] == ["xor", "dot"]
        for result, inputs in zip(session.stream(MORE), MORE, strict=True):
            np.testing.assert_array_equal(result.outputs["sums"], known_outputs(inputs)["sums"])
    return 3 + len(MORE)


def at(position: int, fault: Fault) -> Callable[[int, bytes], bytes]:
    """The fault at this one byte of the session."""

    def mangle(begin: int, data: bytes) -> bytes:
        where = position - begin
        if not 0 <= where < len(data):
            return data
        return data[:where] + fault(data[where]) + data[where + 1 :]

    return mangle


def bytes_of_a_session(device: Device) -> dict[str, int]:
    line = VirtualLine(device)
    whole_session(line)
    return {"to_device": line.sent, "to_host": line.received}


@pytest.mark.sample(2)
@pytest.mark.parametrize("direction", ["to_device", "to_host"])
@pytest.mark.parametrize("fault", FAULTS)
def test_one_byte_at_every_position(device: Device, direction: str, fault: str) -> None:
    """A single fault is always survived, and costs a retry, not a second run of the same request."""
    for position in range(bytes_of_a_session(device)[direction]):
        line = VirtualLine(device)
        setattr(line, direction, at(position, FAULTS[fault]))
        before = device.runs
        try:
            wanted = whole_session(line)
        except (DeviceError, AssertionError) as error:
            raise AssertionError(f"byte {position} {direction} {fault}: {error}") from error
        # What layers computed, and outputs that a later run has replaced, take another run where a part was lost.
        assert wanted <= device.runs - before <= wanted + 3, f"byte {position} {direction} {fault}"
        assert line.now < LONGEST, f"byte {position} {direction} {fault}: took {line.now:.1f} s"


def outcome(line: VirtualLine) -> str:
    """``right``, or the error's text; anything else fails the test."""
    try:
        whole_session(line)
    except DeviceError as error:
        text = str(error)
        assert "\n" not in text
        assert len(text) < 250, text
        return text
    return "right"


def random_noise(seed: int, per_byte: float, longest: int) -> Callable[[int, bytes], bytes]:
    """Bursts of damage: bytes lost, invented, changed."""
    rng = random.Random(seed)

    def burst(data: bytes) -> bytes:
        kind, length = rng.randrange(3), rng.randint(1, longest)
        begin = rng.randrange(len(data))
        noise = rng.randbytes(length)
        if kind == 0:
            return data[:begin] + data[begin + length :]
        if kind == 1:
            return data[:begin] + noise + data[begin:]
        return data[:begin] + noise[: len(data) - begin] + data[begin + length :]

    def mangle(begin: int, data: bytes) -> bytes:
        return burst(data) if data and rng.random() < per_byte * len(data) else data

    return mangle


@pytest.mark.parametrize(
    ("per_byte", "longest", "least_right"), [(0.001, 20, 0.95), (0.005, 200, 0.5), (0.05, 50, 0.0)]
)
def test_bursts_of_noise(device: Device, per_byte: float, longest: int, least_right: float) -> None:
    outcomes = []
    for seed in range(150):
        line = VirtualLine(device)
        line.to_device = random_noise(seed, per_byte, longest)
        line.to_host = random_noise(seed + 10_000, per_byte, longest)
        outcomes.append(outcome(line))
        assert line.now < 4 * LONGEST, f"seed {seed}: took {line.now:.1f} s"
    wrong = [text for text in outcomes if text != "right"]
    assert len(wrong) <= len(outcomes) * (1 - least_right), wrong[:3]


def test_noise_before_everything_is_overlooked(device: Device) -> None:
    for seed in range(50):
        line = VirtualLine(device)
        line._arriving.appendleft((0.0, random.Random(seed).randbytes(300)))
        assert outcome(line) == "right", f"seed {seed}"


def without(kind: int, numbers: set[int]) -> Callable[[int, bytes], bytes]:
    """Loses whole frames: of this type, those with these numbers, counted from 0."""
    seen = 0

    def mangle(begin: int, data: bytes) -> bytes:
        nonlocal seen
        kept = []
        for frame in data.split(b"\0")[:-1]:
            packet = decode(frame)
            lost = packet is not None and packet.type == kind and seen in numbers
            seen += packet is not None and packet.type == kind
            kept.append(b"" if lost else frame + b"\0")
        return b"".join(kept)

    return mangle


@pytest.mark.parametrize(
    ("kind", "numbers", "again"),
    [
        (Type.DATA, {0}, 1),  # of the first sample's outputs; the second sample's have taken their place
        (Type.DATA, {0, 2}, 2),
        (Type.DATA, {4}, 0),  # of the last: they can still be read
        (Type.RUN_REPLY, {0}, 1),  # asked again, the device remembers only the last run
        (Type.RUN_REPLY, {2}, 0),
        (Type.STARTED, {0, 1, 2, 3}, 0),
    ],
)
def test_what_a_later_run_has_replaced_is_computed_again(
    device: Device, kind: Type, numbers: set[int], again: int
) -> None:
    line = VirtualLine(device)
    with Session(line) as session:
        line.to_host = without(kind, numbers)
        before = device.runs
        results = list(session.stream(MORE))
        assert device.runs - before == len(MORE) + again
    for result, inputs in zip(results, MORE, strict=True):
        for name, wanted in known_outputs(inputs).items():
            np.testing.assert_array_equal(result.outputs[name], wanted)


def test_what_the_device_misses_is_sent_again_at_once(device: Device) -> None:
    """It says so: no time has to pass."""
    line = VirtualLine(device)
    with Session(line) as session:
        line.to_device = at(line.sent + 30, FAULTS["inverted"])  # in the inputs; the request to run comes behind them
        np.testing.assert_array_equal(session.run(INPUTS)["sums"], OUTPUTS["sums"])
        assert session.traffic.repeated > 1
    assert line.now == 0.0


def test_an_answer_that_later_ones_show_to_be_lost_is_asked_for_at_once(device: Device) -> None:
    line = VirtualLine(device)
    with Session(line) as session:
        line.to_host = without(Type.WRITE_REPLY, {0})
        np.testing.assert_array_equal(session.run(INPUTS)["sums"], OUTPUTS["sums"])
        assert session.traffic.repeated == 2, "the greeting, and the inputs"
    assert line.now == 0.0


def test_a_device_that_misses_much_is_not_flooded(device: Device) -> None:
    """It complains of every damaged frame; one repetition serves them all."""
    line = VirtualLine(device, baud=115200)
    with Session(line) as session:
        line.write(b"\x05noise\0" * 40)
        sent = line.sent
        np.testing.assert_array_equal(session.run(INPUTS)["sums"], OUTPUTS["sums"])
        assert line.sent - sent < 500


def altered(kind: int, change: Callable[[Packet], Packet]) -> Callable[[int, bytes], bytes]:
    """Packets of this type, changed on the way and yet sound: what only a check from end to end can find."""

    def mangle(begin: int, data: bytes) -> bytes:
        frames = [decode(frame) for frame in data.split(b"\0")[:-1] if frame]
        return b"".join(encode(change(p) if p.type == kind else p) for p in frames if p is not None)

    return mangle


def test_outputs_that_changed_on_the_way_are_not_given_out(device: Device) -> None:
    line = VirtualLine(device)
    with Session(line) as session:
        line.to_host = altered(Type.DATA, lambda p: replace(p, body=p.body[:-1] + bytes([p.body[-1] ^ 1])))
        with pytest.raises(DeviceError) as caught:
            session.run(INPUTS)
    assert str(caught.value) == "the test device sent outputs that are not those it computed: run again"


def test_inputs_that_changed_on_the_way_are_not_run_on(device: Device) -> None:
    line = VirtualLine(device)
    before = device.runs
    with Session(line) as session:
        line.to_device = altered(Type.WRITE, lambda p: replace(p, body=p.body[:-1] + bytes([p.body[-1] ^ 1])))
        with pytest.raises(DeviceError) as caught:
            session.run(INPUTS)
    assert device.runs == before
    assert str(caught.value) == (
        "the test device refused to run: its inputs are not what was sent; its memory, or a driver, has changed them"
    )


def test_answers_to_another_session_are_overlooked(device: Device) -> None:
    """Left over on the line from one that was broken off, with the same sequence numbers."""
    line = VirtualLine(device)
    with Session(line) as session:

        def with_ghosts(begin: int, data: bytes) -> bytes:
            packets = [decode(frame) for frame in data.split(b"\0") if frame]
            pieces = [p for p in packets if p is not None and p.type == Type.DATA]
            return b"".join(encode(replace(p, token=p.token ^ 1, body=p.body[:-1] + b"\x55")) for p in pieces) + data

        line.to_host = with_ghosts
        np.testing.assert_array_equal(session.run(INPUTS)["mask"], OUTPUTS["mask"])
