"""Windows of one row or one column by lines: exact for odd and even sizes and borders, in place and not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.kernel_zoo import Zoo, samples_of
from support.models.overlapped import compiled_overlapped
from support.models.relax_modules import compiled_module, module_of
from uaccel.kernels import Option, Work
from uaccel.kernels.arm_dsp_depthwise import depthwise_lines
from uaccel.kernels.choice import Selection, target_of
from uaccel.model import TensorInfo
from uaccel.ops.conv import Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.operator import Operand, Site, get
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api import relax
from uaccel.tvm_api.executor import Executor

Row = tuple[tuple[int, ...], tuple[int, int], tuple[int, int], tuple[int, ...]]
LINES: list[Row] = [
    ((1, 28, 1, 8), (5, 1), (1, 1), (0, 0, 0, 0)),
    ((1, 24, 3, 4), (10, 1), (1, 1), (0, 0, 0, 0)),
    ((2, 9, 3, 8), (3, 1), (1, 1), (1, 0, 1, 0)),
    ((1, 3, 17, 6), (1, 4), (1, 1), (0, 2, 0, 1)),
    ((1, 5, 9, 5), (1, 2), (2, 1), (0, 1, 0, 0)),
    ((1, 4, 23, 4), (1, 15), (3, 1), (0, 7, 0, 7)),
    ((2, 12, 4, 7), (7, 1), (1, 3), (3, 0, 3, 0)),
    ((1, 6, 1, 4), (2, 1), (1, 1), (0, 0, 1, 0)),
]
"""Images, windows, strides and paddings."""


class Usual(Zoo):
    """Without the biases and scales that no fast kernel takes."""

    def _bias(self, channels: int, terms: int) -> Any:
        return self.random.integers(-terms * 4000, terms * 4000 + 1, channels).astype(np.int32)

    def _scales(self, count: int, terms: int) -> tuple[Any, Any]:
        shift = -7 - np.floor(np.log2(terms) / 2) + self.random.integers(-1, 2, count)
        return self.random.integers(2**30, 2**31, count).astype(np.int32), shift.astype(np.int32)


def only_lines(site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
    return next((i for i, option in enumerate(options) if "lines" in option.label), 0), ""


def layer(zoo: Zoo, image: Any, row: Row, number: int) -> Any:
    (*_, channels), window, strides, padding = row
    point = 4 if number % 2 else -128
    attrs = Conv2dAttrs(strides, padding, (1, 1), channels, (-128, 5, 127)[number % 3], point, -128, 127)
    weights = zoo._weights(channels, (*window, channels), window[0] * window[1])
    return get(DepthwiseConv2d)(image, *weights, attrs=attrs)


@pytest.mark.slow
@pytest.mark.parametrize("overlapped", [False, True])
def test_they_give_the_exact_result(overlapped: bool, tmp_path: Path) -> None:
    """The last layers are in a chain, where results lie over what is read."""
    board, zoo = board_with_tools("mps2_an386"), Usual(7)
    infos = [TensorInfo(shape, "int8") for shape, *_ in LINES]

    def build(*images: Any) -> Any:
        calls = [layer(zoo, image, row, n) for n, (image, row) in enumerate(zip(images, LINES, strict=True))]
        if not overlapped:
            calls.append(layer(zoo, layer(zoo, calls[0], LINES[0], 1), LINES[0], 2))
        return relax.Tuple(calls)

    module = module_of([np.zeros(info.shape, np.int8) for info in infos], build)
    selection = Selection(target_of(board), only_lines)
    compiled = compiled_overlapped(module, selection) if overlapped else compiled_module(module, selection=selection)
    assert {each.kernel.calls[0].function for each in compiled.program.layers} == {"uaccel_depthwise_lines_dsp_s8"}
    samples = samples_of(5, infos)
    run = run_compiled(compiled, board, samples, tmp_path / "p", lambda step: None).run
    for sample, results in zip(samples, run.outputs, strict=True):
        for number, (result, value) in enumerate(zip(results, Executor(module).run(sample), strict=True)):
            assert np.array_equal(result, value), number


def site_of(
    image: tuple[int, ...], window: tuple[int, int], output: tuple[int, ...], padding: tuple[int, ...] = (0, 0, 0, 0)
) -> Site[Conv2dAttrs]:
    channels = image[3]
    weights = np.ones((*window, channels), np.int8)
    scales = (np.full(channels, 1 << 30, np.int32), np.full(channels, -8, np.int32))
    operands = tuple(Operand(TensorInfo(c.shape, str(c.dtype)), c) for c in (weights, scales[0] * 0, *scales))
    attrs = Conv2dAttrs((1, 1), padding, (1, 1), channels, 0, 0, -128, 127)
    return Site(attrs, (Operand(TensorInfo(image, "int8")), *operands), (TensorInfo(output, "int8"),))


@pytest.mark.parametrize(
    ("image", "window", "output", "inplace"),
    [
        ((1, 20, 2, 8), (5, 1), (1, 16, 2, 8), (0,)),
        ((2, 20, 2, 8), (5, 1), (2, 16, 2, 8), ()),
        ((1, 20, 2, 6), (5, 1), (1, 16, 2, 6), ()),
        ((1, 2, 20, 8), (1, 5), (1, 2, 16, 8), ()),
    ],
)
def test_results_lie_over_inputs_where_channels_keep_their_places(
    image: tuple[int, ...], window: tuple[int, int], output: tuple[int, ...], inplace: tuple[int, ...]
) -> None:
    kernel = depthwise_lines(site_of(image, window, output))
    assert kernel is not None
    assert kernel.inplace == inplace


@pytest.mark.parametrize(
    ("image", "window", "output"),
    [
        ((1, 20, 2, 8), (16, 1), (1, 5, 2, 8)),
        ((1, 20, 2, 3), (5, 1), (1, 16, 2, 3)),
        ((1, 8, 8, 8), (3, 3), (1, 6, 6, 8)),
        ((1, 8, 8, 8), (4, 1), (1, 5, 8, 8)),
    ],
    ids=["long windows", "few channels", "both ways", "short lines"],
)
def test_other_windows_are_for_other_kernels(
    image: tuple[int, ...], window: tuple[int, int], output: tuple[int, ...]
) -> None:
    assert depthwise_lines(site_of(image, window, output)) is None
