"""Winograd's convolution: exact at its limits and borders, offered where speed is favoured, picked where it wins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.kernel_zoo import Zoo, samples_of
from support.models.relax_modules import compiled_module, module_of
from uaccel.kernels import Option, Target, Work, candidates
from uaccel.kernels.arm_dsp_winograd import winograd
from uaccel.kernels.choice import Selection, target_of
from uaccel.model import TensorInfo
from uaccel.ops.conv import Conv2d, Conv2dAttrs
from uaccel.ops.operator import Operand, Site, get
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api import relax
from uaccel.tvm_api.executor import Executor
from uaccel.util.favour import Favour

M4 = Target.of("cortex-m4", ["dsp"])
SHAPES = [
    ((1, 8, 8, 16), 8, (1, 1, 1, 1)),
    ((2, 7, 5, 4), 4, (1, 1, 1, 1)),
    ((1, 6, 10, 12), 12, (0, 0, 0, 0)),
    ((1, 3, 3, 20), 4, (0, 2, 2, 0)),
    ((1, 1, 2, 8), 8, (1, 1, 1, 1)),
    ((1, 5, 4, 36), 4, (2, 2, 1, 2)),
]
"""Of images, output channels and paddings: whole blocks and none, rounds of eight steps and fewer."""


class Extreme(Zoo):
    """Weights of one sign and the largest size: sums and transformed weights as far out as they go."""

    def int8(self, *shape: int) -> Any:
        return np.full(shape, -128 if self.integer(0, 1) else 127, np.int8)


def only_winograd(site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
    return next(i for i, option in enumerate(options) if "winograd" in option.label), ""


@pytest.mark.slow
@pytest.mark.parametrize("zoo", [Zoo(3), Extreme(4)], ids=["random", "extreme"])
def test_it_gives_the_exact_result(zoo: Zoo, tmp_path: Path) -> None:
    board = board_with_tools("mps2_an386")
    infos = [TensorInfo(shape, "int8") for shape, _, _ in SHAPES]
    weights = [zoo._weights(out, (out, 3, 3, shape[3]), 9 * shape[3]) for shape, out, _ in SHAPES]

    def build(*images: Any) -> Any:
        calls = []
        for number, (image, (_, _, padding), own) in enumerate(zip(images, SHAPES, weights, strict=True)):
            low = -3 if number % 2 else -128
            attrs = Conv2dAttrs(
                (1, 1), padding, (1, 1), 1, (-128, 5, 127)[number % 3], -3, low, 100 + 27 * (number > 2)
            )
            calls.append(get(Conv2d)(image, *own, attrs=attrs))
        return relax.Tuple(calls)

    module = module_of([np.zeros(info.shape, np.int8) for info in infos], build)
    compiled = compiled_module(module, selection=Selection(target_of(board), only_winograd, Favour.speed))
    samples = samples_of(5, infos)
    run = run_compiled(compiled, board, samples, tmp_path / "p", lambda step: None).run
    for sample, results in zip(samples, run.outputs, strict=True):
        for number, (result, value) in enumerate(zip(results, Executor(module).run(sample), strict=True)):
            assert np.array_equal(result, value), SHAPES[number]


def site_of(depth: int = 16, out: int = 16, fill: int = 1, strides: tuple[int, int] = (1, 1)) -> Site[Conv2dAttrs]:
    weights = np.full((out, 3, 3, depth), fill, np.int8)
    constants = (weights, np.zeros(out, np.int32), np.full(out, 1 << 30, np.int32), np.full(out, -8, np.int32))
    operands = tuple(Operand(TensorInfo(c.shape, str(c.dtype)), c) for c in constants)
    attrs = Conv2dAttrs(strides, (1, 1, 1, 1), (1, 1), 1, 0, 0, -128, 127)
    image = Operand(TensorInfo((1, 8, 8, depth), "int8"))
    return Site(attrs, (image, *operands), (TensorInfo((1, 8 // strides[0], 8 // strides[1], out), "int8"),))


def test_it_is_offered_only_where_speed_is_favoured() -> None:
    for favour in Favour:
        offered = [kernel.calls[0].function for kernel in candidates(get(Conv2d), site_of(), M4, favour)]
        assert ("uaccel_winograd_dsp_s8" in offered) == (favour is Favour.speed)


def test_sums_four_times_as_large_must_fit() -> None:
    """128 * 127 * 9 * 3668 is just below 2^29."""
    assert winograd(site_of(depth=3668, out=4, fill=127)) is not None
    assert winograd(site_of(depth=3672, out=4, fill=127)) is None


def test_other_windows_and_odd_channels_are_not_for_it() -> None:
    assert winograd(site_of()) is not None
    assert winograd(site_of(strides=(2, 2))) is None
    assert winograd(site_of(depth=6)) is None
    assert winograd(site_of(out=6)) is None


def test_it_is_picked_where_it_is_estimated_to_win() -> None:
    for depth, picked in ((4, "uaccel_conv2d_columns_dsp_s8"), (32, "uaccel_winograd_dsp_s8")):
        module = module_of(
            [np.zeros((1, 16, 16, depth), np.int8)],
            lambda x, depth=depth: get(Conv2d)(
                x,
                *(relax.const(operand.value, str(operand.value.dtype)) for operand in site_of(depth).operands[1:]),
                attrs=site_of().attrs,
            ),
        )
        (layer,) = compiled_module(module, selection=Selection.on(M4, Favour.speed)).program.layers
        assert layer.kernel.calls[0].function == picked
