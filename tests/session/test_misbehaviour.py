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

from support.device import Device as CDevice
from support.device import VirtualLine, known_inputs, known_outputs
from support.misbehaviour import CASES, RIGHT, Case
from support.scripted import INPUT, OUTPUT, Device, Played, on_a_real_line
from uaccel.errors import DeviceError
from uaccel.session.frame import Packet, encode
from uaccel.session.ids import Type
from uaccel.session.link import Timeouts
from uaccel.session.session import Session
from uaccel.session.streams import CHUNK
from uaccel.session.transport import Transport

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


@pytest.mark.parametrize("case", [case for case in CASES if case.real], ids=str)
def test_a_flood_at_full_speed(case: Case) -> None:
    """On real lines, where memory is what could go first."""
    kind = ["pipe", "socket", "terminal"][[case.real for case in CASES[: CASES.index(case)]].count(True) % 3]
    begun = time.monotonic()
    with on_a_real_line(kind, Device(hello=case.hello), case.when, case.misbehave) as line:
        said = outcome(line, SHORT)
    assert said != RIGHT
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("kind", ["pipe", "socket", "terminal"])
def test_a_line_that_floods_and_takes_nothing(kind: str) -> None:
    """Its bytes are taken in so that no two ends wait for each other; not for ever, and not all of them."""
    (case,) = [case for case in CASES if case.name == "reading no more, but sending"]
    begun = time.monotonic()
    with on_a_real_line(kind, Device(), lambda packet: True, case.misbehave) as line, bounded_memory():
        line.write(encode(Packet(Type.RESET, 0, 1)))
        with pytest.raises(DeviceError, match=r"^the device took \d+ of 8388608 bytes within 0\.5 s: is its line"):
            line.write(bytes(1 << 23), 0.5)
        assert len(line.read(1.0)) <= CHUNK
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
