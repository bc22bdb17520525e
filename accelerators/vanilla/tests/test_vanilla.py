"""The driver and the device's model against numpy, and what the description claims of models."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from uaccel.accelerator import Constant, Input, Output, Region, constant, load_accelerator, relax
from uaccel.testing import DriverUnderTest, compile_with_each, example

Array = NDArray[Any]

ACCELERATOR = load_accelerator(str(Path(__file__).resolve().parents[1]))
CONV2D = ACCELERATOR.operations[0]
OK, TIMEOUT, ERROR, GONE, VERSION, BUS, ARGUMENT = 0, 1, 2, 3, 5, 6, 8
RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def built() -> DriverUnderTest:
    return DriverUnderTest(ACCELERATOR)


@pytest.fixture
def driver(built: DriverUnderTest) -> DriverUnderTest:
    built.reset()
    assert (built.activate(), built.open()) == (OK, OK)
    return built


def tensors(image: tuple[int, int, int], kernel: tuple[int, int, int]) -> tuple[Array, Array, Array]:
    """Input [channels, height, width], weights for so many outputs, memory for the result."""
    x = RNG.normal(size=image).astype(np.float32)
    weights = RNG.normal(size=(kernel[0], image[0], *kernel[1:])).astype(np.float32)
    weights.flags.writeable = False
    return x, weights, np.full((kernel[0], *image[1:]), np.nan, np.float32)


def run(driver: DriverUnderTest, x: Array, weights: Array, out: Array) -> int:
    return driver.call("vanilla_conv2d", x, weights, out, *x.shape, len(weights), *weights.shape[2:])


def convolved(x: Array, weights: Array) -> Array:
    """In double precision."""
    before = [((extent - 1) // 2, extent // 2) for extent in weights.shape[2:]]
    padded = np.pad(x.astype(np.float64), [(0, 0), *before])
    seen = np.lib.stride_tricks.sliding_window_view(padded, weights.shape[2:], (1, 2))
    return np.asarray(np.einsum("cyxij,kcij->kyx", seen, weights.astype(np.float64)))


@pytest.mark.parametrize(
    ("image", "kernel"),
    [
        ((1, 1, 1), (1, 1, 1)),
        ((3, 8, 7), (4, 3, 3)),
        ((2, 5, 9), (3, 2, 4)),
        ((2, 3, 2), (1, 16, 16)),
        ((1, 2, 1024), (2, 1, 16)),
    ],
)
def test_convolution(driver: DriverUnderTest, image: tuple[int, int, int], kernel: tuple[int, int, int]) -> None:
    x, weights, out = tensors(image, kernel)
    assert run(driver, x, weights, out) == OK, driver.failure
    np.testing.assert_allclose(out, convolved(x, weights), rtol=1e-5, atol=1e-5)
    assert (driver.calls, driver.cycles) == (1, driver.busy)
    assert driver.busy == 20 + out.size * weights[0].size


FAULTS = {
    "hang": (OK, TIMEOUT, "the device did not finish: register 0x0000000c"),
    "error": (OK, ERROR, "vanilla reports an error"),
    "vanish": (GONE, GONE, "the device does not answer: register 0x0000000c"),
    "vanish@1": (OK, GONE, "the device does not answer: register 0x0000000c"),
    "version": (VERSION, GONE, "the device does not answer: register 0x0000000c"),
    "dma@2": (OK, BUS, "vanilla was refused access to memory"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_errors(built: DriverUnderTest, fault: str) -> None:
    active, first, words = FAULTS[fault]
    built.let_fail(fault)
    assert built.activate() == active
    assert run(built, *tensors((1, 4, 4), (1, 3, 3))) == first
    assert built.failure.startswith(words)
    assert built.calls == 0


def test_impossible_parameters(driver: DriverUnderTest) -> None:
    x, weights, out = tensors((1, 4, 4), (1, 3, 3))
    for numbers in ((0, 4, 4, 1, 3, 3), (1, 4, -4, 1, 3, 3), (1, 4, 1025, 1, 3, 3), (1, 4, 4, 1, 17, 1)):
        assert driver.call("vanilla_conv2d", x, weights, out, *numbers) == ARGUMENT
        assert driver.failure.startswith("vanilla")


def test_memory_that_the_device_does_not_reach(driver: DriverUnderTest) -> None:
    x, weights, out = tensors((1, 4, 4), (1, 3, 3))
    elsewhere = ctypes.c_void_p(out.ctypes.data)
    assert driver.call("vanilla_conv2d", x, weights, elsewhere, 1, 4, 4, 1, 3, 3) == BUS


def test_compilers_have_nothing_to_say(tmp_path: Path) -> None:
    assert compile_with_each(ACCELERATOR, tmp_path)


def region(
    shape: tuple[int, ...] = (1, 6, 7, 3),
    kernel: tuple[int, ...] = (3, 3, 3, 4),
    dtype: str = "float32",
    known: bool = True,
    **attrs: Any,
) -> Region:
    """One of Relax's own convolutions, in NHWC as TVM's importer writes it unless said otherwise."""
    options = {"data_layout": "NHWC", "kernel_layout": "HWIO", "padding": [1, 1, 1, 1], **attrs}
    value = constant(np.arange(np.prod(kernel)).reshape(kernel).astype(dtype))

    def body(block: Any, x: Any, weights: Any = value) -> list[Any]:
        return [block.emit(relax.op.nn.conv2d(x, weights, **options), "y")]

    return example([shape] if known else [shape, kernel], body, dtype).region


def test_it_claims_both_layouts() -> None:
    nchw = region((1, 3, 6, 7), (4, 3, 3, 3), data_layout="NCHW", kernel_layout="OIHW")
    for claimed in (region(), nchw, region(kernel=(2, 4, 3, 4), padding=[0, 1, 1, 2])):
        assert CONV2D.check(claimed) is None
    (call,) = ACCELERATOR.lower(CONV2D, nchw).calls
    assert call.function == "vanilla_conv2d"
    x, weights, out, *numbers = call.arguments
    assert (x, out, type(weights)) == (Input(0), Output(0), Constant)
    assert numbers == [3, 6, 7, 4, 3, 3]


REFUSALS = {
    "float16 times float16 gives float16, and it computes float32 only": region(dtype="float16"),
    "its weights are computed at run time, wanted constants": region(known=False),
    "layout NHWC to NCHW, wanted NCHW or NHWC, the output like the input": region(out_layout="NCHW"),
    "3 groups, and it has none": region(kernel=(3, 3, 1, 3), groups=3),
    "strides (2, 2) and dilation (1, 1), and it has neither": region(strides=[2, 2]),
    "strides (1, 1) and dilation (2, 2), and it has neither": region(dilation=[2, 2]),
    "padding (0, 0, 0, 0), and it pads 'same', here (1, 1, 1, 1)": region(padding=[0, 0, 0, 0]),
    "kernel 17x1, and its largest is 16x16": region(kernel=(17, 1, 3, 4), padding=[8, 0, 8, 0]),
    "batch 2 of lines of 7, and it takes batch 1 and lines of 1024": region((2, 6, 7, 3)),
    "batch 1 of lines of 1025, and it takes batch 1 and lines of 1024": region((1, 1, 1025, 3)),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_what_it_cannot_do_it_refuses_with_a_reason(reason: str) -> None:
    assert CONV2D.check(REFUSALS[reason]) == reason
