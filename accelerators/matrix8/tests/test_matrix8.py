"""Layers on matrix8, and on machines that differ from it in numbers alone, give the bytes of their exact meaning."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from uaccel.accelerator import ROUNDINGS, TFLITE, load_accelerator, tensor
from uaccel.testing import host_hal, operator

FOLDER = Path(__file__).resolve().parents[1]
MACHINES = ["matrix8", "small", "wide"]
EXAMPLES = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)
Benches = Callable[[str], Any]


def finish(generator: np.random.Generator, channels: int) -> list[Any]:
    """Bias, multipliers, shifts; now and then extreme ones."""
    bias = generator.integers(-(2**14), 2**14, channels).astype(np.int32)
    multiplier = generator.integers(2**30, 2**31, channels).astype(np.int32)
    usual, rare = generator.integers(-12, -5, channels), generator.choice([-31, -1, 0, 2, 30], channels)
    shift = np.where(generator.random(channels) < 0.9, usual, rare).astype(np.int32)
    return [bias, multiplier, shift]


def random_conv2d(
    layers: Any,
    shape: tuple[int, int, int, int],
    channels: int,
    kernel: tuple[int, int] = (3, 3),
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, int, int, int] = (1, 1, 1, 1),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
    seed: int = 0,
    rounding: str = TFLITE,
) -> Any:
    generator = np.random.default_rng(seed)
    zero_in, zero_out = generator.integers(-128, 128, 2).tolist()
    low, high = sorted(generator.integers(-128, 128, 2).tolist()) if seed % 3 == 0 else (-128, 127)
    attrs = operator("conv2d").attributes(strides, padding, dilation, groups, zero_in, zero_out, low, high, rounding)
    data = generator.integers(-128, 128, shape).astype(np.int8)
    weights = generator.integers(-128, 128, (channels, *kernel, shape[3] // groups)).astype(np.int8)
    return layers.conv2d(data, weights, finish(generator, channels), attrs)


def random_dense(layers: Any, rows: int, depth: int, units: int, seed: int = 0, rounding: str = TFLITE) -> Any:
    generator = np.random.default_rng(seed)
    zero_in, zero_out = generator.integers(-128, 128, 2).tolist()
    attrs = operator("fully_connected").attributes(zero_in, zero_out, -128, 127, rounding)
    data, weights = (generator.integers(-128, 128, (n, depth)).astype(np.int8) for n in (rows, units))
    return layers.fully_connected(data, weights, finish(generator, units), attrs)


def assert_exact(layers: Any, bench: Any, case: Any) -> None:
    """The same bytes, and as many cycles and commands as the cost model says."""
    ran = bench.run(case)
    assert ran.status == 0, ran.said
    differing = np.argwhere(ran.output != layers.exact(case))
    assert differing.size == 0, f"{len(differing)} bytes differ, first at {differing[0]}:\n{bench.text(case)}"
    time = tensor.timed(bench.machine, case.region)
    assert (ran.calls, ran.cycles) == (time.commands, time.total)


CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "3x3": {"shape": (1, 12, 12, 16), "channels": 24},
    "few channels": {"shape": (1, 17, 15, 3), "channels": 5, "strides": (2, 2), "padding": (0, 0, 1, 1)},
    "one channel": {"shape": (1, 49, 10, 1), "channels": 64, "kernel": (10, 4), "strides": (2, 2)},
    "pointwise": {"shape": (1, 9, 7, 40), "channels": 33, "kernel": (1, 1), "padding": (0, 0, 0, 0)},
    "pointwise, strided": {
        "shape": (2, 9, 7, 12),
        "channels": 20,
        "kernel": (1, 1),
        "padding": (0, 0, 0, 0),
        "strides": (2, 3),
    },
    "many channels": {"shape": (1, 5, 5, 150), "channels": 40},
    "dilated": {"shape": (1, 14, 13, 10), "channels": 9, "dilation": (2, 3), "padding": (2, 3, 2, 3)},
    "groups": {"shape": (1, 8, 8, 24), "channels": 36, "groups": 3},
    "depthwise by groups": {"shape": (1, 6, 6, 8), "channels": 8, "groups": 8},
    "batch": {"shape": (3, 6, 7, 9), "channels": 17},
    "padding only": {"shape": (1, 2, 2, 3), "channels": 4, "kernel": (2, 2), "padding": (4, 5, 3, 4)},
    "unread edge": {"shape": (1, 10, 10, 4), "channels": 8, "strides": (3, 3), "padding": (0, 0, 0, 0)},
    "large": {"shape": (1, 40, 40, 32), "channels": 64},
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("case", CONVOLUTIONS.values(), ids=CONVOLUTIONS.keys())
def test_convolutions(benches: Benches, layers: Any, case: dict[str, Any], machine: str, rounding: str) -> None:
    assert_exact(layers, benches(machine), random_conv2d(layers, **case, rounding=rounding))


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_a_depthwise_convolution_of_one_channel(benches: Benches, layers: Any, rounding: str) -> None:
    """All columns see that channel: it is a convolution."""
    generator = np.random.default_rng(3)
    attrs = operator("depthwise_conv2d").attributes((2, 2), (4, 1, 4, 1), (1, 1), 1, 7, -3, -128, 127, rounding)
    data, weights = (generator.integers(-128, 128, shape).astype(np.int8) for shape in ((1, 49, 10, 1), (10, 4, 12)))
    assert_exact(layers, benches("matrix8"), layers.depthwise(data, weights, finish(generator, 12), attrs))


def test_a_depthwise_convolution_of_more_channels_is_rejected(benches: Benches, layers: Any) -> None:
    attrs = operator("depthwise_conv2d").attributes((1, 1), (0, 0, 0, 0), (1, 1), 2, 0, 0, -128, 127)
    weights = np.ones((3, 3, 6), np.int8)
    case = layers.depthwise(np.zeros((1, 5, 5, 2), np.int8), weights, finish(np.random.default_rng(0), 6), attrs)
    reason = "each channel sees itself alone, and 3 of matrix8's 8 columns would work"
    assert tensor.fits(benches("matrix8").machine)(case.region) == reason


@pytest.mark.sample(5)
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("rows", "depth", "units"), [(1, 640, 128), (1, 10, 3), (7, 65, 30), (300, 4, 9), (2, 3000, 17)]
)
def test_fully_connected(
    benches: Benches, layers: Any, rows: int, depth: int, units: int, machine: str, rounding: str
) -> None:
    assert_exact(layers, benches(machine), random_dense(layers, rows, depth, units, rounding=rounding))


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@given(data=st.data())
@EXAMPLES
def test_random_convolutions(benches: Benches, layers: Any, machine: str, data: st.DataObject) -> None:
    def pair(low: int, high: int) -> st.SearchStrategy[tuple[int, int]]:
        return st.tuples(st.integers(low, high), st.integers(low, high))

    kernel, strides, dilation = (data.draw(pair(1, high)) for high in (4, 3, 2))
    height, width = data.draw(pair(1, 20))
    groups, depth = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 70))
    channels = groups * data.draw(st.integers(1, 30))
    top, left = data.draw(pair(0, 3))
    bottom, right = data.draw(pair(0, 3))
    assume(height + top + bottom > (kernel[0] - 1) * dilation[0])
    assume(width + left + right > (kernel[1] - 1) * dilation[1])
    shape = (data.draw(st.integers(1, 2)), height, width, groups * depth)
    case = random_conv2d(
        layers,
        shape,
        channels,
        kernel,
        strides,
        (top, left, bottom, right),
        dilation,
        groups,
        data.draw(st.integers(0, 999)),
        data.draw(st.sampled_from(ROUNDINGS)),
    )
    assert_exact(layers, benches(machine), case)


def test_what_does_not_fit_is_rejected_with_the_memory_that_is_too_small(layers: Any) -> None:
    machine = tensor.Machine(
        *("tiny", 8, 8, tensor.Memory(1024), tensor.Memory(512), tensor.Memory(64), tensor.Memory(96)),
        *(tensor.Dma(8, 1), tensor.Dma(8, 1), 1),
    )
    fits = tensor.fits(machine)
    assert fits(random_conv2d(layers, (1, 4, 4, 8), 8, (1, 1), padding=(0, 0, 0, 0)).region) is None
    reason = fits(random_conv2d(layers, (1, 4, 4, 8), 8).region)
    assert reason == "one output pixel of it needs 576 bytes of weights, and tiny has 512"
    wide = fits(random_conv2d(layers, (1, 30, 30, 8), 8, (12, 12), padding=(0, 0, 0, 0)).region)
    assert wide == "one output pixel of it needs 1152 bytes of activations, and tiny has 1024"


def test_memories_double_buffer_where_two_pieces_fit(benches: Benches, layers: Any) -> None:
    case = random_conv2d(layers, (1, 40, 40, 32), 64)
    assert "the other bank" in benches("matrix8").text(case)
    assert "the other bank" not in benches("small").text(case)


def test_engines_overlap(benches: Benches, layers: Any) -> None:
    """A layer with work enough keeps the array busy nearly all of the time."""
    time = tensor.timed(benches("matrix8").machine, random_conv2d(layers, (1, 40, 40, 32), 64).region)
    assert time.busy["compute"] > 0.9 * time.total


FAULTS = {
    "hang": (1, "did not finish"),
    "hang@5": (1, "did not finish"),
    "error@3": (2, "error of its own"),
    "vanish@4": (3, "does not answer"),
    "vanish": (3, "does not answer"),
    "version": (5, "another version"),
    "dma@2": (6, "refused"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_end_with_their_code(benches: Benches, layers: Any, fault: str) -> None:
    bench, case = benches("matrix8"), random_conv2d(layers, (1, 12, 12, 16), 24)
    code, words = FAULTS[fault]
    ran = bench.run(case, f"matrix8:{fault}")
    assert (ran.status, words in ran.said) == (code, True), ran.said
    assert bench.run(case).status == 0, "the device does not recover"


def test_commands_beyond_a_memory_are_refused(benches: Benches) -> None:
    """What the driver is told of a command that does not fit the device."""
    bench = benches("matrix8")
    bench.c.test_reset(b"")
    bench.c.TVMDeviceMatrix8Activate(ctypes.c_void_p(bench.c.uaccel_hal_device(b"matrix8")))
    bench.c.matrix8_begin()
    bench.c.matrix8_fill(0, 16000, 385, 0)
    bench.c.matrix8_fill(0, 0, 8, 0)
    assert bench.c.matrix8_finish(None, 0) == 8
    assert bench.c.test_calls() == 0


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_device_keeps_its_bounds_whatever_is_written(tmp_path: Path, compiler: str) -> None:
    program = tmp_path / "fuzz"
    command = [compiler, "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror", "-O1", "-g"]
    command += [
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        *(f"-I{folder}" for folder in host_hal()[0]),
    ]
    sources = [*FOLDER.glob("device/*.c"), FOLDER / "tests" / "fuzz_device.c"]
    built = subprocess.run(
        [*command, *map(str, sources), "-o", str(program)], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[:4000]


def test_the_description_is_short() -> None:
    lines = [line for line in (FOLDER / "accelerator.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 60
    assert load_accelerator(str(FOLDER)).name == "matrix8"
