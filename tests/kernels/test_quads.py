"""Convolutions of four channels whose results go far beyond what is kept of them are exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from support.device.boards import board_with_tools
from support.models.kernel_zoo import Array
from support.models.relax_modules import compiled_module, module_of
from uaccel.kernels import Turn
from uaccel.kernels.choice import Selection, target_of
from uaccel.lower.program import Layer
from uaccel.ops.conv import Conv2d, Conv2dAttrs
from uaccel.ops.operator import constant, get
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api import relax
from uaccel.tvm_api.executor import Executor

DEPTH = 64
SHAPE = (1, 1, 2, DEPTH)
MOST = 127 * 128 * DEPTH + 501
"""What a sum can be."""
LAST, BEYOND = (32766 << 35) // MOST, (32770 << 35) // MOST
"""Multipliers by which twice a result of a shift of 5 still fits 16 bits, and no longer does."""
ROWS = [(LAST, 5, 3, -128, 1), (LAST, 5, -128, -128, 0), (BEYOND, 5, 3, -128, 3), (BEYOND, 5, -128, -128, 2)]
ROWS += [(2**31 - 1, 1, 20, -128, 3), (2**31 - 1, 1, -128, -128, 2), (2**31 - 1, 1, 0, 0, 6)]
"""Multiplier, shift, zero point, the lower bound, and the flags of uaccel_dsp_2x4."""


def weights() -> list[Array]:
    ends = np.full((4, 1, 1, DEPTH), 127, np.int8)
    ends[1] = ends[2] = -127
    return [ends, np.array([0, 0, -77, -501], np.int32)]


def convolutions(image: Any) -> Any:
    calls = []
    for multiplier, shift, zero_point, low, _ in ROWS:
        scales = [np.full(4, multiplier, np.int32), np.full(4, -shift, np.int32)]
        attrs = Conv2dAttrs((1, 1), (0, 0, 0, 0), (1, 1), 1, 0, zero_point, low, 127)
        calls.append(get(Conv2d)(image, *map(constant, [*weights(), *scales]), attrs=attrs))
    return relax.Tuple(calls)


def flags(layer: Layer) -> Any:
    return dict(layer.kernel.calls[0].parameters)["finish.flags"]


def test_sums_at_their_ends_are_rounded_and_clamped(tmp_path: Path) -> None:
    board = board_with_tools("mps2_an386")
    samples = [[np.full(SHAPE, value, np.int8)] for value in (-128, 127, 0)]
    samples[2][0][0, 0, 0, :31] = 1
    module = module_of(samples[0], convolutions)
    compiled = compiled_module(module, selection=Selection(target_of(board), Turn(0)))
    assert [flags(layer) for layer in compiled.program.layers] == [row[-1] for row in ROWS]
    run = run_compiled(compiled, board, samples, tmp_path, lambda step: None).run
    for results, sample in zip(run.outputs, samples, strict=True):
        for row, result, value in zip(ROWS, results, Executor(module).run(sample), strict=True):
            assert np.array_equal(result, value), row
