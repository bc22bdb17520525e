"""Kernels for any CPU: which layers they take, and nothing undefined in their C."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.models.kernel_zoo import samples_of, zoo_of
from support.models.relax_modules import compiled_module
from support.models.stateful import Lstm, Svdf
from support.oracle.sanitized import POOL, run_sanitized
from uaccel.codegen.options import EmitOptions
from uaccel.kernels import Target, Turn, candidates
from uaccel.kernels.choice import Selection
from uaccel.memory import Pool
from uaccel.model import TensorInfo
from uaccel.ops.conv import Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.exact import FLOAT32
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import Operand, Site, get
from uaccel.pipeline import compile_model
from uaccel.tvm_api.executor import Executor

ANY = Target.of("native", ["embedded"])
FIRST = Selection(ANY, Turn(0))
ARENA = EmitOptions(pools=(Pool(POOL),))
ATTRS = FullyConnectedAttrs(0, 0, -32768, 32767)


def dense(bias: Any, bits: str, attrs: FullyConnectedAttrs = ATTRS, rows: int = 1) -> Site[FullyConnectedAttrs]:
    weights = np.full((len(bias), 4), 100, np.int8)
    arrays = (weights, np.array(bias, bits), np.full(len(bias), 3 << 29, np.int32), np.full(len(bias), -9, np.int32))
    constants = [Operand(TensorInfo(array.shape, str(array.dtype)), array) for array in arrays]
    return Site(attrs, (Operand(TensorInfo((rows, 4), "int16")), *constants), (TensorInfo((rows, len(bias)), "int16"),))


@pytest.mark.parametrize(
    ("site", "function"),
    [
        (dense([5], "int64"), "uaccel_fully_connected_blocked_s16"),
        (dense([5], "int64", rows=3), "uaccel_rows_blocked_s16"),
        (dense([2**31], "int64"), "uaccel_fully_connected_s16"),
        (dense([5], "int32"), "uaccel_fully_connected_blocked_s16_acc32"),
        (dense([2**30], "int32"), "uaccel_fully_connected_s16_acc32"),
        (dense([5], "int32", replace(ATTRS, input_zero_point=1)), "uaccel_fully_connected_s16_acc32"),
        (dense([5], "int32", replace(ATTRS, rounding=FLOAT32)), "uaccel_fully_connected_blocked_s16_float32"),
        (dense([5], "int64", replace(ATTRS, rounding=FLOAT32)), "uaccel_fully_connected_blocked_s16_float32"),
        (dense([2**30], "int64", replace(ATTRS, rounding=FLOAT32)), "uaccel_fully_connected_s16_float32"),
    ],
)
def test_sums_that_fit_decide(site: Site[FullyConnectedAttrs], function: str) -> None:
    assert candidates(get(FullyConnected), site, ANY)[0].calls[0].function == function


@pytest.mark.parametrize(("units", "effort"), [(1, 8.0), (6, 8 / 6), (8, 1.0), (9, 16 / 9)])
def test_units_that_fill_up_eight_are_work(units: int, effort: float) -> None:
    assert candidates(get(FullyConnected), dense([0] * units, "int64"), ANY)[0].effort == pytest.approx(effort)


@pytest.mark.parametrize(("channels", "offered"), [(3, False), (4, True), (7, True)])
def test_depthwise_channels_need_no_multiple_of_four(channels: int, offered: bool) -> None:
    scales = [np.full(channels, value, np.int32) for value in (7, 1 << 30, -9)]
    arrays: list[NDArray[Any]] = [np.ones((1, 1, channels), np.int8), *scales]
    operands = [Operand(TensorInfo(array.shape, str(array.dtype)), array) for array in arrays]
    info = TensorInfo((1, 2, 2, channels), "int8")
    attrs = Conv2dAttrs((1, 1), (0, 0, 0, 0), (1, 1), channels, 0, 0, -128, 127)
    kernels = candidates(get(DepthwiseConv2d), Site(attrs, (Operand(info), *operands), (info,)), ANY)
    assert (kernels[0].family == "blocked") == offered


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_sanitizers_find_nothing(seed: int) -> None:
    infos, module = zoo_of(seed)
    samples = samples_of(seed, infos)
    for results, sample in zip(run_sanitized(compiled_module(module, ARENA, FIRST), samples), samples, strict=True):
        for got, wanted in zip(results, Executor(module).run(sample), strict=True):
            assert np.array_equal(got, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("layer", [Svdf(), Svdf("int8", rank=1), Lstm(units=9), Lstm("int16", units=9)])
def test_sanitizers_find_nothing_in_what_lasts(layer: Svdf | Lstm, tmp_path: Path) -> None:
    path = tmp_path / "layer.tflite"
    path.write_bytes(layer.build())
    compiled = compile_model(path, board="host", options=ARENA, selection=FIRST)
    assert all(each.kernel.family == "blocked" for each in compiled.program.layers)
    inputs = [[np.zeros(spec.info.shape, spec.info.dtype) for spec in compiled.model.signature.inputs]]
    run_sanitized(compiled, inputs)
