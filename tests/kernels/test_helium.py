"""Kernels of Arm Helium: many odd layers in one firmware, which give the bytes of the exact meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.device.boards import board_with_tools
from support.models.relax_modules import compiled_module
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.kernels import Turn
from uaccel.kernels.choice import Selection, target_of
from uaccel.ops.binary import Add, AddAttrs
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.exact import FLOAT32, TFLITE
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import constant, get
from uaccel.ops.pool import AveragePool2d, PoolAttrs
from uaccel.pipeline import Compiled
from uaccel.runner.compiled import archive_of
from uaccel.runner.execute import connect
from uaccel.session.batch import run_batch
from uaccel.session.description import Identity
from uaccel.tvm_api import ModuleBuilder, relax
from uaccel.tvm_api.executor import Executor
from uaccel.util.favour import Favour

Array = NDArray[Any]
Shape = tuple[int, ...]
Site = tuple[Sequence[Shape], Callable[..., Any]]
BOARD = "mps3_an547"
ZERO_POINTS = (-128, 0, 7)
RANGES = {"relu": (7, 127), "all": (-128, 127), "some": (-100, 90)}
CONVOLUTIONS: list[tuple[Shape, int, Shape, Shape, Shape, Shape]] = [
    # input; output channels; kernel, strides, padding, dilation
    ((1, 5, 7, 1), 5, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((1, 9, 10, 1), 16, (10, 4), (2, 2), (4, 1, 5, 1), (1, 1)),
    ((2, 4, 5, 3), 17, (3, 3), (2, 2), (0, 0, 1, 1), (1, 1)),
    ((1, 6, 6, 5), 40, (5, 1), (1, 2), (2, 0, 2, 0), (1, 1)),
    ((1, 7, 4, 16), 6, (3, 3), (1, 1), (1, 1, 1, 1), (2, 1)),
    ((1, 4, 4, 17), 7, (3, 2), (1, 1), (1, 1, 0, 0), (1, 1)),
    ((1, 4, 5, 40), 8, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((2, 3, 3, 16), 9, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 5, 5, 32), 16, (1, 1), (2, 2), (0, 0, 0, 0), (1, 1)),
    ((1, 5, 5, 40), 5, (1, 1), (2, 2), (0, 0, 0, 0), (1, 1)),
    ((1, 4, 5, 32), 8, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((1, 1, 9, 64), 12, (1, 4), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 5, 4, 62), 5, (4, 2), (1, 1), (1, 0, 0, 0), (1, 1)),
    ((2, 3, 6, 64), 7, (4, 2), (1, 1), (1, 0, 1, 1), (1, 1)),
    ((1, 7, 1, 40), 12, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 1, 1, 300), 4, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 3, 3, 12), 5, (1, 1), (1, 1), (1, 2, 0, 1), (1, 1)),
    ((1, 20, 3, 3), 4, (18, 1), (1, 1), (1, 0, 0, 0), (1, 1)),
    ((1, 4, 5, 3), 3, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((2, 3, 3, 16), 1, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 7, 9, 5), 6, (3, 3), (1, 1), (2, 2, 2, 2), (2, 2)),
    ((1, 4, 11, 16), 2, (2, 3), (1, 2), (0, 1, 1, 4), (1, 3)),
    ((1, 3, 13, 20), 9, (1, 3), (1, 2), (0, 5, 0, 3), (1, 4)),
    ((1, 3, 14, 1), 5, (2, 4), (1, 6), (0, 0, 0, 0), (1, 3)),
]
GROUPS: list[tuple[Shape, int, int, Shape, Shape, Shape]] = [
    # input; output channels, groups; kernel, strides, dilation
    ((2, 5, 6, 12), 8, 2, (3, 3), (1, 1), (1, 1)),
    ((1, 4, 7, 34), 10, 2, (1, 1), (1, 1), (1, 1)),
    ((1, 6, 9, 9), 6, 3, (2, 2), (2, 1), (1, 2)),
]
DEPTHWISE: list[tuple[Shape, Shape, Shape, Shape, Shape]] = [
    # input; kernel, strides, padding, dilation
    ((1, 6, 7, 1), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((2, 9, 5, 3), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((1, 9, 8, 5), (3, 3), (2, 2), (0, 0, 1, 1), (1, 1)),
    ((1, 12, 9, 16), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((1, 40, 40, 17), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((1, 5, 90, 9), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    ((1, 20, 1, 40), (5, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 15, 1, 16), (15, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 28, 1, 24), (5, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((2, 10, 1, 3), (3, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 1, 17, 20), (1, 4), (1, 1), (0, 1, 0, 2), (1, 1)),
    ((1, 24, 1, 37), (10, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 1, 16, 18), (1, 16), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((2, 1, 40, 17), (1, 2), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 12, 9, 8), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((2, 9, 7, 24), (3, 3), (2, 2), (0, 0, 1, 1), (1, 1)),
    ((1, 3, 8, 33), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 9, 9, 4), (4, 4), (1, 1), (2, 1, 1, 2), (1, 1)),
    ((1, 9, 9, 4), (2, 3), (1, 1), (2, 1, 1, 2), (2, 2)),
    ((1, 1, 6, 7), (1, 5), (1, 3), (0, 2, 0, 3), (1, 1)),
    ((1, 9, 8, 17), (5, 5), (1, 1), (2, 2, 2, 2), (1, 1)),
    ((2, 15, 15, 3), (7, 7), (2, 2), (3, 3, 3, 3), (1, 1)),
    ((1, 3, 24, 5), (1, 18), (1, 1), (0, 4, 0, 5), (1, 1)),
    ((1, 40, 3, 16), (35, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 9, 20, 2), (2, 9), (1, 1), (0, 8, 1, 8), (1, 2)),
]
ACROSS: list[tuple[Shape, Shape, Shape, Shape]] = [
    # input; kernel, strides, dilation: of 16 channels or more; no two weights of -128 are side by side
    ((1, 5, 1, 32), (5, 1), (1, 1), (1, 1)),
    ((1, 21, 1, 64), (21, 1), (1, 1), (1, 1)),
    ((2, 1, 9, 16), (1, 4), (1, 2), (1, 1)),
    ((1, 7, 6, 48), (3, 3), (2, 2), (1, 1)),
    ((1, 9, 8, 16), (2, 3), (1, 1), (2, 3)),
    ((2, 9, 3, 32), (4, 1), (1, 2), (2, 1)),
    ((1, 2, 2, 30), (1, 1), (1, 1), (1, 1)),
    ((2, 7, 3, 60), (5, 1), (1, 1), (1, 1)),
    ((1, 5, 1, 16), (5, 1), (1, 1), (1, 1)),
]
PADDING = (1, 2, 1, 0)
MULTIPLIED: list[tuple[Shape, int, Shape, Shape]] = [
    # input; how many times as many results; kernel, strides
    ((1, 7, 9, 1), 8, (3, 3), (1, 1)),
    ((2, 12, 12, 1), 5, (10, 8), (2, 2)),
    ((1, 7, 9, 1), 3, (3, 3), (2, 1)),
    ((1, 1, 25, 3), 3, (1, 4), (1, 1)),
    ((2, 6, 5, 19), 2, (3, 3), (1, 1)),
    ((1, 9, 9, 4), 7, (5, 5), (2, 2)),
]
FULLY_CONNECTED = [
    # rows, depth, units
    *[(1, 5, 1), (1, 16, 3), (1, 17, 40), (1, 200, 9), (2, 40, 3), (3, 48, 17), (5, 9, 4)],
    *[(1, 128, 40), (1, 144, 16), (1, 160, 8), (1, 272, 7), (1, 300, 24)],
]
ONE_ROW: list[tuple[Shape, int]] = [
    # input, units
    *[((1, 1), 1), ((1, 15), 2), ((1, 64), 1), ((1, 33), 2), ((1, 127), 3), ((1, 300), 1), ((1, 16), 2), ((1, 96), 7)],
    *[((1, 40), 4), ((1, 100), 6), ((1, 80), 11), ((1, 7), 13), ((1, 1027), 3)],
    *[((1, 5, 2, 30), 20), ((1, 3, 2, 7), 5), ((1, 1, 1, 32), 14), ((1, 1, 1, 60), 60), ((1, 2, 3, 5), 1)],
]
ADDITIONS: list[Shape] = [(1,), (7,), (8,), (3, 17), (1, 5, 5, 16)]
POOLS: list[tuple[Shape, Shape, Shape, Shape]] = [
    ((1, 25, 5, 16), (25, 5), (1, 1), (0, 0, 0, 0)),
    ((2, 7, 6, 11), (3, 2), (2, 2), (1, 0, 1, 1)),
]


class Maker:
    """Random weights, and scales by which results spread."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def int8(self, shape: Shape) -> Array:
        return self.random.integers(-128, 128, shape).astype(np.int8)

    def weights(self, channels: int, shape: Shape, terms: int, alike: bool = False, rest: int = 0) -> list[Any]:
        values, spread = self.int8(shape), 5000 * int(terms**0.5)
        shift = -7 - int(np.log2(terms) / 2) + self.random.integers(-1, 2, channels)
        multiplier = self.random.integers(2**30, 2**31, channels)
        if self.random.integers(2) == 0:
            # many halves to be rounded
            values, spread = self.random.integers(-1, 2, shape).astype(np.int8), 100
            shift = self.random.integers(-2, 0, channels) - (terms > 40)
            multiplier[:] = 2**30 + rest
        if alike:
            # one scale for all
            multiplier[:], shift[:] = multiplier[0], shift[0]
        elif channels > 4:
            # one that is always the same
            values[(..., 2) if len(shape) == 3 else (2,)] = 0
        bias = self.random.integers(-spread, spread + 1, channels)
        arrays = (values, bias.astype(np.int32), multiplier.astype(np.int32), shift.astype(np.int32))
        return [constant(array) for array in arrays]

    def ends(self, number: int) -> tuple[int, int, int, int]:
        """Both zero points, and the range."""
        low, high = list(RANGES.values())[number % 3]
        return ZERO_POINTS[number // 3 % 3], ZERO_POINTS[number // 9 % 3], low, high


def sites(maker: Maker) -> list[Site]:
    """Each with the shapes that it takes."""
    found: list[Site] = []
    for number, (shape, channels, kernel, strides, padding, dilation) in enumerate(CONVOLUTIONS):
        attrs = Conv2dAttrs(strides, padding, dilation, 1, *maker.ends(number))
        terms = kernel[0] * kernel[1] * shape[3]
        weights = maker.weights(channels, (channels, *kernel, shape[3]), terms)
        found.append(([shape], lambda x, w=weights, a=attrs: get(Conv2d)(x, *w, attrs=a)))
    for number, (shape, channels, groups, kernel, strides, dilation) in enumerate(GROUPS):
        attrs = Conv2dAttrs(strides, (1, 0, 0, 1), dilation, groups, *maker.ends(number))
        depth = shape[3] // groups
        weights = maker.weights(channels, (channels, *kernel, depth), kernel[0] * kernel[1] * depth)
        found.append(([shape], lambda x, w=weights, a=attrs: get(Conv2d)(x, *w, attrs=a)))
    for number, (shape, times, kernel, strides) in enumerate(MULTIPLIED):
        attrs = Conv2dAttrs(strides, PADDING if shape[1] > 1 else (0, 2, 0, 0), (1, 1), shape[3], *maker.ends(number))
        weights = maker.weights(shape[3] * times, (*kernel, shape[3] * times), kernel[0] * kernel[1])
        found.append(([shape], lambda x, w=weights, a=attrs: get(DepthwiseConv2d)(x, *w, attrs=a)))
    for number, (shape, kernel, strides, padding, dilation) in enumerate(DEPTHWISE):
        attrs = Conv2dAttrs(strides, padding, dilation, shape[3], *maker.ends(number))
        weights = maker.weights(shape[3], (*kernel, shape[3]), kernel[0] * kernel[1])
        found.append(([shape], lambda x, w=weights, a=attrs: get(DepthwiseConv2d)(x, *w, attrs=a)))
    for number, (shape, kernel, strides, dilation) in enumerate(ACROSS):
        attrs = Conv2dAttrs(strides, (0, 0, 0, 0), dilation, shape[3], *maker.ends(number))
        values, *others = maker.weights(shape[3], (*kernel, shape[3]), kernel[0] * kernel[1])
        lone = np.maximum(values.value.numpy(), -127)
        lone[0, 0, 1::3] = -128  # with an input of -128 its product is the largest
        weights = [constant(lone), *others]
        found.append(([shape], lambda x, w=weights, a=attrs: get(DepthwiseConv2d)(x, *w, attrs=a)))
    pair = lone.copy()
    pair[:2, :, 0] = -128  # two side by side, which that kernel declines
    weights = [constant(pair), *others]
    found.append(([shape], lambda x, w=weights, a=attrs: get(DepthwiseConv2d)(x, *w, attrs=a)))
    for number, (rows, depth, units) in enumerate([*FULLY_CONNECTED, *FULLY_CONNECTED]):
        whole = FullyConnectedAttrs(*maker.ends(number))
        weights = maker.weights(units, (units, depth), depth, alike=number >= len(FULLY_CONNECTED))
        found.append(([(rows, depth)], lambda x, w=weights, a=whole: get(FullyConnected)(x, *w, attrs=a)))
    for number, shape in enumerate(ADDITIONS):
        zero1, zero2, low, high = maker.ends(number)
        scales = [(1518500250, -2), (1 << 30, -number if number < 3 else -20), (1 << 30, -18)]
        sums = AddAttrs(20, zero1, *scales[0], zero2, *scales[1], 3, *scales[2], low, high)
        found.append(([shape, shape], lambda x, y, a=sums: get(Add)(x, y, attrs=a)))
    for shape, window, strides, padding in POOLS:
        pool = PoolAttrs(window, strides, padding, -100, 110)
        found.append(([shape], lambda x, a=pool: get(AveragePool2d)(x, attrs=a)))
    return found


def module_of(found: Sequence[Site]) -> Any:
    """All of them side by side."""
    builder, number = ModuleBuilder(), 0
    groups = []
    for shapes, _ in found:
        groups.append([relax.Var(f"x{number + i}", relax.TensorType(s, "int8")) for i, s in enumerate(shapes)])
        number += len(shapes)
    with builder.function([var for group in groups for var in group]) as block:
        calls = [make(*group) for group, (_, make) in zip(groups, found, strict=True)]
        calls = [block.emit(call, f"site_{i}") for i, call in enumerate(calls)]
        block.finish(relax.Tuple(calls))
    return builder.module


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long)])
def test_odd_layers(seed: int, tmp_path: Path) -> None:
    board, maker = board_with_tools(BOARD), Maker(seed)
    maker_sites = sites(maker)
    found = [maker_sites[(i + seed) % len(maker_sites)] for i in range(len(maker_sites))]
    module = module_of(found)
    compiled = compiled_module(module, selection=Selection(target_of(board)))
    variants = {layer.name: layer.kernel.family for layer in compiled.program.layers}
    assert set(variants.values()) == {"arm_helium"}, variants
    functions = [call.function for layer in compiled.program.layers for call in layer.kernel.calls]
    assert functions.count("uaccel_depthwise_across_helium_s8") >= len(ACROSS)
    samples = [[maker.int8(shape) for shapes, _ in found for shape in shapes] for _ in range(3)]
    samples.append([np.full_like(values, -128) for values in samples[0]])
    assert_exact(module, compiled, samples, tmp_path / "project")


