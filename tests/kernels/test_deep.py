"""Sums too deep for 24 bits stay with the fast kernels of Arm's DSP extension, and are exact at their ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.kernel_zoo import Array
from support.models.relax_modules import compiled_module, module_of
from uaccel.kernels import Work
from uaccel.kernels.choice import Option, Selection, Selector, target_of
from uaccel.kernels.registry import DeclinedError
from uaccel.kernels.weight_packing import PAIR_LIMIT, ends_apart
from uaccel.ops.conv import Conv2d, Conv2dAttrs
from uaccel.ops.exact import FLOAT32, TFLITE
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import constant, get
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api import relax
from uaccel.tvm_api.executor import Executor

DEPTH = 2107
PIXELS = (1, 2, 3, DEPTH)
"""Whose number is odd, and whose words end amid a pixel."""
FORMS = {
    ("uaccel_conv2d_dsp_s8_deep", "uaccel_fully_connected_dsp_s8_deep"): (TFLITE, 11),
    ("uaccel_conv2d_dsp_s8_deep", "uaccel_fully_connected_s8_dots_dsp_deep"): (TFLITE, 11),
    ("uaccel_conv2d_dsp_s8_deep_float32", "uaccel_fully_connected_dsp_s8_deep_float32"): (FLOAT32, 11),
    ("uaccel_conv2d_dsp_s8_pair_deep", "uaccel_fully_connected_s8_dots_dsp_deep"): (TFLITE, 14),
    ("uaccel_conv2d_dsp_s8_pair_deep_float32", "uaccel_fully_connected_dsp_s8_deep_float32"): (FLOAT32, 9),
}
"""How each rounds, and the units: one or two behind fours are a pair of the convolution's, and rows by themselves."""


def weights(units: int) -> Array:
    """All at an end, of one sign and of both in turn; of few, of half and of all inputs; and drawn ones."""
    rows = np.random.default_rng(4).integers(-127, 128, (units, DEPTH)).astype(np.int8)
    rows[:6] = 127
    rows[1:6:2] = -127
    rows[2, 1::2] = -127
    rows[3, DEPTH // 2 :] = 127
    rows[4, :600] = rows[5, 600:] = 0
    return rows


def samples(rows: Array) -> list[list[Array]]:
    """With each of them, the inputs that bring sums to their ends; channels of them, side by side."""
    of_rows = [np.where(row > 0, high, low).astype(np.int8) for row in rows for low, high in ((-128, 127), (127, -128))]
    every = np.stack(of_rows)
    images = [np.resize(every[start:], PIXELS) for start in range(0, len(every), 5)]
    return [[image, every[number][None]] for number, image in enumerate(images)]


def layers(rounding: str, rows: Array) -> Any:
    scales = [np.full(len(rows), 1 << 30 | 77, np.int32), np.full(len(rows), -17, np.int32)]
    bias = np.linspace(-(1 << 23), 1 << 23, len(rows)).astype(np.int32)

    def build(image: Any, row: Any) -> Any:
        given = [constant(value) for value in (bias, *scales)]
        ends = (-3, 5, -128, 127, rounding)
        conv = Conv2dAttrs((1, 1), (0, 0, 0, 0), (1, 1), 1, *ends)
        pixels = get(Conv2d)(image, constant(rows[:, None, None]), *given, attrs=conv)
        units = get(FullyConnected)(row, constant(rows), *given, attrs=FullyConnectedAttrs(*ends))
        return relax.Tuple([pixels, units])

    return build


def among(functions: tuple[str, str]) -> Selector:
    """Picks the kernel that is one of these."""

    def pick(site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
        return next(at for at, option in enumerate(options) if option.functions[0] in functions), ""

    return pick


@pytest.mark.parametrize("board_name", ["mps2_an386", "mps2_an505"])
@pytest.mark.parametrize("forms", FORMS, ids=["+".join(forms) for forms in FORMS])
def test_deep_sums_are_exact_at_their_ends(forms: tuple[str, str], board_name: str, tmp_path: Path) -> None:
    rounding, units = FORMS[forms]
    board, rows = board_with_tools(board_name), weights(units)
    given = samples(rows)
    module = module_of(given[0], layers(rounding, rows))
    compiled = compiled_module(module, selection=Selection(target_of(board), among(forms)))
    assert tuple(layer.kernel.calls[0].function for layer in compiled.program.layers) == forms
    run = run_compiled(compiled, board, given, tmp_path, lambda step: None).run
    for number, (results, sample) in enumerate(zip(run.outputs, given, strict=True)):
        for form, result, value in zip(forms, results, Executor(module).run(sample), strict=True):
            assert np.array_equal(result, value), (number, form)


@pytest.mark.parametrize(("depth", "turn", "apart"), [(516, 48, 0), (517, 48, 480), (2048, 48, 480)])
def test_ends_are_as_far_apart_as_sums_fit(depth: int, turn: int, apart: int) -> None:
    rows, none = np.full((2, depth), 127, np.int8), np.zeros(2, np.int64)
    assert ends_apart(rows, none, turn) == apart
    assert 127 * 128 * 516 < PAIR_LIMIT <= 127 * 128 * 517


@pytest.mark.parametrize(("heavy", "apart"), [((0, 1), 600), ((1, 2), 300)])
def test_ends_are_counted_from_the_last(heavy: tuple[int, int], apart: int) -> None:
    """Of three turns two are heavy; the first is by itself where there are two between ends."""
    rows = np.ones((2, 3, 300), np.int8)
    rows[:, heavy] = 127
    assert ends_apart(rows.reshape(2, 900), np.zeros(2, np.int64), 300) == apart


def test_turns_that_are_longer_than_sums_fit_are_declined() -> None:
    rows, none = np.full((2, 2048), 127, np.int8), np.zeros(2, np.int64)
    with pytest.raises(DeclinedError, match=r"^a sum of 2048 products may pass 8,388,608$"):
        ends_apart(rows, none, 600)
