"""Operators that round in single precision: generated C and exact meaning against numpy's float32, to the bit."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ops.single_precision import convolved, rounded, transposed
from support.device.boards import board_with_tools
from support.device.c_function import shared
from support.device.hostlib import HostModel, include_flags
from support.models.relax_modules import compiled_module
from support.oracle.exactness import assert_same
from uaccel.board import load_board
from uaccel.errors import ModelError
from uaccel.kernels import Target, Turn
from uaccel.kernels.choice import Selection, target_of
from uaccel.model import TensorInfo
from uaccel.ops.accumulators import RequantizeSums, RequantizeSumsAttrs
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d, TransposeConv2d, TransposeConv2dAttrs
from uaccel.ops.exact import FLOAT32, float32_scale, float32_scales, with_rests
from uaccel.ops.fixedpoint import requantize_float32
from uaccel.ops.matmul import BatchMatmul, BatchMatmulAttrs, FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import constant, get
from uaccel.ops.quantize import Quantize, QuantizeAttrs, Requantize, RequantizeAttrs
from uaccel.ops.reduce import ReduceMean, ReduceSum, ReduceSumAttrs
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api import ModuleBuilder, relax
from uaccel.tvm_api.executor import Executor

Array = NDArray[Any]
HIGHEST = (1 << 23) - 1
FUNCTION = """
#include "uaccel_float32.h"
void narrow(const int32_t *acc, const int32_t *multiplier, const int8_t *shift, int32_t *result, int32_t count);
void wide(const int64_t *acc, const int32_t *multiplier, const int8_t *shift, int32_t *result, int32_t count);
void narrow(const int32_t *acc, const int32_t *multiplier, const int8_t *shift, int32_t *result, int32_t count)
{
    for (int32_t i = 0; i < count; ++i) { result[i] = uaccel_requantise_float32(acc[i], multiplier[i], shift[i]); }
}
void wide(const int64_t *acc, const int32_t *multiplier, const int8_t *shift, int32_t *result, int32_t count)
{
    for (int32_t i = 0; i < count; ++i) { result[i] = uaccel_requantise_float32_wide(acc[i], multiplier[i], shift[i]); }
}
"""


def cases(seed: int, count: int = 400_000) -> tuple[Array, Array, Array]:
    """Accumulators of all lengths with scales of all sizes: random ones, near ties, and the extremes."""
    random = np.random.default_rng(seed)
    bits = random.integers(1, 32, count)
    acc = (random.integers(0, 2**31, count) >> (31 - bits)) * random.choice([-1, 1], count)
    multiplier = random.integers(2**23, 2**24, count) << 7
    multiplier[::3] &= ~((1 << random.integers(7, 31, len(multiplier[::3]))) - 1)  # few bits: products are ties
    shift = np.clip(random.integers(-3, 20, count) - bits, -31, 30)
    shift[::5] = random.integers(-31, 31, len(shift[::5]))
    near = np.rint(random.integers(-300, 300, count) + 0.5) / (multiplier * 2.0 ** (shift - 31))
    acc = np.where(np.arange(count) % 4 == 0, np.clip(np.rint(near), -(2**31), 2**31 - 1), acc).astype(np.int64)
    acc[:8] = [0, 1, -1, 2**31 - 1, -(2**31), 2**24 + 1, 2**25 + 2, 2**25 + 6]
    multiplier[:16], shift[8:16] = 2**30, 0
    acc[8:16] = [1, -1, 3, -3, 5, -5, 7, -7]  # halves
    return acc, multiplier.astype(np.int32), shift.astype(np.int8)


def in_numpy(acc: Array, multiplier: Array, shift: Array) -> Array:
    scale = ((multiplier & ~127) * 2.0 ** (shift.astype(np.int64) - 31)).astype(np.float32)
    total = acc.astype(np.float32) + ((multiplier & 127) / 128).astype(np.float32)
    return np.asarray(np.clip(np.rint(total * scale), -HIGHEST - 1, HIGHEST), np.int32)


@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_the_function_is_single_precision(optimise: str, tmp_path: Path) -> None:
    library = shared(tmp_path, FUNCTION, optimise, *include_flags())
    for name, dtype in (("narrow", np.int32), ("wide", np.int64)):
        acc, multiplier, shift = cases(len(name))
        if name == "narrow":
            rests = np.random.default_rng(3).choice([0, 1, 64, 127], len(acc))
            rests[:16] = 0
            acc[16], multiplier[16], shift[16], rests[16] = -(2**24), 2**31 - 128, -1, 127  # the largest that has one
            multiplier += rests.astype(np.int32)
        else:
            factors = np.random.default_rng(1).choice([1, 1, 3, 2**20 + 1, 2**22, 2**31], len(acc))
            shift = np.where(factors == 2**22, np.maximum(shift - 22, -31), shift).astype(np.int8)  # ties stay ties
            acc = acc * factors
        acc = acc.astype(dtype)
        result = np.zeros(len(acc), np.int32)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (acc, multiplier, shift, result))
        getattr(library, name)(*pointers, ctypes.c_int32(len(acc)))
        expected = in_numpy(acc, multiplier, shift)
        assert_same(result, expected, name)
        assert_same(requantize_float32(acc, multiplier, shift).astype(np.int32), expected, f"{name} on numpy")
        assert (np.abs(expected) < 1000).mean() > 0.2


def test_scales_are_kept_exactly() -> None:
    scales = np.array([0.5, 1.0, 1 / 3, 0.0007, 2.0**-32, 2.0**29.9, 1.9999999], np.float32)
    multiplier, shift = float32_scales(scales)
    assert np.array_equal((multiplier * 2.0 ** (shift.astype(np.int64) - 31)).astype(np.float32), scales)
    assert (multiplier >= 2**30).all()
    assert not (multiplier & 127).any()
    assert [float32_scale(tiny) for tiny in (0.0, 1e-12, 1e-45)] == [(2**30, -31)] * 3


@pytest.mark.parametrize("scale", [-0.5, float("nan"), float("inf"), 2.0**30])
def test_scales_that_cannot_be(scale: float) -> None:
    wanted = (
        r"its quantisation scales give the factor \S+, wanted one from 0 to below 2\*\*30; quantise the model again"
    )
    with pytest.raises(ModelError, match=wanted):
        float32_scale(scale)
    with pytest.raises(ModelError, match=r"wanted one from 2\*\*-32 to below 2\*\*30"):
        float32_scales([2.0**-33], wide=True)


@dataclass(frozen=True)
class Row:
    """A call of variables for ``inputs``, and what numpy says that it gives."""

    build: Callable[..., Any]
    inputs: tuple[Array, ...]
    expected: Array


class Maker:
    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def values(self, *shape: int, dtype: str = "int8") -> Array:
        info = np.iinfo(dtype)
        return self.random.integers(info.min, info.max + 1, shape).astype(dtype)

    def scales(self, count: int, terms: int, spread: float = 60.0) -> Array:
        """Such that results spread over ``spread`` steps; every other one a power of two, which makes ties."""
        middle = spread / (5000.0 * terms**0.5)
        found = (middle * self.random.uniform(0.5, 2.0, count)).astype(np.float32)
        found[::2] = 2.0 ** np.round(np.log2(found[::2]))
        return np.asarray(found)

    def weighted(self, operator: Any, data: Array, weights: Array, attrs: Any, sums: Array, wide: bool = False) -> Row:
        channels = sums.shape[-1]
        info = np.iinfo(data.dtype)
        bias = self.random.integers(-9000, 9000, channels).astype(np.int64 if wide else np.int32)
        scales = self.scales(channels, weights.size // channels, 60.0 * info.max / 127 / (info.max / 127))
        rests = self.random.integers(0, 128, channels) if data.dtype == np.int8 else np.zeros(channels, int)
        multiplier, shift = float32_scales(scales)
        operands = (weights, bias, with_rests(multiplier, rests), shift)
        constants = [constant(np.asarray(array)) for array in operands]
        clamps = (attrs.clamp_min, attrs.clamp_max, str(data.dtype))
        total = (sums + bias).astype(np.float32) + (rests / 128).astype(np.float32)
        expected = rounded(total, scales, attrs.output_zero_point, *clamps)
        return Row(lambda x: get(operator)(x, *constants, attrs=attrs), (data,), expected)


def conv2d(make: Maker, dtype: str = "int8", wide: bool = False, groups: int = 1) -> Row:
    data, weights = make.values(1, 6, 7, 4, dtype=dtype), make.values(8, 3, 2, 4 // groups)
    low, high = (-100, 90) if dtype == "int8" else (-30000, 30000)
    attrs = Conv2dAttrs((2, 1), (1, 0, 1, 1), (1, 2), groups, 0 if wide else 7, -5, low, high, FLOAT32)
    return make.weighted(Conv2d, data, weights, attrs, convolved(data, weights, attrs), wide)


def pointwise(make: Maker) -> Row:
    data, weights = make.values(1, 4, 4, 16), make.values(5, 1, 1, 16)
    attrs = Conv2dAttrs((1, 1), (0, 0, 0, 0), (1, 1), 1, -3, 9, -128, 127, FLOAT32)
    return make.weighted(Conv2d, data, weights, attrs, convolved(data, weights, attrs))


def depthwise(make: Maker, dtype: str = "int8") -> Row:
    data, weights = make.values(2, 5, 5, 3, dtype=dtype), make.values(3, 3, 6)
    wide = dtype == "int16"
    attrs = Conv2dAttrs((1, 1), (1, 1, 1, 1), (1, 1), 3, 0 if wide else 11, 3, *ends_of(dtype), FLOAT32)
    sums = convolved(data, weights.transpose(2, 0, 1)[..., None], attrs)
    return make.weighted(DepthwiseConv2d, data, weights, attrs, sums, wide)


def ends_of(dtype: str) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def fully_connected(make: Maker, dtype: str = "int8") -> Row:
    data, weights, wide = make.values(3, 40, dtype=dtype), make.values(9, 40), dtype == "int16"
    zero = 0 if wide else -20
    attrs = FullyConnectedAttrs(zero, 4, *ends_of(dtype), FLOAT32)
    sums = (data.astype(np.int64) - zero) @ weights.astype(np.int64).T
    return make.weighted(FullyConnected, data, weights, attrs, sums, wide)


def transpose_conv2d(make: Maker, dtype: str = "int8") -> Row:
    data, weights, wide = make.values(1, 3, 4, 5, dtype=dtype), make.values(6, 3, 3, 5), dtype == "int16"
    attrs = TransposeConv2dAttrs((6, 8), (2, 2), (0, 1), 0 if wide else 5, -7, *ends_of(dtype), FLOAT32)
    return make.weighted(TransposeConv2d, data, weights, attrs, transposed(data, weights, attrs), wide)


def batch_matmul(make: Maker, dtype: str = "int8") -> Row:
    lhs, rhs = make.values(2, 5, 30, dtype=dtype), make.values(2, 30, 4, dtype=dtype)
    info, zeros = np.iinfo(dtype), (3, -4, 6) if dtype == "int8" else (0, 0, 0)
    scale = np.float32(make.scales(2, 30)[0] / (1 if dtype == "int8" else 256))
    attrs = BatchMatmulAttrs(False, False, *zeros, *float32_scale(float(scale)), FLOAT32)
    sums = (lhs.astype(np.int64) - zeros[0]) @ (rhs.astype(np.int64) - zeros[1])
    expected = rounded(sums, float(scale), zeros[2], info.min, info.max, dtype)
    return Row(lambda x, y: get(BatchMatmul)(x, y, attrs=attrs), (lhs, rhs), expected)


def requantize(make: Maker, source: str, target: str, scale: float, points: tuple[int, int], count: int = 300) -> Row:
    data, info = make.values(count, dtype=source), np.iinfo(target)
    attrs = RequantizeAttrs(*points, *float32_scale(scale), info.min, info.max, target, FLOAT32)
    expected = rounded(data.astype(np.int64) - points[0], scale, points[1], info.min, info.max, target)
    return Row(lambda x: get(Requantize)(x, attrs=attrs), (data,), expected)


def requantize_sums(make: Maker) -> Row:
    sums = (make.values(50, 16, dtype="int32") >> make.random.integers(0, 31, (50, 16))).astype(np.int32)
    bias, scales = make.random.integers(-9, 9, 16).astype(np.int32), make.scales(16, 4)
    sums[0], bias[1] = 2**31 - 1, 0
    total = (sums.astype(np.int64) + bias + 2**31) % 2**32 - 2**31
    constants = [constant(array) for array in (bias, *float32_scales(scales))]
    attrs = RequantizeSumsAttrs(1, 17, -90, 127, "int8", FLOAT32)
    expected = rounded(total, scales, 17, -90, 127)
    return Row(lambda x: get(RequantizeSums)(x, *constants, attrs=attrs), (sums,), expected)


def reduced(make: Maker, operator: Any, scale: float) -> Row:
    data = make.values(2, 5, 6, 7)
    attrs = ReduceSumAttrs((1, 2), False, 9, -8, *float32_scale(scale), FLOAT32)
    expected = rounded((data.astype(np.int64) - 9).sum(axis=(1, 2)), scale, -8, -128, 127)
    return Row(lambda x: get(operator)(x, attrs=attrs), (data,), expected)


def quantize(make: Maker, dtype: str, scale: float, zero_point: int) -> Row:
    """Halves among them, and what is beyond the type."""
    info, step = np.iinfo(dtype), np.float32(scale)
    data = (make.random.integers(-600, 600, 2000) / np.float32(2) * step).astype(np.float32)
    data[:3] = [np.inf, -np.inf, np.nan]
    quotient = np.where(np.isnan(data), -np.inf, data / step)
    expected = np.clip(np.rint(quotient).astype(np.float64) + zero_point, info.min, info.max).astype(dtype)
    attrs = QuantizeAttrs(float(step), zero_point, dtype, FLOAT32)
    return Row(lambda x: get(Quantize)(x, attrs=attrs), (data,), expected)


def rows(make: Maker) -> dict[str, Row]:
    return {
        "conv2d": conv2d(make),
        "conv2d groups": conv2d(make, groups=2),
        "conv2d 16 bits": conv2d(make, "int16"),
        "conv2d 16 bits, 64 in sums": conv2d(make, "int16", wide=True),
        "pointwise": pointwise(make),
        "depthwise": depthwise(make),
        "fully connected": fully_connected(make),
        "transposed": transpose_conv2d(make),
        "depthwise 16 bits": depthwise(make, "int16"),
        "fully connected 16 bits": fully_connected(make, "int16"),
        "transposed 16 bits": transpose_conv2d(make, "int16"),
        "matrices": batch_matmul(make),
        "matrices 16 bits": batch_matmul(make, "int16"),
        "finer": requantize(make, "int8", "int8", 2.5, (3, -9)),
        "a half": requantize(make, "int8", "int8", 0.5, (0, 0)),
        "a half, few": requantize(make, "int8", "uint8", 0.5, (1, 100), 20),
        "other sign": requantize(make, "uint8", "int8", 1.0, (128, 0)),
        "and back": requantize(make, "int8", "uint8", 1.0, (0, 128)),
        "16 bits": requantize(make, "int16", "int16", 0.3, (0, 0)),
        "to 16 bits": requantize(make, "int8", "int16", 77.7, (-3, 0)),
        "from 32 bits": requantize(make, "int32", "int16", 2.0**-17, (0, 5)),
        "sums": requantize_sums(make),
        "mean": reduced(make, ReduceMean, 1.5 / 30),
        "sum": reduced(make, ReduceSum, 0.125),
        "quantize": quantize(make, "int8", 0.1, 5),
        "quantize unsigned": quantize(make, "uint8", 0.25, 130),
        "quantize 16 bits": quantize(make, "int16", 0.003, 0),
    }


def together(made: dict[str, Row]) -> tuple[Any, list[Array]]:
    """One module of them all, with an output each."""
    inputs = [array for row in made.values() for array in row.inputs]
    shapes = [relax.TensorType(array.shape, str(array.dtype)) for array in inputs]
    parameters = [relax.Var(f"x{index}", kind) for index, kind in enumerate(shapes)]
    rest, builder = iter(parameters), ModuleBuilder()
    with builder.function(parameters) as block:
        results = [
            block.emit(row.build(*(next(rest) for _ in row.inputs)), f"row{index}")
            for index, row in enumerate(made.values())
        ]
        block.finish(relax.Tuple(results))
    return builder.module, inputs


def check(made: dict[str, Row], results: list[Array], what: str) -> None:
    for (name, row), result in zip(made.items(), results, strict=True):
        assert_same(result, row.expected, f"{name}, {what}")


@pytest.mark.slow
def test_operators_give_what_single_precision_gives() -> None:
    made = rows(Maker(1))
    module, inputs = together(made)
    check(made, HostModel(compiled_module(module))(*inputs), "C")
    check(made, Executor(module).run(inputs), "meaning")
    assert min(len(np.unique(row.expected)) for row in made.values()) > 10


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["mps2_an385", "mps2_an386"])
def test_boards_give_the_same(name: str, tmp_path: Path) -> None:
    """The first has no FPU and takes integers for it."""
    board, made = board_with_tools(name), rows(Maker(2))
    module, inputs = together(made)
    target = target_of(board)
    assert target.has(["fpu"]) == (name == "mps2_an386")
    compiled = compiled_module(module, selection=Selection(target, Turn(1)))  # portable kernels
    run = run_compiled(compiled, board, [inputs], tmp_path / "project", lambda step: None).run
    check(made, run.outputs[0], name)


def with_coarse_products(make: Maker) -> dict[str, Row]:
    """Layers of which half a product is many steps, so that no kernel can leave a bias's rest out unseen."""

    def row(operator: Any, shape: tuple[int, ...], weights: tuple[int, ...], sums: Any, attrs: Any, rests: bool) -> Row:
        data, values = make.values(*shape), make.random.integers(-1, 2, weights).astype(np.int8)
        channels = sums(data, values).shape[-1]
        parts = make.random.integers(1, 128, channels) * rests
        scales = make.random.uniform(0.2, 0.9, channels).astype(np.float32)
        multiplier, shift = float32_scales(scales)
        bias = make.random.integers(-9, 9, channels).astype(np.int32)
        operands = [constant(array) for array in (values, bias, with_rests(multiplier, parts), shift)]
        total = (sums(data, values) + bias).astype(np.float32) + (parts / 128).astype(np.float32)
        expected = rounded(total, scales, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max)
        return Row(lambda x: get(operator)(x, *operands, attrs=attrs), (data,), expected)

    def window(size: int, groups: int = 1) -> Conv2dAttrs:
        border = (size // 2,) * 4
        return Conv2dAttrs((1, 1), border, (1, 1), groups, 3, -5, -120, 127, FLOAT32)

    def dense_sums(x: Array, w: Array) -> Array:
        return np.asarray((x.astype(np.int64) + 4) @ w.astype(np.int64).T)

    def layers(rests: bool) -> dict[str, Row]:
        one, three, own = window(1), window(3), window(3, 8)
        dense = FullyConnectedAttrs(-4, 9, -128, 127, FLOAT32)
        by_hand = {
            "1x1": (Conv2d, (1, 5, 6, 16), (12, 1, 1, 16), lambda x, w: convolved(x, w, one), one),
            "3x3": (Conv2d, (1, 5, 6, 4), (8, 3, 3, 4), lambda x, w: convolved(x, w, three), three),
            "depthwise": (
                *(DepthwiseConv2d, (1, 6, 7, 8), (3, 3, 8)),
                *(lambda x, w: convolved(x, w.transpose(2, 0, 1)[..., None], own), own),
            ),
            "dense": (FullyConnected, (2, 32), (16, 32), dense_sums, dense),
        }
        return {name: row(*parts, rests) for name, parts in by_hand.items()}

    state = make.random.bit_generator.state
    without = layers(False)
    make.random.bit_generator.state = state
    found = layers(True)
    for name, each in found.items():
        assert (each.expected != without[name].expected).mean() > 0.1, name
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize(("name", "family"), [("mps2_an386", "_dsp_"), ("mps3_an547", "_helium_"), ("host", "blocked")])
def test_no_kernel_leaves_out_the_rest_of_a_bias(name: str, family: str, tmp_path: Path) -> None:
    board, made = load_board(name) if name == "host" else board_with_tools(name), with_coarse_products(Maker(3))
    module, inputs = together(made)
    target = Target.of("native", ["embedded"]) if name == "host" else target_of(board)
    compiled = compiled_module(module, selection=Selection(target, Turn(0)))
    functions = [call.function for layer in compiled.program.layers for call in layer.kernel.calls]
    assert all(family in function for function in functions), functions
    run = run_compiled(compiled, board, [inputs], tmp_path / "project", lambda step: None).run
    check(made, run.outputs[0], name)


@pytest.mark.parametrize(
    ("attrs", "reason"),
    [
        (
            RequantizeAttrs(0, 0, 1 << 30, 1, -128, 127, "int8", "float16"),
            "requantize: rounding 'float16', wanted 'tflite' or 'float32'",
        ),
        (
            RequantizeAttrs(0, 0, 1 << 30, 1, -128, 127, "int32", FLOAT32),
            "requantize: output is int32, too wide for the rounding float32",
        ),
    ],
)
def test_what_is_no_rounding(attrs: RequantizeAttrs, reason: str) -> None:
    with pytest.raises(TypeError, match=f"^{reason}$"):
        get(Requantize).infer(attrs, TensorInfo((3,), "int8"))