def assert_exact(module: Any, compiled: Compiled, samples: list[list[Array]], project: Path) -> None:
    board = board_with_tools(BOARD)
    create_project(archive_of(compiled), board, project)
    firmware = firmware_of(build_project(project))
    reference = Executor(module)
    with connect(board, firmware, Identity(bytes(32), compiled.generated.build), "") as session:
        outputs = run_batch(session, samples).outputs
    for values, results in zip(samples, outputs, strict=True):
        for layer, got, wanted in zip(compiled.program.layers, results, reference.run(values), strict=True):
            np.testing.assert_array_equal(got, wanted, f"{layer.name}: {layer.reason}")


def one_row(maker: Maker, number: int, shape: Shape, units: int, rounding: str) -> Site:
    """A fully connected layer, or a convolution whose only window is its input."""
    rest = 64 if rounding == FLOAT32 else 0  # half of one, which decides halves
    weights = maker.weights(units, (units, *shape[1:]), int(np.prod(shape)), rest=rest)
    if len(shape) == 2:
        whole = FullyConnectedAttrs(*maker.ends(number), rounding)
        return [shape], lambda x: get(FullyConnected)(x, *weights, attrs=whole)
    attrs = Conv2dAttrs((1, 1), (0, 0, 0, 0), (1, 1), 1, *maker.ends(number), rounding)
    return [shape], lambda x: get(Conv2d)(x, *weights, attrs=attrs)


@pytest.mark.slow
@pytest.mark.parametrize("rounding", [TFLITE, FLOAT32])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_one_row(rounding: str, seed: int, tmp_path: Path) -> None:
    """Few units, and many where the window is the whole input, in each of the kernels that there are."""
    maker, target = Maker(seed), target_of(board_with_tools(BOARD))
    found = [one_row(maker, number + seed, *row, rounding) for number, row in enumerate(ONE_ROW)]
    module = module_of(found)
    samples = [[maker.int8(shape) for (shape,), _ in found] for _ in range(2)]
    samples.append([np.full_like(values, -128) for values in samples[0]])
    called = set()
    for turn in range(3):
        compiled = compiled_module(module, selection=Selection(target, Turn(turn), Favour.speed))
        called |= {call.function for layer in compiled.program.layers for call in layer.kernel.calls}
        assert_exact(module, compiled, samples, tmp_path / str(turn))
    assert {f"uaccel_{name}_helium_s8" for name in ("conv2d", "fully_connected", "fully_connected_few")} <= called
