"""Layers of one operator: compiled for a machine, run by the driver over the device's model, and by TVM."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import runpy
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from uaccel.accelerator import Constant, Region, constant, tensor
from uaccel.testing import Example, example, host_hal, operator

Array = NDArray[Any]
FOLDER = Path(__file__).resolve().parents[1]
STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror")
KIB = 1024
PLACES = {"weights": 0x80000, "parameters": 0x100000, "output": 0x120000}  # in the memory that the device reaches
MARGIN = 64

LARGE: tensor.Machine = runpy.run_path(str(FOLDER / "accelerator.py"))["MACHINE"]


def machines() -> dict[str, tensor.Machine]:
    """The one in accelerator.py, and others that differ in numbers alone."""
    return {
        "matrix8": LARGE,
        "small": dataclasses.replace(
            LARGE,
            activations=tensor.Memory(2 * KIB),
            weights=tensor.Memory(2 * KIB, alignment=64),
            accumulators=tensor.Memory(1 * KIB, alignment=32),
            parameters=tensor.Memory(192, alignment=32),
            load=tensor.Dma(bytes_per_cycle=2, start_up=40),
            store=tensor.Dma(bytes_per_cycle=2, start_up=40),
        ),
        "wide": dataclasses.replace(
            LARGE,
            columns=16,
            depth=4,
            activations=tensor.Memory(4 * KIB, banks=2, alignment=8),
            weights=tensor.Memory(4 * KIB, banks=2, alignment=64),
            accumulators=tensor.Memory(4 * KIB, banks=2, alignment=64),
            parameters=tensor.Memory(768, banks=2, alignment=64),
        ),
    }


def macros(machine: tensor.Machine) -> list[str]:
    """The model's numbers for a machine; of its DMA there is one kind, and of banks one number."""
    assert machine.load == machine.store
    numbers = {
        "COLUMNS": machine.columns,
        "DEPTH": machine.depth,
        "BANKS": machine.activations.banks,
        "ACTIVATION_BYTES": machine.activations.bytes,
        "WEIGHT_BYTES": machine.weights.bytes,
        "ACCUMULATOR_BYTES": machine.accumulators.bytes,
        "PARAMETER_BYTES": machine.parameters.bytes,
        "ACTIVATION_ALIGNMENT": machine.activations.alignment,
        "DMA_BYTES": machine.load.bytes_per_cycle,
        "DMA_START_UP": machine.load.start_up,
        "START_UP": machine.start_up,
        "FILL_BYTES": machine.fill_bytes_per_cycle,
    }
    return [f"-DMATRIX8_{name}={number}u" for name, number in numbers.items()]


