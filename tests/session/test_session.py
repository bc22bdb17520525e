"""What a session does for its user, on a line without faults."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from support.device.device import Array, Device, VirtualLine, known_inputs, known_outputs, session_on
from uaccel.errors import DeviceError, InputError, LayerError
from uaccel.session.description import Account
from uaccel.session.protocol_ids import LogLevel, Verbosity
from uaccel.session.session import LogLine, Session
from uaccel.session.tensors import TensorType, ramp

INPUTS = known_inputs(5)


@pytest.fixture
def line(device: Device) -> VirtualLine:
    return VirtualLine(device)


@pytest.fixture
def session(line: VirtualLine) -> Iterator[Session]:
    with session_on(line) as session:
        yield session


def assert_outputs(got: dict[str, Array], inputs: dict[str, Array]) -> None:
    wanted = known_outputs(inputs)
    assert list(got) == ["mask", "sums"]
    for name, array in got.items():
        assert array.dtype == wanted[name].dtype
        np.testing.assert_array_equal(array.reshape(wanted[name].shape), wanted[name])


def test_the_package_offers_it() -> None:
    import uaccel

    assert uaccel.Session is Session


def test_the_model_describes_itself(session: Session) -> None:
    model = session.model
    assert model.name == "known"
    assert model.inputs == (TensorType("wave", (1, 40), "int8"), TensorType("weights", (3,), "int16"))
    assert model.outputs == (TensorType("mask", (1, 40), "int8"), TensorType("sums", (3,), "int32"))
    assert [(layer.name, layer.view) for layer in model.layers] == [("xor", False), ("view", True), ("dot", False)]
    assert model.layers[2].outputs == (TensorType("dot", (3,), "int32"),)
    assert model.identity.model_hash == b"\x11" * 32
    assert (model.observable, model.ticks_per_second) == (True, 1000)


def test_run(session: Session) -> None:
    for seed in range(5):
        inputs = known_inputs(seed)
        assert_outputs(session.run(inputs), inputs)


def test_a_faultless_line_repeats_nothing(line: VirtualLine, session: Session) -> None:
    session.run(INPUTS)
    session.layers()
    assert session.traffic.damaged == 0
    assert session.traffic.repeated == 1, "the greeting, when the device said that it had just started"
    assert line.now == 0.0, "nothing waited for a timeout"


def test_a_stream_comes_in_order(session: Session) -> None:
    samples = [known_inputs(seed) for seed in range(20)]
    results = list(session.stream(samples))
    assert len(results) == 20
    for result, inputs in zip(results, samples, strict=True):
        assert_outputs(result.outputs, inputs)
        assert (result.seconds, result.instructions, result.stack) == (0.007, 700, 321)


def test_an_empty_stream(session: Session) -> None:
    assert list(session.stream([])) == []


def test_results_come_as_they_are_made(session: Session) -> None:
    """A few samples are under way at once, and no more are asked for before the first result is out."""
    asked = []

    def samples() -> Iterator[dict[str, Array]]:
        for seed in range(20):
            asked.append(seed)
            yield known_inputs(seed)

    stream = session.stream(samples())
    assert_outputs(next(stream).outputs, known_inputs(0))
    assert asked == [0, 1, 2, 3, 4]


def test_the_next_sample_is_on_its_way_while_the_model_runs(device: Device) -> None:
    """A second of computing hides the writing of the next inputs."""
    line = VirtualLine(device, baud=9600, compute_seconds=1.0)
    with Session(line) as session:
        begun = line.now
        list(session.stream([known_inputs(seed) for seed in range(10)]))
        written = 10 * 60 * 10 / 9600
        assert line.now - begun < 10 * 1.0 + 10 * 0.25 + written / 2


def test_a_stream_that_is_left_early_does_no_harm(session: Session) -> None:
    for seed in range(5):
        stream = session.stream([known_inputs(seed), known_inputs(seed + 1), known_inputs(seed + 2)])
        assert_outputs(next(stream).outputs, known_inputs(seed))
        stream.close()
        assert_outputs(session.run(INPUTS), INPUTS)


@pytest.mark.parametrize("runs", [1, 5, 1000])
def test_time(session: Session, device: Device, runs: int) -> None:
    before = device.runs
    timing = session.time(runs, INPUTS)
    assert device.runs - before == runs
    assert (timing.runs, timing.seconds, timing.least_seconds, timing.instructions) == (runs, 0.007, 0.007, 700)


def test_time_of_nothing(session: Session) -> None:
    with pytest.raises(InputError, match=r"^cannot time 0 runs; wanted at least 1$"):
        session.time(0)


def test_time_without_inputs_takes_the_ramp(session: Session) -> None:
    session.time(1)
    inputs = {tensor.name: ramp(tensor) for tensor in session.model.inputs}
    np.testing.assert_array_equal(session.layer("dot")[0], known_outputs(inputs)["sums"])


@pytest.mark.parametrize("layer", [0, "xor"])
def test_one_layer(session: Session, layer: int | str) -> None:
    (mask,) = session.layer(layer, INPUTS)
    np.testing.assert_array_equal(mask, known_outputs(INPUTS)["mask"])


def test_a_view_has_nothing_of_its_own(session: Session) -> None:
    assert session.layer("view", INPUTS) == []


def test_every_layer(session: Session) -> None:
    layers = session.layers(INPUTS)
    assert set(layers) == {(0, 0), (2, 0)}
    np.testing.assert_array_equal(layers[0, 0], known_outputs(INPUTS)["mask"])
    np.testing.assert_array_equal(layers[2, 0], known_outputs(INPUTS)["sums"])


@pytest.mark.parametrize("layer", [3, -1, "conv"])
def test_no_such_layer(session: Session, layer: int | str) -> None:
    with pytest.raises(InputError, match=rf"^the model has no layer {layer!r}; it has 3, from \['xor'\] to \['dot'\]$"):
        session.layer(layer)


def test_layer_times(session: Session) -> None:
    times = session.layer_times(INPUTS)
    assert [(time.layer, time.name) for time in times] == [(0, "xor"), (2, "dot")]
    assert all(time.seconds == 0.0 and time.instructions == 0 for time in times)


def test_outputs_after_looking_inside_are_those_of_the_last_run(session: Session) -> None:
    assert_outputs(session.run(INPUTS), INPUTS)
    session.layers(known_inputs(9))
    assert_outputs(session.run(INPUTS), INPUTS)


def test_reset(session: Session, device: Device) -> None:
    before = device.resets
    session.run(INPUTS)
    session.reset()
    assert device.resets == before + 1
    assert_outputs(session.run(INPUTS), INPUTS)


@pytest.mark.parametrize("lost", [0, 5, 12, 30])
def test_a_reset_whose_answer_is_lost(session: Session, device: Device, line: VirtualLine, lost: int) -> None:
    before = device.resets
    first = line.received
    line.to_host = lambda begin, data: b"" if begin <= first + lost else data
    session.reset()
    assert device.resets == before + 1
    assert_outputs(session.run(INPUTS), INPUTS)


def test_log(device: Device) -> None:
    line = VirtualLine(device)
    heard: list[LogLine] = []
    session = Session(line, on_log=heard.append)
    line._say(line.now, device.log(LogLevel.WARNING, "half full"))
    line._say(line.now, device.log(LogLevel.INFO, "not sent"))
    session.run(INPUTS)
    session.set_verbosity(LogLevel.DEBUG)
    device.log(LogLevel.ERROR, "lost on the way")
    line._say(line.now, device.log(LogLevel.DEBUG, "héllo"))
    session.run(INPUTS)
    session.set_verbosity(LogLevel.SILENT)
    line._say(line.now, device.log(LogLevel.ERROR, "not sent either"))
    session.run(INPUTS)
    assert session.log == heard
    assert heard == [
        LogLine("the test device", LogLevel.WARNING, "half full", 0),
        LogLine("the test device", LogLevel.DEBUG, "héllo", 1),
    ]


def test_a_fault_of_the_device(device: Device) -> None:
    line = VirtualLine(device)
    session = Session(line)
    line._say(line.now, device.fault("bus fault at 0x40000000"))
    with pytest.raises(DeviceError, match=r"^the test device stopped: bus fault at 0x40000000$"):
        session.run(INPUTS)


def test_a_model_that_fails(session: Session) -> None:
    poison = known_inputs(0)
    poison["wave"][0, :2] = 77
    with pytest.raises(DeviceError, match=r"^the test device: the model returned -5 instead of 0$"):
        session.run(poison)
    with pytest.raises(DeviceError, match=r"^the test device: the model returned -5 instead of 0$"):
        session.layers(poison)
    assert_outputs(session.run(INPUTS), INPUTS)


def test_an_accelerator_that_fails(session: Session) -> None:
    stalled = {**INPUTS, "weights": np.full(3, 77, np.int16)}
    words = r"^the test device: layer 2 \(dot\): dotter: the device never finished \(error 6\)$"
    for ask in (session.run, session.layers, session.layer_times, lambda inputs: session.time(3, inputs)):
        with pytest.raises(LayerError, match=words) as caught:
            ask(stalled)
        assert (caught.value.layer, caught.value.code, caught.value.text) == (2, 6, "the device never finished")
        assert_outputs(session.run(INPUTS), INPUTS)


def test_what_accelerators_did(session: Session) -> None:
    assert session.accounts() == {}
    (result,) = session.stream([INPUTS])
    assert (result.calls, result.cycles) == (2, 40)
    assert session.time(5).cycles == 40
    assert session.accounts() == {2: Account(calls=2, cycles=40)}
    session.reset()
    assert session.accounts() == {}


def test_inputs_by_the_wrong_names(session: Session) -> None:
    with pytest.raises(InputError, match=r"^inputs \['x'\] were given; the model's inputs are \['wave', 'weights'\]$"):
        session.run({"x": INPUTS["wave"]})


def test_an_input_of_the_wrong_shape_or_type(session: Session) -> None:
    with pytest.raises(InputError, match=r'^input "wave" is int8 \[40\], the model wants int8 \[1, 40\]$'):
        session.run({**INPUTS, "wave": INPUTS["wave"][0]})
    with pytest.raises(InputError, match=r'^input "weights" is int64 \[3\], the model wants int16 \[3\]$'):
        session.run({**INPUTS, "weights": INPUTS["weights"].astype(np.int64)})


def test_other_memory_layouts_of_an_input(session: Session) -> None:
    """Strided and big-endian arrays are the same numbers."""
    wide = np.repeat(INPUTS["wave"], 2, axis=1)
    inputs = {"wave": wide[:, ::2], "weights": INPUTS["weights"].astype(">i2").astype("int16")}
    assert_outputs(session.run(inputs), INPUTS)


def test_firmware_that_cannot_watch() -> None:
    device = Device(observe=False)
    with Session(VirtualLine(device)) as session:
        assert_outputs(session.run(INPUTS), INPUTS)
        assert not session.model.observable
        with pytest.raises(
            DeviceError, match=r"^the test device cannot time the layers: build its firmware with -DOBSERVE=ON$"
        ):
            session.layer_times()


@pytest.mark.sample(1)
@pytest.mark.parametrize("body_bytes", [96, 97, 200, 255, 256, 65000])
def test_any_size_of_the_devices_buffer(body_bytes: int) -> None:
    device = Device(f"UACCEL_BODY_BYTES={body_bytes}", "WAVE=3000")
    inputs = known_inputs(0, 3000)
    with Session(VirtualLine(device, receive_bytes=1 << 17)) as session:
        assert_outputs(session.run(inputs), inputs)
        np.testing.assert_array_equal(session.layer(0)[0], known_outputs(inputs)["mask"])


@pytest.mark.slow
def test_more_requests_than_sequence_numbers(session: Session) -> None:
    for _ in range((1 << 16) // 64 + 1):
        for request in [session._link.submit(Verbosity(LogLevel.WARNING), "x") for _ in range(64)]:
            session._link.wait(request)
    assert session._link._next < 100
    assert_outputs(session.run(INPUTS), INPUTS)
    assert session.traffic.repeated == 1
