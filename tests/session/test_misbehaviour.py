"""No device holds its host or fills its memory: each misbehaviour ends in the right tensors or in one line, in time."""

from __future__ import annotations

import re
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from support.device.device import Device as CDevice
from support.device.device import VirtualLine, known_inputs, known_outputs
from support.device.scripted import INPUT, OUTPUT, Device, Misbehave, Played, Script, on_a_real_line
from support.hostile.misbehaviour import CASES, RIGHT, RUN, WRITE, Case, data_at, packets, reads_no_more, to_each_once
from uaccel.errors import DeviceError
from uaccel.session import transport
from uaccel.session.link import Timeouts
from uaccel.session.protocol_ids import MOST_RUNS, Log, Run, Type
from uaccel.session.session import KEPT_LOG_LINES, Session
from uaccel.session.transport import Packet, Transport, encode

TIMES = Timeouts(run=20)
OPERATIONS = 5
"""Of the session below, each of which may take its time."""
SHORT = Timeouts(answer=0.05, silence=0.5, run=0.5, operation=1.0, write=0.5)
MEMORY = 300 << 20
LONGEST_LINE = 700


@contextmanager
def bounded_memory() -> Iterator[None]:
    """What is asked of the system beyond this is refused, and the test fails."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = int(statm.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def outcome(line: Transport, timeouts: Timeouts) -> str:
    """``right``, or the error's text; a wrong tensor or any other exception fails the test."""
    try:
        with bounded_memory(), Session(line, timeouts=timeouts) as session:
            name = session.model.outputs[0].name
            np.testing.assert_array_equal(session.run({"x": INPUT})[name], OUTPUT)
            assert session.accounts() == {}
            np.testing.assert_array_equal(session.layers()[0, 0], OUTPUT)
            assert [time.layer for time in session.layer_times()] == [0]
            assert session.time(2).runs == 2
    except DeviceError as error:
        text = str(error)
        assert text.isprintable(), text
        assert len(text) < LONGEST_LINE, text
        return text
    return RIGHT


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case(case: Case) -> None:
    """In a time of its own, with the limits that users have: hours pass at once, if the device may take them."""
    line = Played(Device(hello=case.hello), case.when, case.misbehave)
    said = outcome(line, TIMES)
    assert re.fullmatch(case.words, said), said
    assert line.now < OPERATIONS * TIMES.operation + TIMES.run


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", [case for case in CASES if case.real], ids=str)
def test_a_flood_at_full_speed(case: Case) -> None:
    """On real lines, where memory is what could go first."""
    kind = ["pipe", "socket", "terminal"][[case.real for case in CASES[: CASES.index(case)]].count(True) % 3]
    begun = time.monotonic()
    with on_a_real_line(kind, Device(hello=case.hello), case.when, case.misbehave) as line:
        said = outcome(line, SHORT)
    assert said != RIGHT
    assert time.monotonic() - begun < 10


def trickles(device: Device, packet: Packet) -> Script:
    while True:
        yield b"."
        yield 0.01


@pytest.mark.parametrize("talk", [reads_no_more, trickles], ids=["floods", "trickles"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "terminal"])
def test_a_line_that_talks_and_takes_nothing(kind: str, talk: Misbehave, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes are taken in so that no two ends wait for each other; not for ever, and not all of them."""
    monkeypatch.setattr(transport, "MOST_ARRIVED", 1 << 18)
    begun = time.monotonic()
    with on_a_real_line(kind, Device(), lambda packet: True, talk) as line, bounded_memory():
        line.write(encode(Packet(Type.RESET, 0, 1)))
        with pytest.raises(DeviceError, match=r"^the device took \d+ of 8388608 bytes within 0\.3 s: is its line"):
            line.write(bytes(1 << 23), 0.3)
        assert len(line._arrived) < transport.MOST_ARRIVED + transport.CHUNK
        assert len(line.read(1.0)) <= transport.CHUNK
    assert time.monotonic() - begun < 10


@pytest.fixture(scope="module")
def large() -> CDevice:
    return CDevice("WAVE=6000")


@pytest.mark.parametrize("baud", [1200, 9600, None])
def test_a_slow_board_is_no_bad_one(baud: int | None, large: CDevice) -> None:
    """Minutes for the inputs, for each inference and for the outputs: what takes its time has it."""
    inputs = known_inputs(1, 6000)
    line = VirtualLine(large, baud=baud, compute_seconds=50.0, grain=0.1)
    with Session(line, timeouts=Timeouts(run=60)) as session:
        for result in session.stream([inputs] * 3):
            np.testing.assert_array_equal(result.outputs["mask"], known_outputs(inputs)["mask"])
        assert session.time(3).runs == 3
        np.testing.assert_array_equal(session.layer("dot")[0], known_outputs(inputs)["sums"])
    assert line.now >= 6 * 50


def takes(seconds: float) -> Misbehave:
    """For each inference."""

    def misbehave(device: Device, packet: Packet) -> Script:
        *first, last = device.answer(packet)
        yield b"".join(map(encode, first))
        yield seconds * Run.unpack(packet.body).count
        yield encode(last)

    return misbehave


@pytest.mark.parametrize(("runs", "seconds"), [(1000, 20.0), (2 * MOST_RUNS, 0.001)])
def test_many_runs_take_many_times_as_long(runs: int, seconds: float) -> None:
    """Hours, if it must be, and more than one request may ask for."""
    line = Played(Device(), RUN, to_each_once(takes(seconds)))
    with Session(line, timeouts=Timeouts(run=60)) as session:
        assert session.time(runs, {"x": INPUT}).runs == runs
    assert line.now > runs * seconds


def test_many_runs_that_hang_are_given_up_by_what_one_has_taken() -> None:
    """Not by what so many might take."""
    line = Played(
        Device(), asked_to_run_often, packets(data_at(lambda number: 0, b""), every=1.0, first=[Type.STARTED])
    )
    with Session(line, timeouts=Timeouts(run=60)) as session, pytest.raises(DeviceError, match="run 999 times"):
        session.time(1000, {"x": INPUT})
    assert line.now < 60 + 999 * 60 / 100


def asked_to_run_often(packet: Packet) -> bool:
    return packet.type == Type.RUN and Run.unpack(packet.body).count > 1


def test_the_last_lines_of_a_long_log_are_kept() -> None:
    def chatter(device: Device, packet: Packet) -> Script:
        lines = [
            Packet(Type.LOG, number, 0, Log(2, b"line %d" % number).pack()) for number in range(3 * KEPT_LOG_LINES)
        ]
        yield b"".join(map(encode, [*lines, *device.answer(packet)]))

    with Session(Played(Device(), WRITE, chatter)) as session:
        session.run({"x": INPUT})
        assert len(session.log) == KEPT_LOG_LINES
        assert session.log[-1].text == f"line {3 * KEPT_LOG_LINES - 1}"
