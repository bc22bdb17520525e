"""``--fallback cpu``: whatever a region holds, the CPU computes the same when the accelerator fails; in clean C."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partition.random_relax import OPERATORS, models
from support.device.hostlib import Array, compile_c, write_sources
from support.models.partitioned import accelerator, chain, compile_on, model_of, operation, run
from support.oracle.exactness import assert_same
from uaccel.accelerator import Accelerator, Region, library_call
from uaccel.model import ImportedModel
from uaccel.pipeline import Compiled
from uaccel.tvm_api import FunctionBlock, relax
from uaccel.tvm_api.executor import Executor

OP = relax.op
HEADER = """#ifndef TINY_H
#define TINY_H
#include <stdint.h>
int32_t TVMDeviceTinyActivate(void *device);
int32_t TVMDeviceTinyOpen(void *device);
int32_t TVMDeviceTinyClose(void *device);
int32_t TVMDeviceTinyDeactivate(void *device);
int32_t tiny_fail(void);
#endif
"""
DRIVER = """#include "tiny.h"
int32_t tiny_asked;
int32_t TVMDeviceTinyActivate(void *device) { (void)device; return 0; }
int32_t TVMDeviceTinyOpen(void *device) { (void)device; return 0; }
int32_t TVMDeviceTinyClose(void *device) { (void)device; return 0; }
int32_t TVMDeviceTinyDeactivate(void *device) { (void)device; return 0; }
int32_t tiny_fail(void) { ++tiny_asked; return -7; }
"""


def fail(_: Region) -> Any:
    """A driver that is called, and fails."""
    return library_call("tiny_fail")


def failing(*operators: str, whole: bool = True) -> Accelerator:
    lower = None if whole else fail
    return accelerator("tiny", *(operation(name, lower=lower) for name in operators), stream=fail if whole else None)


class Failing:
    """A model whose accelerator always fails, in this process."""

    def __init__(self, compiled: Compiled, folder: Path, *flags: str) -> None:
        sources = write_sources(compiled, folder)
        (folder / "tiny.h").write_text(HEADER)
        (folder / "tiny.c").write_text(DRIVER)
        library = folder / "model.so"
        compile_c(folder, [*sources, folder / "tiny.c"], library, flags=("-shared", "-fPIC", "-O1", *flags))
        self.signature = compiled.model.signature
        self.library = ctypes.CDLL(str(library))

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        outputs = [np.full(spec.info.shape, 0x55, spec.info.dtype) for spec in self.signature.outputs]
        assert self.run(inputs, outputs) == 0
        return outputs

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> int:
        """What the run function returns."""
        given, wanted = (
            (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values)) for values in (inputs, outputs)
        )
        device = ctypes.c_int(0)
        devices = (ctypes.c_void_p * 1)(ctypes.addressof(device))
        status: int = self.library.tvmgen_model_run(ctypes.byref(given), ctypes.byref(wanted), ctypes.byref(devices))
        return status

    @property
    def asked(self) -> int:
        """How often the driver was called, always in vain."""
        return ctypes.c_int32.in_dll(self.library, "tiny_asked").value


def assert_stands_in(model: ImportedModel, asked: Accelerator, folder: Path) -> Compiled:
    compiled = compile_on(model, [asked], cpu_fallback=True)
    regions = [layer for layer in compiled.program.layers if layer.on_accelerator]
    assert all(layer.otherwise is not None for layer in regions)
    firmware = Failing(compiled, folder)
    generator = np.random.default_rng(3)
    inputs = [
        np.ascontiguousarray(generator.integers(-100, 100, spec.info.shape)).astype(spec.info.dtype)
        for spec in model.signature.inputs
    ]
    for number, (got, wanted) in enumerate(zip(firmware(inputs), Executor(model.module).run(inputs), strict=True)):
        assert_same(got, wanted, f"output {number}")
    assert firmware.asked == len(regions)
    return compiled


@pytest.mark.slow
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(model=models(), able=st.sets(st.sampled_from(OPERATORS), min_size=1))
def test_any_region(model: ImportedModel, able: set[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    assert_stands_in(model, failing(*sorted(able)), tmp_path_factory.mktemp("model"))


def everything(block: FunctionBlock, inputs: list[Any]) -> Any:
    """Several operators, a tuple, views inside and at the end, TVM's C, scratch memory, a constant, two results."""
    x = inputs[0]
    flat = block.emit(OP.reshape(x, (6,)), "flat")
    both = block.emit(OP.concat([flat, flat], axis=0), "both")
    halves = block.emit(OP.split(both, 2, axis=0), "halves")
    one = block.emit(relax.TupleGetItem(halves, 0), "one")
    other = block.emit(relax.TupleGetItem(halves, 1), "other")
    ordered = block.emit(OP.cumsum(one, axis=0), "ordered")
    scaled = block.emit(OP.multiply(other, relax.const(np.arange(6, dtype=np.float32))), "scaled")
    total = block.emit(OP.add(ordered, scaled), "total")
    return relax.Tuple([block.emit(OP.reshape(total, (3, 2)), "shaped"), total])


