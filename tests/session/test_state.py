"""Sessions with a model that remembers: what begins anew, what goes on, and that no loss on the line mixes them up."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.device import Array, Device, VirtualLine, known_inputs, known_outputs, session_on
from uaccel.errors import InputError
from uaccel.session.description import STATE_ID
from uaccel.session.link import RefusedError
from uaccel.session.message import Message
from uaccel.session.protocol_ids import ErrorCode, Hello, ObjectKind, Read, ReadReply, Type, WriteState
from uaccel.session.session import Session
from uaccel.session.transport import Packet, decode, encode

FRAMES = [known_inputs(seed) for seed in (1, 2, 1, 3, 4, 4)]
ALONE = [known_outputs(frame)["sums"] for frame in FRAMES]
TOGETHER = list(itertools.accumulate(ALONE))


@pytest.fixture(scope="module", params=[(), ("WORKSPACE_IO",)], ids=["", "workspace I/O"])
def remembering(request: pytest.FixtureRequest) -> Device:
    return Device("STATE", *request.param)


@pytest.fixture
def session(remembering: Device) -> Iterator[Session]:
    with session_on(VirtualLine(remembering)) as session:
        yield session


def test_the_device_says_so(session: Session, device: Device) -> None:
    assert session.model.has_state
    with session_on(VirtualLine(device)) as other:
        assert not other.model.has_state
        for asked, words in (
            (lambda: list(other.sequence(FRAMES)), "nothing continues"),
            (other.read_state, "there is none to read"),
            (lambda: other.write_state({}), "there is none to write"),
        ):
            with pytest.raises(InputError) as caught:
                asked()
            assert str(caught.value) == f"the model known keeps no state between runs; {words}"


def test_a_sequence_goes_on_and_samples_begin_anew(session: Session) -> None:
    for _ in range(2):
        np.testing.assert_array_equal([r.outputs["sums"] for r in session.sequence(FRAMES)], TOGETHER)
        np.testing.assert_array_equal([r.outputs["sums"] for r in session.stream(FRAMES)], ALONE)


def test_single_runs_go_on_where_they_are_asked_to(session: Session) -> None:
    np.testing.assert_array_equal(session.run(FRAMES[0])["sums"], TOGETHER[0])
    np.testing.assert_array_equal(session.run(FRAMES[1], continues=True)["sums"], TOGETHER[1])
    np.testing.assert_array_equal(session.run(FRAMES[1])["sums"], ALONE[1])


def test_what_looks_into_the_model_begins_anew(session: Session) -> None:
    list(session.sequence(FRAMES))
    assert session.time(3).runs == 3
    np.testing.assert_array_equal(session.layer("dot")[0], ALONE[-1])
    np.testing.assert_array_equal(session.layers()[2, 0], ALONE[-1])
    assert [time.name for time in session.layer_times()] == ["xor", "dot"]


def test_bytes_that_are_lost_cost_time_alone(remembering: Device) -> None:
    """No frame is computed twice, none is left out."""
    for seed in range(40):
        generator = random.Random(seed)

        def lose(_begin: int, data: bytes, generator: random.Random = generator) -> bytes:
            return bytes(byte for byte in data if generator.random() > 0.002)

        line = VirtualLine(remembering)
        with session_on(line) as session:
            line.to_device = line.to_host = lose
            np.testing.assert_array_equal([r.outputs["sums"] for r in session.sequence(FRAMES)], TOGETHER)


def test_a_state_that_was_read_goes_on_in_another_session(remembering: Device) -> None:
    with session_on(VirtualLine(remembering)) as session:
        list(session.sequence(FRAMES[:3]))
        saved = session.read_state()
        np.testing.assert_array_equal(saved["so far"], TOGETHER[2])
        list(session.sequence(FRAMES[3:]))
    with session_on(VirtualLine(remembering)) as session:
        session.write_state(saved)
        for frame, wanted in zip(FRAMES[3:], TOGETHER[3:], strict=True):
            np.testing.assert_array_equal(session.run(frame, continues=True)["sums"], wanted)


SUMS, OURS = np.zeros(3, np.int32), np.array(0x5EED0001, np.uint32)
TAKE = "write what read_state gave of this firmware"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (
            {},
            f"tensors [] of a state were given; the model's are ['so far', 'uaccel_state_id']; {TAKE}",
        ),
        (
            {"so far": SUMS},
            f"tensors ['so far'] of a state were given; the model's are ['so far', 'uaccel_state_id']; {TAKE}",
        ),
        (
            {"so far": np.zeros(3, np.int16), STATE_ID: OURS},
            'state "so far" is int16 [3], the model wants int32 [3]',
        ),
        (
            {"so far": SUMS, STATE_ID: np.zeros(2, np.int8)},
            f'"uaccel_state_id" of the state is int8 [2], wanted a uint32; {TAKE}',
        ),
    ],
)
def test_what_is_no_state(session: Session, state: dict[str, Array], words: str) -> None:
    with pytest.raises(InputError) as caught:
        session.write_state(state)
    assert str(caught.value) == words


def test_a_state_of_another_model_is_refused_by_the_device(remembering: Device, tmp_path: Path) -> None:
    """Its tensors have the same names and shapes; the mark alone tells, also out of a file. Ours stays as it is."""
    with session_on(VirtualLine(Device("STATE", "STATE_MARK=0x5EED0002u"))) as other:
        list(other.sequence(FRAMES[:2]))
        arrays: dict[str, Any] = dict(other.read_state())
        np.savez(tmp_path / "other.npz", **arrays)
    with session_on(VirtualLine(remembering)) as session:
        list(session.sequence(FRAMES[:3]))
        with pytest.raises(RefusedError) as caught:
            session.write_state(dict(np.load(tmp_path / "other.npz")))
        assert str(caught.value) == (
            f"the test device refused to write the state: it is of another model file or another build; {TAKE}"
        )
        assert (caught.value.error.code, caught.value.error.detail) == (ErrorCode.STATE, 0x5EED0001)
        np.testing.assert_array_equal(session.read_state()["so far"], TOGETHER[2])


def test_a_piece_beyond_the_end_of_the_state_is_refused(session: Session, device: Device) -> None:
    (_, tensor), *_ = session.model.state
    session.model = replace(session.model, state=((4, tensor),))
    with pytest.raises(RefusedError) as caught:
        session.write_state({"so far": SUMS, STATE_ID: OURS})
    assert (caught.value.error.code, caught.value.error.detail) == (ErrorCode.RANGE, 12)


def test_a_request_that_comes_again_writes_no_state(remembering: Device) -> None:
    """What a host repeats after a loss must not undo what came behind it."""

    def ask(message: Message, sequence: int) -> list[Packet]:
        frames = remembering.step(encode(Packet(message.TYPE, sequence, 7, message.pack()))).split(b"\0")
        return [packet for packet in map(decode, filter(None, frames)) if packet is not None]

    remembering.power_on()
    ask(Hello(1), 0)
    first = WriteState(int(OURS), 0, np.full(3, 5, "<i4").tobytes())
    later = WriteState(int(OURS), 4, np.full(1, 9, "<i4").tobytes())
    for message, sequence in ((first, 1), (later, 2), (first, 1)):
        assert [packet.type for packet in ask(message, sequence)] == [Type.WRITE_STATE_REPLY]
    data, answer = ask(Read(ObjectKind.STATE, 0, 0, 0, 100), 3)
    assert np.frombuffer(data.body[4:], "<i4").tolist() == [5, 9, 5, int(OURS)]
    assert ReadReply.unpack(answer.body).object_bytes == 16


def test_a_state_survives_a_line_that_loses_bytes(remembering: Device) -> None:
    for seed in range(40):
        generator = random.Random(seed)

        def lose(_begin: int, data: bytes, generator: random.Random = generator) -> bytes:
            return bytes(byte for byte in data if generator.random() > 0.005)

        line = VirtualLine(remembering)
        with session_on(line) as session:
            line.to_device = line.to_host = lose
            session.write_state({"so far": TOGETHER[1], STATE_ID: OURS})
            found = [session.run(frame, continues=True)["sums"] for frame in FRAMES[2:]]
            np.testing.assert_array_equal(found, TOGETHER[2:])
            np.testing.assert_array_equal(session.read_state()["so far"], TOGETHER[-1])
