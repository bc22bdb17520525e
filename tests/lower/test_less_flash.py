"""Kernels with less flash for a network as a whole: where code is shared, within a share of the time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.models.relax_modules import lowered, module_of
from uaccel.kernels import Target, Turn
from uaccel.kernels.choice import Selection
from uaccel.lower.kernel_swaps import place_small
from uaccel.ops.conv import Conv2d, Conv2dAttrs
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import get
from uaccel.tvm_api import relax
from uaccel.util.favour import Favour

M4 = Target.of("cortex-m4", ["dsp", "fpu"])
ROW, DOTS = "uaccel_fully_connected_dsp_alike_s8", "uaccel_fully_connected_s8_dots_dsp"
ONE = "uaccel_fully_connected_s8"
PAIRS, SMALL = "uaccel_fully_connected_s8_dots_pairs", "uaccel_small_dsp_s8"
Call = tuple[str, ...]


def constants(weights: Any) -> list[Any]:
    count = len(weights)
    values = (weights, np.zeros(count, np.int32), np.full(count, 1 << 30, np.int32), np.full(count, -6, np.int32))
    return [relax.const(value, str(value.dtype)) for value in values]


def functions(pixels: int, units: int, selection: Selection) -> tuple[list[str], list[str]]:
    """Of a convolution of so many pixels (0: there is none) and a fully connected layer: as picked, and as placed."""
    generator = np.random.default_rng(0)
    row = np.zeros((1, 32), np.int8)
    weights = constants(generator.integers(-9, 9, (units, 32)).astype(np.int8))
    kernel = constants(generator.integers(-9, 9, (16, 1, 1, 32)).astype(np.int8))

    def build(y: Any, *x: Any) -> Any:
        attrs = Conv2dAttrs((1, 1), (0, 0, 0, 0), (1, 1), 1, 0, 0, -128, 127)
        calls = [get(Conv2d)(image, *kernel, attrs=attrs) for image in x]
        calls.append(get(FullyConnected)(y, *weights, attrs=FullyConnectedAttrs(0, 0, -128, 127)))
        return relax.Tuple(calls)

    images = [np.zeros((1, pixels, 1, 32), np.int8)] if pixels else []
    _, program = lowered(module_of([row, *images], build), selection)
    programs = (program, place_small(program, selection))
    picked, placed = ([call.function for layer in one.layers for call in layer.kernel.calls] for one in programs)
    return picked, placed


@pytest.mark.parametrize(
    ("pixels", "units", "first", "last"),
    [
        pytest.param(4000, 3, DOTS, PAIRS, id="another kernel is shorter"),
        pytest.param(4000, 1, PAIRS, ONE, id="a plain loop is shorter, and a single unit takes little time"),
        pytest.param(4000, 8, ROW, SMALL, id="another layer's code takes twice as long, and a short kernel does not"),
        pytest.param(100, 16, ROW, ROW, id="the network is too small for that time"),
        pytest.param(4000, 1000, ROW, ROW, id="the layer is too large"),
        pytest.param(0, 16, ROW, ROW, id="no other layer has it"),
    ],
)
def test_a_small_layer_takes_less_code(pixels: int, units: int, first: str, last: str) -> None:
    picked, placed = functions(pixels, units, Selection.on(M4))
    assert (picked[-1], placed[-1]) == (first, last)
    assert picked[:-1] == placed[:-1]


@pytest.mark.parametrize("selection", [Selection.on(M4, Favour.speed), Selection(M4, Turn(0))])
def test_only_where_estimates_alone_choose(selection: Selection) -> None:
    picked, placed = functions(4000, 12, selection)
    assert picked == placed
