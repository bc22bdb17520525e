"""Sessions with a model that remembers: what begins anew, what goes on, and that no loss on the line mixes them up."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import numpy as np
import pytest

from support.device.device import Device, VirtualLine, known_inputs, known_outputs, tokens
from uaccel.errors import InputError
from uaccel.session.session import Session

FRAMES = [known_inputs(seed) for seed in (1, 2, 1, 3, 4, 4)]
ALONE = [known_outputs(frame)["sums"] for frame in FRAMES]
TOGETHER = list(itertools.accumulate(ALONE))


@pytest.fixture(scope="module", params=[(), ("WORKSPACE_IO",)], ids=["", "workspace I/O"])
def remembering(request: pytest.FixtureRequest) -> Device:
    return Device("STATE", *request.param)


def open_session(line: VirtualLine) -> Session:
    fresh = tokens()
    return Session(line, new_token=lambda: next(fresh))


@pytest.fixture
def session(remembering: Device) -> Iterator[Session]:
    with open_session(VirtualLine(remembering)) as session:
        yield session


def test_the_device_says_so(session: Session, device: Device) -> None:
    assert session.model.has_state
    with open_session(VirtualLine(device)) as other:
        assert not other.model.has_state
        with pytest.raises(InputError) as caught:
            list(other.sequence(FRAMES))
    assert str(caught.value) == "the model known keeps no state between runs; nothing continues"


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
        with open_session(line) as session:
            line.to_device = line.to_host = lose
            np.testing.assert_array_equal([r.outputs["sums"] for r in session.sequence(FRAMES)], TOGETHER)
