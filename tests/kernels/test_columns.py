"""Convolutions that widen columns once: exact for odd sizes and borders, and as close to their input as stated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.kernel_zoo import Array, Zoo, samples_of
from support.models.overlapped import compiled_overlapped, stated
from support.models.relax_modules import compiled_module, module_of
from uaccel.kernels import Option, Work
from uaccel.kernels.choice import Selection, target_of
from uaccel.lower.program import Layer
from uaccel.model import TensorInfo
from uaccel.ops.conv import Conv2d, Conv2dAttrs
from uaccel.ops.operator import constant, get
from uaccel.ops.storage import pairs_of_rows_behind
from uaccel.pipeline import Compiled
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api import relax
from uaccel.tvm_api.executor import Executor

Row = tuple[tuple[int, ...], int, tuple[int, int], tuple[int, int], tuple[int, ...]]
LAYERS: list[Row] = [
    ((1, 8, 8, 16), 16, (3, 3), (1, 1), (1, 1, 1, 1)),
    ((2, 7, 11, 4), 8, (3, 3), (1, 1), (1, 1, 1, 1)),
    ((1, 11, 19, 8), 4, (3, 3), (2, 2), (0, 0, 1, 1)),
    ((1, 9, 5, 12), 12, (5, 5), (1, 1), (2, 2, 2, 2)),
    ((2, 6, 9, 4), 4, (2, 4), (1, 3), (0, 3, 1, 0)),
    ((1, 4, 2, 8), 8, (3, 3), (1, 1), (2, 3, 2, 3)),
    ((1, 12, 3, 20), 4, (1, 2), (2, 1), (0, 0, 0, 0)),
    ((1, 5, 17, 4), 20, (4, 3), (1, 1), (3, 0, 0, 2)),
]
"""Images, output channels, windows, strides and paddings."""


def weights_of(zoo: Zoo, row: Row) -> list[Any]:
    """Scales that fast kernels take, one channel counting for nothing."""
    (*_, depth), channels, window, *_ = row
    terms = window[0] * window[1] * depth
    multiplier = zoo.random.integers(2**30, 2**31, channels).astype(np.int32)
    multiplier[1] = 0
    shift = -7 - np.floor(np.log2(terms) / 2) + zoo.random.integers(-1, 2, channels)
    bias = zoo.random.integers(-terms * 4000, terms * 4000 + 1, channels).astype(np.int32)
    arrays = (zoo.int8(channels, *window, depth).clip(-127, None), bias, multiplier, shift.astype(np.int32))
    return [constant(array) for array in arrays]


def only_columns(site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
    return next((i for i, option in enumerate(options) if "columns" in option.label), 0), ""


def module() -> tuple[Any, list[TensorInfo]]:
    zoo, infos = Zoo(11), [TensorInfo(shape, "int8") for shape, *_ in LAYERS]
    weights = [weights_of(zoo, row) for row in LAYERS]

    def build(*images: Any) -> Any:
        calls = []
        for number, (image, (*_, strides, padding), own) in enumerate(zip(images, LAYERS, weights, strict=True)):
            point, high = (-3, 127) if number % 2 else (-128, 100 + 27 * (number > 2))
            attrs = Conv2dAttrs(strides, padding, (1, 1), 1, (-128, 5, 127)[number % 3], point, -128, high)
            calls.append(get(Conv2d)(image, *own, attrs=attrs))
        return relax.Tuple(calls)

    return module_of([np.zeros(info.shape, np.int8) for info in infos], build), infos


def differing(compiled: Compiled, samples: list[list[Array]], expected: list[list[Array]], folder: Path) -> set[int]:
    run = run_compiled(compiled, board_with_tools("mps2_an386"), samples, folder, lambda step: None).run
    pairs = [zip(*both, strict=True) for both in zip(run.outputs, expected, strict=True)]
    return {n for results in pairs for n, (result, value) in enumerate(results) if not np.array_equal(result, value)}


@pytest.mark.slow
def test_they_give_the_exact_result_over_what_they_have_read(tmp_path: Path) -> None:
    """A word closer, most of them do not."""
    built, infos = module()
    selection, samples = Selection(target_of(board_with_tools("mps2_an386")), only_columns), samples_of(5, infos)
    expected = [list(Executor(built).run(sample)) for sample in samples]
    apart = compiled_module(built, selection=selection)
    assert {layer.kernel.calls[0].function for layer in apart.program.layers} == {"uaccel_conv2d_columns_dsp_s8"}
    assert not differing(apart, samples, expected, tmp_path / "apart")
    assert not differing(compiled_overlapped(built, selection), samples, expected, tmp_path / "over")

    def closer(layer: Layer) -> int | None:
        return max(0, (stated(layer) or 0) - 4)

    wrong = differing(compiled_overlapped(built, selection, closer), samples, expected, tmp_path / "closer")
    assert len(wrong) >= 5, wrong


def slowly(data: TensorInfo, output: TensorInfo, strides: Sequence[int], padding: Sequence[int], chunk: int) -> int:
    """Byte by byte: what is read when, and what is written then."""
    (_, in_height, in_width, depth), (_, height, width, channels) = data.shape, output.shape
    starts = [(y, x) for y in range(0, height, 2) for x in range(0, width, chunk)]
    distance = 0
    for number, (y, x) in enumerate(starts):
        end = (min(y + 1, height - 1) * width + min(x + chunk, width)) * channels
        for later_y, later_x in starts[number + 1 :]:
            top = min(max(later_y * strides[0] - padding[0], 0), in_height)
            left = min(max(later_x * strides[1] - padding[1], 0), in_width)
            distance = max(distance, end - (top * in_width + left) * depth)
    return distance


@pytest.mark.parametrize("row", [row for row in LAYERS if row[0][0] == 1])
@pytest.mark.parametrize("chunk", [1, 3, 8])
def test_the_distance_is_the_least(row: Row, chunk: int) -> None:
    (_, height, width, _), channels, window, strides, padding = row
    sizes = [
        (extent + padding[axis] + padding[axis + 2] - window[axis]) // strides[axis] + 1
        for axis, extent in enumerate((height, width))
    ]
    data, output = TensorInfo(row[0], "int8"), TensorInfo((1, *sizes, channels), "int8")
    assert pairs_of_rows_behind(data, output, strides, padding, chunk) == slowly(data, output, strides, padding, chunk)
