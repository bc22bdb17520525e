"""Sums by one rounding: offered where all pairs of values show it exact, and the same bytes on the board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.relax_modules import compiled_module, module_of
from uaccel.kernels import Option, Target, Work, candidates
from uaccel.kernels.arm_dsp_elementwise import linear_form
from uaccel.kernels.choice import Selection, target_of
from uaccel.model import TensorInfo
from uaccel.ops.binary import Add, AddAttrs, Sub
from uaccel.ops.operator import Operand, Site, get
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api import relax
from uaccel.tvm_api.executor import Executor

M4 = Target.of("cortex-m4", ["dsp"])
RECTIFIED = AddAttrs(20, -128, 1623821475, -2, 4, 1 << 30, 0, -128, 1098017566, -17, -128, 127)
SHALLOW = AddAttrs(20, 38, 1657902019, -2, -2, 1 << 30, 0, -128, 1835721671, -18, -128, 127)
TIES = replace(
    RECTIFIED, multiplier1=1 << 30, shift1=0, output_multiplier=1 << 30, output_shift=-19, output_zero_point=0
)
"""Halves go away from zero, which one rounding cannot do."""
NOT_EXACT = [TIES, replace(RECTIFIED, clamp_max=100), replace(RECTIFIED, output_shift=-15)]


@pytest.mark.parametrize("attrs", [RECTIFIED, SHALLOW])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_form_rounds_as_real_numbers_do(attrs: AddAttrs, sign: int) -> None:
    """Away from where halves lie, within the steps of the operator's own arithmetic."""
    form = linear_form(attrs, sign)
    assert form is not None
    first, second, start = form
    x, y = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128), indexing="ij")
    result = np.clip((start + (first * x >> 8) + (second * y >> 8)) >> 21, -128, 127)
    scale1 = attrs.multiplier1 / 2**31 * 2.0**attrs.shift1
    scale2 = sign * attrs.multiplier2 / 2**31 * 2.0**attrs.shift2
    total = (x - attrs.zero_point1) * scale1 + (y - attrs.zero_point2) * scale2
    real = total * 2.0 ** (20 + attrs.output_shift) * attrs.output_multiplier / 2**31 + attrs.output_zero_point
    clear = np.abs(real - np.floor(real) - 0.5) > 1e-4
    assert clear.mean() > 0.99
    assert np.array_equal(result[clear], np.clip(np.floor(real + 0.5), -128, 127)[clear])


@pytest.mark.parametrize("attrs", NOT_EXACT)
def test_what_would_not_be_exact_is_not_offered(attrs: AddAttrs) -> None:
    assert linear_form(attrs, 1) is None
    assert functions_of(attrs, (1, 4), (1, 4)) == ["uaccel_add_dsp_s8", "uaccel_add_s8"]


def test_inputs_that_broadcast_take_another_kernel() -> None:
    assert "uaccel_add_linear_dsp_s8" in functions_of(RECTIFIED, (1, 4), (1, 4))
    assert functions_of(RECTIFIED, (1, 4), (1, 1)) == ["uaccel_add_dsp_s8", "uaccel_add_s8"]


def functions_of(attrs: AddAttrs, *shapes: tuple[int, ...]) -> list[str]:
    operands = tuple(Operand(TensorInfo(shape, "int8"), None) for shape in shapes)
    site = Site(attrs, operands, (TensorInfo(shapes[0], "int8"),))
    return [kernel.calls[0].function for kernel in candidates(get(Add), site, M4)]


def only_linear(site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
    return next(i for i, option in enumerate(options) if "linear" in option.label), ""


@pytest.mark.slow
def test_it_gives_the_exact_result_for_all_pairs_of_values(tmp_path: Path) -> None:
    """And for few elements, where four at a time leave some."""
    board = board_with_tools("mps2_an386")
    every = np.arange(256) - 128
    pairs = [every.repeat(256).astype(np.int8), np.tile(every, 256).astype(np.int8)]
    sample = [array.reshape(1, -1) for array in pairs]
    for count in (1, 3, 7):
        sample += [array[300 : 300 + count].reshape(1, count) for array in pairs]

    def build(*inputs: Any) -> Any:
        calls = [get(operator)(*inputs[:2], attrs=attrs) for operator in (Add, Sub) for attrs in (RECTIFIED, SHALLOW)]
        calls += [get(Sub)(x, y, attrs=RECTIFIED) for x, y in zip(inputs[2::2], inputs[3::2], strict=True)]
        return relax.Tuple(calls)

    module = module_of(sample, build)
    compiled = compiled_module(module, selection=Selection(target_of(board), only_linear))
    outputs = run_compiled(compiled, board, [sample], tmp_path / "p", lambda step: None).run.outputs[0]
    for result, value in zip(outputs, Executor(module).run(sample), strict=True):
        assert np.array_equal(result, value)
