"""The driver and the device's model, natively, against numpy."""

from __future__ import annotations

import ctypes
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from uaccel.accelerator import load_accelerator
from uaccel.testing import DriverUnderTest, compile_with_each, run_sanitized

Array = NDArray[Any]

HERE = Path(__file__).parent
ACCELERATOR = load_accelerator(str(HERE.parent))
OK, TIMEOUT, ERROR, GONE, VERSION, BUS, ARGUMENT = 0, 1, 2, 3, 5, 6, 8


RTL = (pytest.mark.slow, pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed"))


@pytest.fixture(scope="module", params=["model", *(pytest.param(way, marks=RTL) for way in ("rtl", "rtl that waits"))])
def built(request: pytest.FixtureRequest) -> DriverUnderTest:
    device, _, waits = request.param.partition(" ")
    return DriverUnderTest(ACCELERATOR, device=device, stalls=7 if waits else None)


@pytest.fixture
def driver(built: DriverUnderTest) -> DriverUnderTest:
    """Activated and open."""
    built.reset()
    assert built.activate() == OK
    assert built.open() == OK
    return built


@dataclass(frozen=True)
class Convolution:
    """The parameters of a call, in its order; height before width."""

    batch: int = 1
    in_ch: int = 3
    image: tuple[int, int] = (7, 6)
    kernels: int = 4
    group: int = 1
    pad: tuple[int, int] = (0, 0)
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)

    @property
    def arguments(self) -> list[int]:
        head = [self.batch, self.in_ch, *self.image, self.kernels, self.group]
        return [*head, *self.pad, *self.kernel, *self.stride]

    def tensors(self, seed: int = 0) -> tuple[Array, Array, Array]:
        """Input, kernel (which the device may not write to), and memory for the result."""
        rng = np.random.default_rng(seed)
        x = rng.integers(-128, 128, (self.batch, self.in_ch, *self.image), np.int8)
        kernel = rng.integers(-128, 128, (self.kernels, self.in_ch // self.group, *self.kernel), np.int8)
        kernel.flags.writeable = False
        room = [e + 2 * p - k for e, p, k in zip(self.image, self.pad, self.kernel, strict=True)]
        rows, columns = (r // s + 1 for r, s in zip(room, self.stride, strict=True))
        return x, kernel, np.full((self.batch, self.kernels, rows, columns), 0x55555555, np.int32)


def sums(case: Convolution, x: Array, kernel: Array) -> Array:
    """In 64 bits; the device's 32 hold them."""
    (pad_y, pad_x), (step_y, step_x) = case.pad, case.stride
    padded = np.pad(x.astype(np.int64), [(0, 0), (0, 0), (pad_y, pad_y), (pad_x, pad_x)])
    seen = np.lib.stride_tricks.sliding_window_view(padded, case.kernel, (2, 3))[:, :, ::step_y, ::step_x]
    parts = zip(np.split(seen, case.group, 1), np.split(kernel.astype(np.int64), case.group), strict=True)
    return np.concatenate([np.einsum("ncyxij,kcij->nkyx", window, weights) for window, weights in parts], 1)


CONVOLUTIONS = {
    "plain": Convolution(),
    "one pixel": Convolution(image=(1, 1), kernel=(1, 1)),
    "padded": Convolution(pad=(1, 1)),
    "padded by more than the kernel": Convolution(pad=(5, 4)),
    "padded one way": Convolution(pad=(0, 2), kernel=(1, 5)),
    "kernel as large as the padded image": Convolution(image=(5, 4), pad=(1, 2), kernel=(7, 8)),
    "strided": Convolution(image=(9, 10), pad=(1, 0), stride=(2, 3)),
    "stride beyond the image": Convolution(stride=(100, 60000)),
    "batch": Convolution(batch=3, pad=(1, 1)),
    "more filters than multipliers": Convolution(kernels=19, in_ch=5),
    "groups": Convolution(in_ch=6, kernels=9, group=3, pad=(1, 1)),
    "groups of more filters than multipliers": Convolution(in_ch=4, kernels=22, group=2),
    "depthwise": Convolution(in_ch=10, kernels=10, group=10, pad=(1, 1), stride=(2, 2)),
    "depthwise with a multiplier": Convolution(in_ch=3, kernels=9, group=3),
    "pointwise": Convolution(in_ch=70, kernels=12, kernel=(1, 1)),
    "filters too large for the chip": Convolution(in_ch=40, image=(18, 17), kernels=9, kernel=(16, 16)),
    "the longest line": Convolution(in_ch=2, image=(3, 1022), kernels=2, pad=(1, 1)),
}


def check_account(driver: DriverUnderTest) -> None:
    """The clock of RTL goes on before a job and after it."""
    assert driver.calls == 1
    assert driver.cycles == driver.busy if driver.device == "model" else 0 < driver.cycles < driver.busy


@pytest.mark.parametrize("case", CONVOLUTIONS.values(), ids=CONVOLUTIONS.keys())
def test_convolution(driver: DriverUnderTest, case: Convolution) -> None:
    x, kernel, out = case.tensors()
    assert driver.call("nuc_fpga_conv2d", x, kernel, out, *case.arguments) == OK, driver.failure
    np.testing.assert_array_equal(out, sums(case, x, kernel))
    check_account(driver)


def test_extreme_sums(driver: DriverUnderTest) -> None:
    case = Convolution(in_ch=300, image=(8, 8), kernels=2, kernel=(8, 8))
    x, _, out = case.tensors()
    kernel = np.full((2, 300, 8, 8), -128, np.int8)
    x[:] = -128
    assert driver.call("nuc_fpga_conv2d", x, kernel, out, *case.arguments) == OK
    assert out.ravel().tolist() == [300 * 64 * 128 * 128] * 2


@pytest.mark.parametrize(("batch", "depth", "units"), [(1, 1, 1), (1, 640, 128), (3, 7, 8), (2, 2050, 17)])
def test_dense(driver: DriverUnderTest, batch: int, depth: int, units: int) -> None:
    rng = np.random.default_rng(depth)
    x, kernel = (rng.integers(-128, 128, (rows, depth), np.int8) for rows in (batch, units))
    kernel.flags.writeable = False
    out = np.zeros((batch, units), np.int32)
    assert driver.call("nuc_fpga_dense", x, kernel, out, batch, depth, units) == OK, driver.failure
    np.testing.assert_array_equal(out, x.astype(np.int64) @ kernel.T.astype(np.int64))
    check_account(driver)


def test_cycles_follow_the_work(driver: DriverUnderTest) -> None:
    """No quicker than all multipliers at every time; with long lines and many filters close to that."""
    case = Convolution(in_ch=16, image=(32, 34), kernels=16, kernel=(3, 3))
    x, kernel, out = case.tensors()
    assert driver.call("nuc_fpga_conv2d", x, kernel, out, *case.arguments) == OK
    least = out.size * kernel[0].size / 64
    assert least < driver.cycles
    assert driver.device == "rtl" or driver.cycles < 1.5 * least + 200  # it computes or reads, one after the other


def test_activation_says_what_it_found(driver: DriverUnderTest) -> None:
    assert driver.log == "nuc_fpga found, version 0x00010000"
    assert (driver.close(), driver.deactivate()) == (OK, OK)


# What activating it, a first job and a second one return, and how the words of the last failure begin.
FAULTS: dict[str, tuple[int, int, int, str]] = {
    "hang": (OK, TIMEOUT, TIMEOUT, "the device did not finish: register 0x00000010"),
    "hang@2": (OK, OK, TIMEOUT, "the device did not finish: register 0x00000010"),
    "error@2": (OK, OK, ERROR, "nuc_fpga reports error 0x00000003"),
    "vanish": (GONE, GONE, GONE, "the device does not answer: register 0x00000010"),
    "vanish@2": (OK, OK, GONE, "the device does not answer: register 0x00000010"),
    "dma": (OK, BUS, BUS, "nuc_fpga was refused access to memory"),
    "dma@20": (OK, OK, BUS, "nuc_fpga was refused access to memory"),
}

# Its memory refuses everything, in smaller pieces than the model asks for.
FAULTS_OF_RTL = {
    "error@2": (OK, OK, BUS, "nuc_fpga was refused access to memory"),
    "dma@20": (OK, BUS, BUS, "nuc_fpga was refused access to memory"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_errors(built: DriverUnderTest, fault: str) -> None:
    case = Convolution(in_ch=1, image=(5, 5), kernels=1)
    active, first, second, words = FAULTS_OF_RTL.get(fault, FAULTS[fault]) if built.device == "rtl" else FAULTS[fault]
    built.let_fail(fault)
    assert built.activate() == active
    for wanted in (first, second):
        x, kernel, out = case.tensors()
        assert built.call("nuc_fpga_conv2d", x, kernel, out, *case.arguments) == wanted
        if wanted == OK:
            np.testing.assert_array_equal(out, sums(case, x, kernel))
    assert built.failure.startswith(words)
    assert built.calls == [first, second].count(OK)


def test_another_version_is_refused(built: DriverUnderTest) -> None:
    built.let_fail("version")
    assert built.activate() == VERSION
    assert built.failure == "nuc_fpga has version 0x00020000, the driver knows 0x0001xxxx"


IMPOSSIBLE = {
    "batch": Convolution(batch=0),
    "negative": Convolution(image=(-7, -6)),
    "padding": Convolution(pad=(-1, 0)),
    "stride": Convolution(stride=(0, 1)),
    "no window fits": Convolution(kernel=(8, 3)),
    "kernel": Convolution(in_ch=1, image=(30, 30), kernel=(17, 1)),
    "line": Convolution(in_ch=1, image=(1, 1024), pad=(0, 1), kernel=(1, 1)),
    "no group": Convolution(group=0),
    "group of channels": Convolution(in_ch=3, kernels=4, group=2),
    "group of kernels": Convolution(in_ch=2, kernels=3, group=2),
    "size": Convolution(batch=65535, in_ch=65535),
}


@pytest.mark.parametrize("case", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_impossible_parameters(driver: DriverUnderTest, case: Convolution) -> None:
    x, kernel = np.zeros(1024, np.int8), np.zeros(1024, np.int8)
    out = np.full(4096, 7, np.int32)
    assert driver.call("nuc_fpga_conv2d", x, kernel, out, *case.arguments) == ARGUMENT
    assert driver.failure.startswith("nuc_fpga")
    assert (out == 7).all()
    assert driver.calls == 0


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, -1), (65536, 1, 1)])
def test_impossible_matrices(driver: DriverUnderTest, sizes: tuple[int, int, int]) -> None:
    x, out = np.zeros(1, np.int8), np.zeros(1, np.int32)
    assert driver.call("nuc_fpga_dense", x, x, out, *sizes) == ARGUMENT


@pytest.mark.parametrize("which", [0, 1, 2])
def test_memory_that_the_device_does_not_reach(driver: DriverUnderTest, which: int) -> None:
    case = Convolution()
    tensors: list[Any] = list(case.tensors())
    elsewhere = tensors[which].copy()
    tensors[which] = ctypes.c_void_p(elsewhere.ctypes.data)
    assert driver.call("nuc_fpga_conv2d", *tensors, *case.arguments) == BUS
    assert driver.failure == "nuc_fpga: a tensor lies in memory that devices do not reach"


def test_results_do_not_go_into_constants(driver: DriverUnderTest) -> None:
    x, kernel, out = Convolution().tensors()
    out.flags.writeable = False
    assert driver.call("nuc_fpga_conv2d", x, kernel, out, *Convolution().arguments) == BUS
    assert driver.failure == "nuc_fpga was refused access to memory"


def test_compilers_have_nothing_to_say(tmp_path: Path) -> None:
    assert compile_with_each(ACCELERATOR, tmp_path)


def test_any_program_of_the_registers_ends_well(tmp_path: Path) -> None:
    """Under the sanitizers: an error or a result, and no access outside its memory."""
    done, refused, impossible = map(int, run_sanitized(ACCELERATOR, HERE / "fuzz.c", tmp_path, 4000, 1).split())
    assert min(done, refused, impossible) > 200