ALL = ("reshape", "concat", "split", "cumsum", "multiply", "add")


def test_all_kinds_in_one_region(tmp_path: Path) -> None:
    model = model_of(everything)
    compiled = assert_stands_in(model, failing(*ALL), tmp_path)
    (layer,) = compiled.program.layers
    assert layer.otherwise is not None
    assert layer.otherwise_definition is not None
    assert layer.scratch >= layer.otherwise.scratch > 6 * 4
    assert compiled.placement.arena >= layer.scratch


def test_each_alone(tmp_path: Path) -> None:
    """What is a view for the CPU must still give the bytes."""
    compiled = assert_stands_in(model_of(everything), failing(*ALL, whole=False), tmp_path)
    assert all(layer.on_accelerator for layer in compiled.program.layers)


@pytest.mark.parametrize("mode", ["", "-DUACCEL_PLAIN_STATUS"])
def test_a_failure_is_below_zero_and_tells_layer_and_code(mode: str, tmp_path: Path) -> None:
    """The driver's -7; in microTVM's mode -1, and a function tells the rest."""
    compiled = compile_on(model_of(everything), [failing(*ALL, whole=False)], cpu_fallback=False)
    firmware = Failing(compiled, tmp_path, *([mode] if mode else []))
    status = firmware.run([np.zeros((2, 3), np.float32)], [np.zeros((3, 2), np.float32), np.zeros(6, np.float32)])
    assert firmware.asked == 1
    if mode:
        assert status == -1
        status = firmware.library.tvmgen_model_failure()
    first = next(layer.index for layer in compiled.program.layers if layer.on_accelerator)
    assert status == -(1 << 31) + (first << 16) + (-7 & 0xFFFF)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_the_c_is_clean(compiler: str, level: str, tmp_path: Path) -> None:
    for number, fallback in enumerate((True, False)):
        folder = tmp_path / str(number)
        folder.mkdir()
        compiled = compile_on(model_of(everything), [failing(*ALL)], cpu_fallback=fallback)
        (folder / "tiny.h").write_text(HEADER)
        flags = ("-shared", "-fPIC", level)
        compile_c(folder, write_sources(compiled, folder), folder / "model.so", compiler=compiler, flags=flags)


def test_without_it_there_is_no_twin_and_no_c_for_one() -> None:
    model = chain("tanh", "exp")
    asked = accelerator("tiny", operation("tanh", lower=run))
    without, with_it = (compile_on(model, [asked], cpu_fallback=wanted) for wanted in (False, True))
    assert [layer.twin for layer in without.program.layers] == [None, None]
    texts = ["".join(compiled.generated.sources.values()) for compiled in (without, with_it)]
    assert [text.count("on_cpu") > 0 for text in texts] == [False, True]
