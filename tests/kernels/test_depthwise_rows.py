"""3x3 depthwise windows by planes in single precision: exact for odd and even sizes and borders, in place and not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.kernel_zoo import Array, Zoo, samples_of
from support.models.overlapped import compiled_overlapped
from support.models.relax_modules import compiled_module, module_of
from uaccel.kernels import Option, Target, Work, candidates
from uaccel.kernels.choice import Selection, target_of
from uaccel.model import TensorInfo
from uaccel.ops.conv import Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.exact import FLOAT32, TFLITE
from uaccel.ops.operator import Operand, Site, get
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api import relax
from uaccel.tvm_api.executor import Executor

Row = tuple[tuple[int, ...], int, tuple[int, ...]]
ROWS: list[Row] = [
    ((1, 8, 8, 8), 1, (1, 1, 1, 1)),
    ((1, 9, 7, 4), 1, (1, 1, 1, 1)),
    ((2, 7, 9, 6), 2, (1, 1, 1, 1)),
    ((1, 8, 8, 5), 2, (0, 0, 1, 1)),
    ((1, 11, 5, 12), 1, (0, 0, 0, 0)),
    ((1, 3, 20, 4), 1, (1, 0, 1, 0)),
    ((1, 20, 3, 4), 1, (0, 1, 2, 1)),
    ((2, 16, 16, 4), 1, (1, 1, 1, 1)),
]
"""Images, strides and paddings."""


class Single(Zoo):
    """As ONNX and PyTorch models have them: biases with rests in every other layer, and scales that are nought or far
    off now and then."""

    def _scales(self, count: int, terms: int) -> tuple[Any, Any]:
        multiplier = self.random.integers(2**30, 2**31, count)
        shift = -7 - np.floor(np.log2(terms) / 2) + self.random.integers(-1, 2, count)
        shift[0], multiplier[-1] = self.one_of(-31, 3, shift[0]), self.one_of(0, multiplier[-1])
        rests = -1 if self.rests and self.integer(0, 1) else ~127
        return (multiplier & rests).astype(np.int32), shift.astype(np.int32)

    def _bias(self, channels: int, terms: int) -> Any:
        return self.random.integers(-terms * 4000, terms * 4000 + 1, channels).astype(np.int32)


def only_rows(site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
    return next((i for i, option in enumerate(options) if "rows" in option.label), 0), ""


def layer(zoo: Zoo, image: Any, row: Row, number: int) -> Any:
    (*_, channels), stride, padding = row
    points = ((-128, 5, 127)[number % 3], (4, -128, 127)[number // 2 % 3])
    attrs = Conv2dAttrs((stride, stride), padding, (1, 1), channels, *points, -128, 127, FLOAT32)
    return get(DepthwiseConv2d)(image, *zoo._weights(channels, (3, 3, channels), 9), attrs=attrs)


def site_of(rounding: str, clamp: tuple[int, int] = (-128, 127)) -> Site[Conv2dAttrs]:
    constants: list[Array] = [np.ones((3, 3, 8), np.int8), *(np.full(8, n, np.int32) for n in (0, (1 << 30) + 1, -8))]
    operands = [TensorInfo((1, 8, 8, 8), "int8"), *(TensorInfo(c.shape, str(c.dtype)) for c in constants)]
    given = tuple(map(Operand, operands, [None, *constants]))
    attrs = Conv2dAttrs((1, 1), (1, 1, 1, 1), (1, 1), 8, 0, 0, *clamp, rounding)
    return Site(attrs, given, (TensorInfo((1, 8, 8, 8), "int8"),))


@pytest.mark.parametrize(
    ("site", "features", "offered"),
    [
        (site_of(FLOAT32), ["dsp", "fpu"], ["uaccel_depthwise_rows_dsp_s8_float32"]),
        (site_of(FLOAT32), ["dsp"], []),
        (site_of(TFLITE), ["dsp"], ["uaccel_depthwise_rows_dsp_s8"]),
        (site_of(FLOAT32, (0, 127)), ["dsp", "fpu"], []),
    ],
    ids=["single precision", "no FPU", "as TFLite rounds", "clamped"],
)
def test_single_precision_needs_an_fpu(site: Site[Conv2dAttrs], features: list[str], offered: list[str]) -> None:
    kernels = candidates(get(DepthwiseConv2d), site, Target.of("cortex-m4", features))
    assert [name for kernel in kernels if "rows" in (name := kernel.calls[0].function)] == offered


@pytest.mark.slow
@pytest.mark.parametrize("overlapped", [False, True])
@pytest.mark.parametrize("name", ["mps2_an386", "mps2_an500", "mps2_an505"])
def test_they_give_the_exact_result(name: str, overlapped: bool, tmp_path: Path) -> None:
    """The last layers are in a chain, where results lie over what is read."""
    board, zoo = board_with_tools(name), Single(7)
    infos = [TensorInfo(shape, "int8") for shape, *_ in 2 * ROWS]

    def build(*images: Any) -> Any:
        calls = [layer(zoo, image, row, n) for n, (image, row) in enumerate(zip(images, 2 * ROWS, strict=True))]
        if not overlapped:
            calls.append(layer(zoo, layer(zoo, calls[0], ROWS[0], 1), ROWS[0], 2))
        return relax.Tuple(calls)

    module = module_of([np.zeros(info.shape, np.int8) for info in infos], build)
    selection = Selection(target_of(board), only_rows)
    compiled = compiled_overlapped(module, selection) if overlapped else compiled_module(module, selection=selection)
    functions = {each.kernel.calls[0].function for each in compiled.program.layers}
    assert functions == {"uaccel_depthwise_rows_dsp_s8_float32"}
    samples = samples_of(5, infos)
    run = run_compiled(compiled, board, samples, tmp_path / "p", lambda step: None).run
    for sample, results in zip(samples, run.outputs, strict=True):
        for number, (result, value) in enumerate(zip(results, Executor(module).run(sample), strict=True)):
            assert np.array_equal(result, value), number