def cc(*arguments: str | Path) -> None:
    done = subprocess.run(["gcc", *STRICT, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


@dataclass(frozen=True)
class Case:
    """A layer and its input."""

    example: Example
    input: Array

    @property
    def region(self) -> Region:
        return self.example.region


def layer(name: str, data: Array, weights: Array, finish: Sequence[Array], attrs: Any) -> Case:
    """One call of an operator; ``finish``: bias, multipliers, shifts."""
    constants = [constant(np.ascontiguousarray(value)) for value in (weights, *finish)]

    def build(block: Any, x: Any) -> list[Any]:
        return [block.emit(operator(name)(x, *constants, attrs=attrs), "layer")]

    return Case(example([data.shape], build, str(data.dtype)), data)


@dataclass(frozen=True)
class Run:
    """How a layer ended."""

    status: int
    output: Array
    calls: int
    cycles: int
    said: str


class Bench:
    """Driver and device of one machine in this process."""

    def __init__(self, machine: tensor.Machine, folder: Path) -> None:
        self.machine, self.folder = machine, folder
        folders, hal = host_hal()
        wait = [path for path in hal if path.name != "pause.c"]
        self.includes = [f"-I{path}" for path in (FOLDER / "driver", *folders)]
        self.library = folder / f"lib{machine.columns}x{machine.depth}_{machine.activations.bytes}.so"
        sources = [*FOLDER.glob("driver/*.c"), *FOLDER.glob("device/*.c"), FOLDER / "tests" / "harness.c", *wait]
        flags = ["-O1", "-shared", "-fPIC", "-DUACCEL_ACCOUNTING", *macros(machine), *self.includes]
        cc(*flags, *sources, "-o", self.library)
        self.c = ctypes.CDLL(str(self.library))
        self.c.test_memory.restype = self.c.uaccel_hal_device.restype = ctypes.c_void_p
        self.c.test_cycles.restype = ctypes.c_uint64
        self.c.test_said.restype = self.c.test_reset.restype = ctypes.c_char_p
        self.layers = 0

    def text(self, case: Case) -> str:
        lowered = tensor.convolution(self.machine)(case.region)
        assert lowered.source is not None
        return lowered.source.source

    def run(self, case: Case, faults: str = "") -> Run:
        """The generated function over the driver; bytes beside the output must stay as they are."""
        lowered = tensor.convolution(self.machine)(case.region)
        (call,) = lowered.calls
        function = self._compiled(lowered.source.source if lowered.source else "", call.function)
        memory = np.ctypeslib.as_array(ctypes.cast(self.c.test_memory(), ctypes.POINTER(ctypes.c_uint8)), (2000000,))
        memory[:] = 0xA5
        places = {"input": 0, **PLACES}
        constants = {a.role: a.data for a in call.arguments if isinstance(a, Constant)}
        for name, data in {"input": case.input, **constants}.items():
            raw = np.frombuffer(data.tobytes(), np.uint8)
            memory[places[name] : places[name] + raw.size] = raw
        wrong = self.c.test_reset(faults.encode())
        assert wrong is None, wrong
        device = ctypes.c_void_p(self.c.uaccel_hal_device(b"matrix8"))
        status = self.c.TVMDeviceMatrix8Activate(device)
        if status == 0:
            pointers = [ctypes.c_void_p(self.c.test_memory() + place) for place in places.values()]
            status = function(*pointers)
        shape, end = case.region.output.shape, PLACES["output"] + case.region.output.size
        output = memory[PLACES["output"] : end].view(np.int8).reshape(shape).copy()
        beside = np.concatenate([memory[PLACES["output"] - MARGIN : PLACES["output"]], memory[end : end + MARGIN]])
        assert (beside == 0xA5).all(), "something was written beside the output"
        return Run(status, output, self.c.test_calls(), self.c.test_cycles(), self.c.test_said().decode())

    def _compiled(self, source: str, name: str) -> Any:
        self.layers += 1
        path = self.folder / f"{self.library.stem}_layer{self.layers}.c"
        shown = source.replace(f"static int32_t {name}(", f"int32_t {name}(")
        prototype = f"int32_t {name}(const int8_t *, const int8_t *, const int32_t *, int8_t *);\n"
        path.write_text(f'#include "matrix8.h"\n{prototype}{shown}')
        library = path.with_suffix(".so")
        cc("-O0", "-shared", "-fPIC", *self.includes, path, self.library, "-o", library)
        return ctypes.CDLL(str(library))[name]


@pytest.fixture(scope="session")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Bench]:
    """By the machine's name."""
    folder = tmp_path_factory.mktemp("matrix8")
    return functools.cache(lambda name: Bench(machines()[name], folder))


@pytest.fixture(scope="session")
def layers() -> Any:
    """What makes cases: ``layers.conv2d``, ``layers.fully_connected``."""

    class Layers:
        conv2d = staticmethod(functools.partial(layer, "conv2d"))
        depthwise = staticmethod(functools.partial(layer, "depthwise_conv2d"))
        fully_connected = staticmethod(functools.partial(layer, "fully_connected"))
        exact = staticmethod(lambda case: case.example.expected([case.input])[0])

    return Layers
