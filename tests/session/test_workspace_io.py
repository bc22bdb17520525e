"""Sessions with a model that uses its inputs up: no run ever computes with what an earlier one has left of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from support.device.device import Device, VirtualLine, known_inputs, known_outputs, session_on
from uaccel.session.link import RefusedError
from uaccel.session.message import Message
from uaccel.session.protocol_ids import ErrorCode, ObjectKind, Read, Run, Write
from uaccel.session.session import Session
from uaccel.session.tensors import ramp

INPUTS = known_inputs(5)
BYTES = 40 + 3 * 2


@pytest.fixture(scope="module")
def spending() -> Device:
    return Device("WORKSPACE_IO")


@pytest.fixture
def session(spending: Device) -> Iterator[Session]:
    with session_on(VirtualLine(spending)) as session:
        yield session


def assert_right(session: Session) -> None:
    """Of the inputs that were given last."""
    wanted = known_outputs(INPUTS)
    np.testing.assert_array_equal(session.layer("dot")[0], wanted["sums"])
    np.testing.assert_array_equal(session.layers()[0, 0], wanted["mask"])


def test_the_device_says_so(session: Session, device: Device) -> None:
    assert session.model.workspace_io
    with session_on(VirtualLine(device)) as other:
        assert not other.model.workspace_io


def test_every_run_has_its_inputs(session: Session) -> None:
    samples = [known_inputs(seed) for seed in (1, 1, 2, 1, 3, 3, 3, 4)]
    for result, inputs in zip(session.stream(samples), samples, strict=True):
        for name, wanted in known_outputs(inputs).items():
            np.testing.assert_array_equal(result.outputs[name], wanted)


def test_what_needs_no_new_inputs_gets_them_again(session: Session, spending: Device) -> None:
    session.run(INPUTS)
    assert_right(session)
    assert [time.name for time in session.layer_times()] == ["xor", "dot"]
    assert_right(session)
    before = spending.runs
    timing = session.time(5)
    assert spending.runs - before == 5
    assert (timing.runs, timing.seconds, timing.least_seconds, timing.instructions) == (5, 0.007, 0.007, 700)
    assert timing.cycles == 40
    assert_right(session)


def test_without_any_the_ramp_serves(session: Session) -> None:
    session.time(2)
    inputs = {tensor.name: ramp(tensor) for tensor in session.model.inputs}
    np.testing.assert_array_equal(session.layer("dot")[0], known_outputs(inputs)["sums"])


def refusal(session: Session, *messages: Message) -> RefusedError:
    """Of the last one."""
    *before, last = [session._link.submit(message, "x") for message in messages]
    for request in before:
        session._link.wait(request)
    with pytest.raises(RefusedError) as caught:
        session._link.wait(last)
    return caught.value


RUN_ONCE, RUN_TWICE = (Run(9, count, 0, False, False) for count in (1, 2))
LAYERS = Read(ObjectKind.LAYERS, 0xFFFF, 0, 0, 99)


@pytest.mark.parametrize("message", [RUN_ONCE, LAYERS], ids=["run", "layers"])
@pytest.mark.parametrize("written", [0, 7], ids=["not written again", "written in part"])
def test_the_device_refuses_to_compute_with_spent_inputs(
    session: Session, spending: Device, message: Message, written: int
) -> None:
    session.run(INPUTS)
    before = spending.runs
    parts: list[Message] = [Write(0, bytes(written))] if written else []
    error = refusal(session, *parts, message)
    assert (error.error.code, error.error.detail) == (ErrorCode.SPENT, written)
    assert str(error).endswith(
        "an inference has used its inputs up, which lie in the workspace; write them before each run"
    )
    assert spending.runs == before
    np.testing.assert_array_equal(session.run(INPUTS)["sums"], known_outputs(INPUTS)["sums"])


@pytest.mark.parametrize("message", [RUN_ONCE, LAYERS], ids=["run", "layers"])
def test_what_is_written_behind_a_gap_does_not_make_inputs_whole(
    session: Session, spending: Device, message: Message
) -> None:
    session.run(INPUTS)
    before = spending.runs
    gap = Write(8, bytes(BYTES - 8))
    assert refusal(session, gap, message).error.detail == 0
    assert refusal(session, Write(0, bytes(7)), gap, message).error.detail == 7
    assert spending.runs == before
    np.testing.assert_array_equal(session.run(INPUTS)["sums"], known_outputs(INPUTS)["sums"])


def test_the_device_refuses_to_run_twice_on_inputs_sent_once(session: Session, spending: Device) -> None:
    before = spending.runs
    error = refusal(session, Write(0, bytes(BYTES)), RUN_TWICE)
    assert (error.error.code, error.error.detail) == (ErrorCode.SPENT, BYTES)
    assert spending.runs == before


def test_outputs_are_gone_when_inputs_are_written(session: Session) -> None:
    session.run(INPUTS)
    outputs = Read(ObjectKind.OUTPUTS, 0, 1, 0, 0xFFFFFFFF)
    session._link.wait(session._link.submit(outputs, "x"))
    error = refusal(session, Write(3, b"\0"), outputs)
    assert (error.error.code, error.error.detail) == (ErrorCode.RUN, 0)


@pytest.mark.parametrize("direction", ["to_device", "to_host"])
def test_lost_bytes_change_nothing(spending: Device, direction: str) -> None:
    """One at a time, all along a session."""
    length = _session(spending, direction, -1)
    for position in range(0, length, 5):
        _session(spending, direction, position)


def _session(spending: Device, direction: str, lost: int) -> int:
    """Returns how many bytes went that way; the one at ``lost`` did not arrive."""
    line = VirtualLine(spending)

    def mangle(begin: int, data: bytes) -> bytes:
        at = lost - begin
        return data[:at] + data[at + 1 :] if 0 <= at < len(data) else data

    setattr(line, direction, mangle)
    with session_on(line) as session:
        samples = [known_inputs(seed) for seed in range(3)]
        for result, inputs in zip(session.stream(samples), samples, strict=True):
            np.testing.assert_array_equal(result.outputs["sums"], known_outputs(inputs)["sums"])
        session.time(2)
        wanted = known_outputs(samples[-1])
        np.testing.assert_array_equal(session.layer("dot")[0], wanted["sums"])
    return line.sent if direction == "to_device" else line.received
