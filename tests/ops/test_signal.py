"""The signal operators of an audio front end: every tensor of it as TensorFlow Lite Micro has it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from flatbuffers import flexbuffers

from models import hearing
from support.device.hostlib import HostModel, compile_bytes
from support.models.audio import FrontEnd
from support.models.tflite_writer import ModelBuilder
from support.oracle.exactness import assert_exact, assert_exact_random
from support.oracle.oracle import Array, Tflm
from support.oracle.sanitized import assert_clean
from uaccel.errors import ModelError
from uaccel.tvm_api.executor import Executor

Shape = tuple[int, ...]


def written(options: object) -> bytes:
    return bytes(flexbuffers.Dumps(options))


def frames(count: int, samples: int) -> Iterator[list[Array]]:
    """A tone that grows, noise, silence, extremes."""
    generator = np.random.RandomState(1)
    time = np.arange(samples) / 16000
    for number in range(count):
        tone = 40 * 3.0**number * np.sin(2 * np.pi * (200 + 300 * number) * time)
        yield [np.clip(tone + generator.normal(0, 30, samples), -32768, 32767).astype(np.int16)]
    yield [generator.randint(-32768, 32768, samples).astype(np.int16)]
    yield [np.zeros(samples, np.int16)]
    yield [np.full(samples, -32768, np.int16)]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "model",
    [FrontEnd(), FrontEnd(256, 256, 20, clamping=True, detail=True), FrontEnd(100, 128, 9)],
    ids=["30 ms", "clamped", "a small one"],
)
def test_a_front_end(model: FrontEnd) -> None:
    assert_exact(model.build(), list(frames(5, model.samples)))


@pytest.mark.slow
def test_clean_under_sanitizers() -> None:
    assert_clean(FrontEnd(100, 128, 9).build())


def test_its_noise_lasts() -> None:
    compiled = compile_bytes(FrontEnd(100, 128, 9).build())
    (state,) = compiled.program.state
    assert (state.before.info.shape, state.before.info.dtype) == ((9,), "uint32")


def remembering(
    code: str, options: dict[str, int], shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str
) -> bytes:
    model = ModelBuilder()
    given, made = model.input("x", shapes[0], dtype), model.tensor("y", shapes[1], dtype)
    model.op("CUSTOM", [given], [made], custom_code=code, custom_options=written(options))
    return model.build(made)


STREAMS = {
    "a delay shorter than a frame": remembering("SignalDelay", {"delay_length": 3}, ((2, 5), (2, 5)), "int16"),
    "a delay longer than a frame": remembering("SignalDelay", {"delay_length": 12}, ((5,), (5,)), "int16"),
    "overlapping": remembering("SignalOverlapAdd", {"T": 7, "frame_step": 3}, ((2, 8), (6,)), "int16"),
    "rows": remembering("SignalOverlapAdd", {"T": 7, "frame_step": 5}, ((3, 2, 5), (3, 10)), "int16"),
    "floats": remembering("SignalOverlapAdd", {"T": 0, "frame_step": 2}, ((1, 2, 8), (1, 4)), "float32"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream(name: str) -> None:
    assert_exact_random(STREAMS[name], runs=9)


@pytest.mark.parametrize("value", [-32768, 32767])
def test_sums_of_a_stream_saturate(value: int) -> None:
    assert_exact(STREAMS["overlapping"], [[np.full((2, 8), value, np.int16)]] * 3)


def framing(shapes: tuple[Shape, Shape], prefill: int = 1) -> bytes:
    model = ModelBuilder()
    options = {"frame_size": 7, "frame_step": 3, "prefill": prefill}
    given, made = model.input("x", shapes[0], "int16"), model.tensor("y", shapes[1], "int16")
    valid = model.tensor("valid", (), "bool")
    model.op("CUSTOM", [given], [made, valid], custom_code="SignalFramer", custom_options=written(options))
    return model.build(made, valid)


@pytest.mark.parametrize("shapes", [((3,), (1, 7)), ((2, 6), (2, 2, 7))], ids=["a frame", "rows of two"])
def test_frames(shapes: tuple[Shape, Shape]) -> None:
    assert_exact_random(framing(shapes), runs=9)


def test_frames_that_begin_incomplete() -> None:
    with pytest.raises(ModelError, match=r"its first frames are incomplete; one with prefill can be compiled$"):
        compile_bytes(framing(((3,), (1, 7)), prefill=0))


def test_a_delay_of_nothing() -> None:
    with pytest.raises(ModelError, match=r"its options or shapes leave it nothing to remember$"):
        compile_bytes(remembering("SignalDelay", {"delay_length": 0}, ((5,), (5,)), "int16"))


def test_the_examples_model_is_exact() -> None:
    data = hearing.build()
    assert data == hearing.PLACE.read_bytes(), "run python -m models.hearing in tests"
    assert hearing.alone() == hearing.ALONE.read_bytes(), "run python -m models.hearing in tests"
    assert_exact(data, list(frames(3, 480)), meaning=False)


def refusal(code: str, options: bytes, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> str:
    model = ModelBuilder()
    given, made = model.input("x", shapes[0], "int16"), model.tensor("y", shapes[1], "int16")
    model.op("CUSTOM", [given], [made], custom_code=code, custom_options=options)
    model.output(made)
    with pytest.raises(ModelError) as caught:
        compile_bytes(model.build())
    return str(caught.value).partition('("y"): ')[2]


def stacking(width: int, left: int, right: int, step: int) -> bytes:
    model, size = ModelBuilder(), width * (left + right + 1)
    options = {"num_channels": width, "stacker_left_context": left, "stacker_right_context": right}
    given, made = model.input("x", (width,), "int16"), model.tensor("y", (size,), "int16")
    valid = model.tensor("valid", (), "bool")
    written_options = written({**options, "stacker_step": step})
    model.op("CUSTOM", [given], [made, valid], custom_code="SignalStacker", custom_options=written_options)
    return model.build(made, valid)


@pytest.mark.parametrize("kind", [(2, 1, 1, 1), (3, 1, 1, 2), (1, 2, 1, 4), (2, 0, 0, 1)])
def test_stacked_frames(kind: tuple[int, int, int, int]) -> None:
    """What TensorFlow Lite Micro leaves in a row that is not complete is what was there."""
    data = stacking(*kind)
    compiled, reference = compile_bytes(data), Tflm(data)
    host, meaning = HostModel(compiled), Executor(compiled.model.module, state=compiled.model.state)
    complete = 0
    for frame in range(9):
        sample = np.arange(kind[0], dtype=np.int16) + np.int16(100 * frame + 7)
        row, valid = reference.run([sample])
        for found in (host(sample), meaning.run([sample])):
            assert bool(found[1]) == bool(valid)
            np.testing.assert_array_equal(found[0], row if valid else np.zeros_like(row))
        complete += bool(valid)
    assert complete > 1


def test_a_stack_that_leaves_frames_out() -> None:
    with pytest.raises(ModelError, match=r"its step of 3 frames is not from 1 to the 2 of a row$"):
        compile_bytes(stacking(1, 0, 1, 3))


@pytest.mark.parametrize(("length", "rows"), [(4, ()), (8, (2,)), (32, ()), (512, ())])
def test_back_from_a_spectrum(length: int, rows: Shape) -> None:
    code, options = "SignalIrfft", {"T": 7, "fft_length": length}
    assert_exact_random(remembering(code, options, ((*rows, length + 2), (*rows, length)), "int16"), runs=4)


@pytest.mark.parametrize(
    ("code", "options", "words"),
    [
        ("SignalRfft", written({"fft_length": 12}), "its FFT has 12 samples; powers of two can be compiled"),
        ("SignalRfft", written({"fft_length": 1 << 20}), "its FFT has 1048576 samples; 4 to 16384 can be compiled"),
        ("SignalRfft", written({"T": 7}), "its option fft_length is None, wanted a whole number"),
        ("SignalRfft", b"", "its option fft_length is None, wanted a whole number"),
        ("SignalRfft", written([1, 2]), "its options are no map of names; the file is damaged"),
        ("SignalWindow", written({"shift": 3}), "it has 1 inputs, wanted 2"),
    ],
)
def test_refusals(code: str, options: bytes, words: str) -> None:
    assert refusal(code, options, ((8,), (10,))) == words


def test_damaged_options() -> None:
    assert refusal("SignalRfft", b"\x01\xff\xff\x24\x01", ((8,), (10,))).startswith("its options cannot be read: ")
