"""The TIR fallback: every row is an operator call that must compute in C what TVM computes on the host.

All rows are one translation unit and one TVM module, so that a row costs milliseconds.
"""

from __future__ import annotations

import ctypes
import operator
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.c_function import compiled, pointers, shared
from uaccel.lower.tir.function import CFunction, compile_call
from uaccel.tvm_api import is_constant, relax, tirx, tvm

OP = relax.op
Array = np.ndarray[Any, Any]


def f32(*shape: int, low: float = -3.0, high: float = 3.0) -> Array:
    return np.random.default_rng(sum(shape)).uniform(low, high, shape).astype(np.float32)


def ints(dtype: str, *shape: int, low: int | None = None, high: int | None = None) -> Array:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(sum(shape))
    return rng.integers(info.min if low is None else low, (info.max if high is None else high) + 1, shape, dtype)


def i8(*shape: int) -> Array:
    return ints("int8", *shape)


def flags(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).integers(0, 2, shape).astype(np.bool_)


def const(value: object, dtype: str = "float32") -> Any:
    return relax.const(np.array(value, dtype), dtype)


@dataclass(frozen=True)
class Case:
    """``build`` makes the call of variables for ``inputs``; TVM says what is right, unless ``expected`` does."""

    name: str
    build: Callable[..., Any]
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...] | None = None
    tolerance: float = 2e-6


def case(name: str, build: Callable[..., Any], *inputs: Array, **more: Any) -> Case:
    return Case(name, build, inputs, **more)


IMAGE, HWC, MATRIX, POSITIVE = f32(1, 3, 9, 8), f32(1, 5, 6, 3), f32(4, 6), f32(4, 6, low=0.1, high=4.0)
TALL, WIDE, SMALL = f32(4, 6), f32(1, 6), i8(4, 6)
FEW = ints("int64", 3, low=0, high=3)

CASES = [
    case("conv2d_nchw", lambda x, w: OP.nn.conv2d(x, w, padding=1), IMAGE, f32(4, 3, 3, 3), tolerance=1e-5),
    case(
        "conv2d_strided",
        lambda x, w: OP.nn.conv2d(x, w, strides=2, padding=(0, 1, 2, 1), dilation=2),
        IMAGE,
        f32(4, 3, 3, 2),
        tolerance=1e-5,
    ),
    case("conv2d_grouped", lambda x, w: OP.nn.conv2d(x, w, groups=3), IMAGE, f32(6, 1, 3, 3), tolerance=1e-5),
    case(
        "conv2d_nhwc",
        lambda x, w: OP.nn.conv2d(x, w, padding=1, data_layout="NHWC", kernel_layout="HWIO"),
        HWC,
        f32(3, 3, 3, 4),
        tolerance=1e-5,
    ),
    case("conv2d_int8", lambda x, w: OP.nn.conv2d(x, w, padding=1, out_dtype="int32"), i8(1, 3, 6, 5), i8(4, 3, 3, 3)),
    case(
        "conv2d_transpose",
        lambda x, w: OP.nn.conv2d_transpose(x, w, strides=(2, 2)),
        f32(1, 3, 4, 4),
        f32(3, 4, 3, 3),
        tolerance=1e-5,
    ),
    case("matmul", OP.matmul, f32(4, 6), f32(6, 5), tolerance=1e-5),
    case("matmul_batched", OP.matmul, f32(2, 4, 6), f32(6, 5), tolerance=1e-5),
    case("matmul_int8", lambda x, y: OP.matmul(x, y, out_dtype="int32"), i8(4, 6), i8(6, 5)),
    case("add", OP.add, MATRIX, f32(4, 6)),
    case("add_broadcast", OP.add, f32(2, 4, 6), f32(4, 1)),
    case("add_constant", lambda x: OP.add(x, const(0.123456789)), MATRIX),
    case("add_scalar_input", OP.add, MATRIX, f32()),
    case("add_constant_tensor", lambda x: OP.add(x, const(np.arange(6) / 7)), MATRIX),
    case("subtract_float64", OP.subtract, MATRIX.astype(np.float64), f32(6).astype(np.float64)),
    case("divide", OP.divide, MATRIX, POSITIVE),
    case("floor_divide_float", OP.floor_divide, MATRIX, POSITIVE),
    case("floor_mod_float", OP.floor_mod, MATRIX, POSITIVE, tolerance=1e-5),
    case("mod_float", OP.mod, MATRIX, POSITIVE, tolerance=1e-5),
    case("exp", OP.exp, MATRIX),
    case("log", OP.log, POSITIVE),
    case("tanh", OP.tanh, MATRIX),
    case("sigmoid", OP.sigmoid, MATRIX),
    case("silu", OP.nn.silu, MATRIX),
    case("erf", OP.erf, MATRIX),
    case("power", OP.power, POSITIVE, MATRIX, tolerance=1e-5),
    case("sqrt", OP.sqrt, POSITIVE),
    case("rsqrt", OP.rsqrt, POSITIVE),
    case("sin", OP.sin, MATRIX),
    case("atan2", lambda x: OP.atan2(x, x), MATRIX),
    case("abs", OP.abs, MATRIX),
    case("abs_int8", OP.abs, SMALL),
    case("negative_int8", OP.negative, SMALL),
    case("sign", OP.sign, MATRIX),
    case("floor", OP.floor, MATRIX),
    case("ceil", OP.ceil, MATRIX),
    case("round", OP.round, np.arange(-8, 8, dtype=np.float32) / 4),
    case("trunc", OP.trunc, MATRIX),
    case("isnan", OP.isnan, np.array([0, np.nan, np.inf], np.float32)),
    case("isinf", OP.isinf, np.array([0, np.nan, -np.inf], np.float32)),
    case("softmax", lambda x: OP.nn.softmax(x), f32(4, 20)),
    case("softmax_inner_axis", lambda x: OP.nn.softmax(x, axis=1), f32(2, 5, 20)),
    case("log_softmax", OP.nn.log_softmax, f32(4, 20), tolerance=1e-5),
    case(
        "layer_norm", lambda x, g, b: OP.nn.layer_norm(x, g, b, axes=[-1]), f32(5, 20), f32(20), f32(20), tolerance=1e-4
    ),
    case("rms_norm", lambda x, g: OP.nn.rms_norm(x, g, axes=[-1]), f32(5, 20), f32(20), tolerance=1e-4),
    case(
        "group_norm",
        lambda x, g, b: OP.nn.group_norm(x, g, b, num_groups=2, channel_axis=1, axes=[2, 3]),
        f32(1, 4, 3, 5),
        f32(4),
        f32(4),
        tolerance=1e-4,
    ),
    case(
        "batch_norm",
        lambda x, *p: OP.nn.batch_norm(x, *p, axis=1, training=False),
        IMAGE,
        f32(3),
        f32(3),
        f32(3),
        f32(3, low=0.5),
        tolerance=1e-5,
    ),
    case("max_pool2d", lambda x: OP.nn.max_pool2d(x, (3, 2), strides=2, padding=(1, 0)), IMAGE),
    case("max_pool2d_int8", lambda x: OP.nn.max_pool2d(x, (3, 3), padding=1), i8(1, 3, 6, 5)),
    case("avg_pool2d", lambda x: OP.nn.avg_pool2d(x, (3, 3), padding=1), IMAGE),
    case(
        "avg_pool2d_nhwc", lambda x: OP.nn.avg_pool2d(x, (2, 2), strides=2, layout="NHWC", count_include_pad=True), HWC
    ),
    case("adaptive_avg_pool2d", lambda x: OP.nn.adaptive_avg_pool2d(x, (2, 3)), IMAGE),
    case("relu", OP.nn.relu, MATRIX),
    case("relu_int8", OP.nn.relu, SMALL),
    case("leaky_relu", lambda x: OP.nn.leakyrelu(x, 0.1), MATRIX),
    case("prelu", lambda x, a: OP.nn.prelu(x, a, axis=1), MATRIX, f32(6)),
    case("gelu", OP.nn.gelu, MATRIX),
    case("gelu_tanh", OP.nn.gelu_tanh, MATRIX),
    case("softplus", OP.nn.softplus, MATRIX),
    case("clip", lambda x: OP.clip(x, -1, 1.5), MATRIX),
    case("clip_int8", lambda x: OP.clip(x, -100, 50), SMALL),
    case("maximum", OP.maximum, MATRIX, f32(6)),
    case("minimum_int32", OP.minimum, ints("int32", 4, 6), ints("int32", 6)),
    case("minimum_nan", OP.minimum, np.array([np.nan, 1, 2], np.float32), np.array([1, np.nan, 3], np.float32)),
    case("floor_divide_int32", OP.floor_divide, ints("int32", 4, 6), ints("int32", 4, 6, low=-9, high=-1)),
    case("floor_divide_constant", lambda x: OP.floor_divide(x, const(3, "int32")), ints("int32", 4, 6)),
    case("floor_mod_int32", OP.floor_mod, ints("int32", 4, 6), ints("int32", 4, 6, low=-9, high=-1)),
    case("floor_divide_uint8", OP.floor_divide, ints("uint8", 4, 6), ints("uint8", 4, 6, low=1)),
    case("divide_int32", OP.divide, ints("int32", 4, 6), ints("int32", 4, 6, low=1, high=9)),
    case("mean", lambda x: OP.mean(x, [1, 3]), IMAGE),
    case("sum", lambda x: OP.sum(x, [1], keepdims=True), MATRIX),
    case("sum_all", OP.sum, MATRIX, tolerance=1e-5),
    case("sum_int8_axis", lambda x: OP.sum(x, 1), ints("int8", 4, 6, low=-20, high=20)),
    case("sum_uint32", lambda x: OP.sum(x, 1), ints("uint32", 4, 6)),
    case("prod", lambda x: OP.prod(x, 1), MATRIX),
    case("max", lambda x: OP.max(x, [0, 2]), f32(3, 4, 5)),
    case("min_int8", lambda x: OP.min(x, 0), SMALL),
    case("variance", lambda x: OP.variance(x, 1), f32(4, 20), tolerance=1e-5),
    case("std", lambda x: OP.std(x, 1), f32(4, 20), tolerance=1e-5),
    case("argmax", lambda x: OP.argmax(x, 1), MATRIX),
    case("argmax_ties", lambda x: OP.argmax(x, 1, keepdims=True), ints("int8", 4, 30, low=-3, high=3)),
    case("argmin_all", OP.argmin, MATRIX),
    case("reshape", lambda x: OP.reshape(x, (3, 2, -1)), MATRIX),
    case("flatten", OP.flatten, IMAGE),
    case("squeeze", lambda x: OP.squeeze(x, 0), IMAGE),
    case("permute_dims", lambda x: OP.permute_dims(x, (0, 2, 3, 1)), IMAGE),
    case("expand_dims", lambda x: OP.expand_dims(x, [0, 2]), MATRIX),
    case("broadcast_to", lambda x: OP.broadcast_to(x, (3, 4, 6)), f32(4, 1)),
    case("tile", lambda x: OP.tile(x, (2, 3)), MATRIX),
    case("repeat", lambda x: OP.repeat(x, 2, 1), MATRIX),
    case("flip", lambda x: OP.flip(x, 1), MATRIX),
    case(
        "strided_slice", lambda x: OP.strided_slice(x, axes=[0, 1], begin=[0, 5], end=[3, 0], strides=[2, -2]), MATRIX
    ),
    case("concat", lambda x, y: OP.concat((x, y), 1), MATRIX, f32(4, 3)),
    case("concat_constant", lambda x: OP.concat((x, const(np.eye(6)), x), 0), MATRIX),
    case("split", lambda x: OP.split(x, [2, 3], 1), MATRIX),
    case("stack", lambda x, y: OP.stack((x, y), 1), MATRIX, f32(4, 6)),
    case("take", lambda x, i: OP.take(x, i, 1), MATRIX, FEW),
    case("take_int32", lambda x, i: OP.take(x, i, 0), SMALL, FEW.astype(np.int32)),
    case("take_constant", lambda x: OP.take(x, const([3, 0], "int64"), 0), MATRIX),
    case("gather_elements", lambda x, i: OP.gather_elements(x, i, 1), MATRIX, ints("int64", 4, 2, low=0, high=5)),
    case("gather_nd", OP.gather_nd, MATRIX, ints("int64", 3, 2, low=0, high=3)),
    case(
        "scatter_elements",
        lambda x, i, u: OP.scatter_elements(x, i, u, 0),
        MATRIX,
        ints("int64", 1, 6, low=0, high=3),
        f32(1, 6),
    ),
    case("where", OP.where, flags(4, 6), MATRIX, f32(6)),
    case("where_int8", OP.where, flags(4, 1), SMALL, i8(6)),
    case("one_hot", lambda i: OP.one_hot(i, tirx.const(2.5, "float32"), tirx.const(-1.0, "float32"), 5), FEW),
    case("cumsum", lambda x: OP.cumsum(x, 1), MATRIX),
    case("cumsum_int8", lambda x: OP.cumsum(x, 0, dtype="int32"), SMALL),
    case("cumsum_exclusive", lambda x: OP.cumsum(x, 1, exclusive=True), f32(3, 20)),
    case("bucketize", OP.bucketize, MATRIX, np.array([-2, -1, 0, 1, 2], np.float32)),
    case("less", OP.less, MATRIX, f32(6)),
    case("less_int8", OP.less, SMALL, i8(6)),
    case("equal", OP.equal, FEW, np.array([0, 1, 2], np.int64)),
    case("not_equal_constant", lambda x: OP.not_equal(x, const(3, "int8")), ints("int8", 30, low=2, high=4)),
    case("greater_equal_uint8", OP.greater_equal, ints("uint8", 40), ints("uint8", 40, low=100)),
    case("logical_and", OP.logical_and, flags(4, 6), flags(1, 6)),
    case("logical_or", OP.logical_or, flags(4, 6), flags(1, 6)),
    case("logical_xor", OP.logical_xor, flags(4, 6), flags(1, 6)),
    case("logical_not", OP.logical_not, flags(4, 6)),
    case("bitwise_and", OP.bitwise_and, ints("int32", 9), ints("int32", 9, low=-9)),
    case("bitwise_xor_uint8", OP.bitwise_xor, ints("uint8", 9), ints("uint8", 9)),
    case("bitwise_not_uint8", OP.bitwise_not, ints("uint8", 9)),
    case("bitwise_not_int64", OP.bitwise_not, ints("int64", 9)),
    case("float_to_int8", lambda x: OP.astype(x, "int8"), f32(4, 6, low=-128, high=127)),
    case("float_to_uint8", lambda x: OP.astype(x, "uint8"), f32(4, 6, low=0, high=255)),
    case("float_to_int32", lambda x: OP.astype(x, "int32"), f32(4, 6, low=-1e6, high=1e6)),
    case("float_to_bool", lambda x: OP.astype(x, "bool"), np.array([0.0, 0.5, -0.0, 3], np.float32)),
    case("float_to_double", lambda x: OP.astype(x, "float64"), MATRIX),
    case("int8_to_float", lambda x: OP.astype(x, "float32"), SMALL),
    case("int32_to_int8", lambda x: OP.astype(x, "int8"), ints("int32", 4, 6)),
    case("int8_to_uint8", lambda x: OP.astype(x, "uint8"), SMALL),
    case("int64_to_float", lambda x: OP.astype(x, "float32"), ints("int64", 9)),
    case("bool_to_float", lambda x: OP.astype(x, "float32"), flags(9)),
    case("bool_to_int64", lambda x: OP.astype(x, "int64"), flags(9)),
    case("quantize", lambda x: OP.quantize(x, const(0.02), const(-3, "int8"), out_dtype="int8"), MATRIX),
    case("quantize_uint8", lambda x: OP.quantize(x, const(0.03), const(99, "uint8"), out_dtype="uint8"), MATRIX),
    case(
        "quantize_inputs",
        lambda x, s, z: OP.quantize(x, s, z, axis=1, out_dtype="int8"),
        MATRIX,
        f32(6, low=0.01, high=0.03),
        i8(6),
    ),
    case(
        "quantize_axis",
        lambda x: OP.quantize(
            x, const([0.01, 0.02, 0.03, 0.04]), const([1, -2, 3, 0], "int8"), axis=0, out_dtype="int8"
        ),
        MATRIX,
    ),
    case("dequantize", lambda x: OP.dequantize(x, const(0.02), const(-3, "int8"), out_dtype="float32"), SMALL),
    case(
        "dequantize_axis",
        lambda x: OP.dequantize(
            x, const([0.01, 0.02, 0.03, 0.04]), const([1, -2, 3, 0], "int8"), axis=0, out_dtype="float32"
        ),
        SMALL,
    ),
    case(
        "dequantize_int32",
        lambda x: OP.dequantize(x, const(0.02), const(0, "int32"), out_dtype="float32"),
        ints("int32", 4, 6),
    ),
    case("resize_nearest", lambda x: OP.image.resize2d(x, (7, 11), method="nearest_neighbor", layout="NHWC"), HWC),
    case(
        "resize_nearest_int8",
        lambda x: OP.image.resize2d(
            x,
            (7, 11),
            method="nearest_neighbor",
            layout="NCHW",
            coordinate_transformation_mode="asymmetric",
            rounding_method="floor",
        ),
        i8(1, 2, 4, 5),
    ),
    case("resize_linear", lambda x: OP.image.resize2d(x, (7, 11), method="linear", layout="NHWC"), HWC, tolerance=1e-5),
    case(
        "resize_linear_corners",
        lambda x: OP.image.resize2d(
            x, (7, 3), method="linear", layout="NCHW", coordinate_transformation_mode="align_corners"
        ),
        IMAGE,
        tolerance=1e-5,
    ),
    case("resize_cubic", lambda x: OP.image.resize2d(x, (7, 11), method="cubic", layout="NHWC"), HWC, tolerance=1e-4),
    case("pad", lambda x: OP.nn.pad(x, (0, 0, 1, 2), pad_value=1.5), MATRIX),
    case("pad_reflect", lambda x: OP.nn.pad(x, (1, 1, 2, 2), pad_mode="reflect"), MATRIX),
    case("attention", OP.nn.attention, f32(1, 4, 2, 8), f32(1, 4, 2, 8), f32(1, 4, 2, 8), tolerance=1e-5),
    case("einsum", lambda x, y: OP.einsum((x, y), "ij,jk->ki"), f32(4, 6), f32(6, 5), tolerance=1e-5),
    case("full_like", lambda x: OP.full_like(x, const(2.0)), MATRIX),
    case("tril", OP.tril, f32(5, 5)),
    case("meshgrid", lambda x, y: OP.meshgrid((x, y)), f32(4), f32(3)),
]


def extreme(dtype: str) -> Array:
    """Values at which arithmetic of a type goes wrong."""
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, -1, 0, 1, 2, 7, info.max - 1, info.max]
    return np.array([v for v in values if v >= info.min], dtype)


def pairs(values: Array) -> tuple[Array, Array]:
    left, right = np.meshgrid(values, values)
    return left.ravel().copy(), right.ravel().copy()


def wrap_to(values: Sequence[int], dtype: str) -> Array:
    bits = np.iinfo(dtype).bits
    return np.array([v % (1 << bits) for v in values], f"uint{bits}").view(dtype)


def exact(name: str, build: Callable[..., Any], function: Callable[[int, int], int], dtype: str) -> Case:
    """An operator on all pairs of extreme values, against Python's integers modulo 2**bits."""
    left, right = pairs(extreme(dtype))
    result = wrap_to([function(int(a), int(b)) for a, b in zip(left, right, strict=True)], dtype)
    return Case(f"wrap_{name}_{dtype}", build, (left, right), (result,))


def truncated(values: Array, dtype: str) -> Array:
    """To the nearest int32 (int64), towards zero, NaN to 0; then the low bits."""
    info = np.iinfo("int64" if np.iinfo(dtype).bits == 64 else "int32")
    whole = [0 if np.isnan(v) else max(info.min, min(info.max, int(np.clip(float(v), -1e30, 1e30)))) for v in values]
    return wrap_to(whole, dtype)


INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
NARROW = ("int8", "uint8", "int16", "int32", "int64")
WILD = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 1e20, -1e20, 300.7, -129.9, 2147483648.0, 0.99], np.float32)

SHIFTS = {"int8": 32, "int32": 32, "uint32": 32, "int64": 64}
"""Distances count modulo this."""


def modulo(shift: Callable[[int, int], int], width: int) -> Callable[[int, int], int]:
    return lambda value, distance: shift(value, distance % width)


EXTREMES = [
    *(exact("add", OP.add, lambda a, b: a + b, dtype) for dtype in INTEGERS),
    *(exact("subtract", OP.subtract, lambda a, b: a - b, dtype) for dtype in INTEGERS),
    *(exact("multiply", OP.multiply, lambda a, b: a * b, dtype) for dtype in INTEGERS),
    *(exact("floor_divide", OP.floor_divide, lambda a, b: a // b if b else 0, dtype) for dtype in INTEGERS),
    *(exact("floor_mod", OP.floor_mod, lambda a, b: a % b if b else 0, dtype) for dtype in INTEGERS),
    *(exact("bitwise_or", OP.bitwise_or, lambda a, b: a | b, dtype) for dtype in INTEGERS),
    *(exact("maximum", OP.maximum, max, dtype) for dtype in INTEGERS),
    *(exact("left_shift", OP.left_shift, modulo(operator.lshift, w), d) for d, w in SHIFTS.items()),
    *(exact("right_shift", OP.right_shift, modulo(operator.rshift, w), d) for d, w in SHIFTS.items()),
    *(Case(f"wild_to_{d}", partial(OP.astype, dtype=d), (WILD,), (truncated(WILD, d),)) for d in NARROW),
    Case(
        "take_out_of_range",
        lambda x, i: OP.take(x, i, 0),
        (np.arange(4, dtype=np.int8), np.array([-(2**63), -1, 4, 2**63 - 1], np.int64)),
        (np.array([0, 0, 3, 3], np.int8),),
    ),
    Case("negative", OP.negative, (extreme("int32"),), (wrap_to([-int(v) for v in extreme("int32")], "int32"),)),
    Case("sum_wraps", OP.sum, (np.full(5, 2**31 - 1, np.int32),), (wrap_to([5 * (2**31 - 1)], "int32").reshape(()),)),
]


def variables(inputs: Sequence[Array]) -> list[Any]:
    return [relax.Var(f"x{i}", relax.TensorType(a.shape, str(a.dtype))) for i, a in enumerate(inputs)]


def operands(arguments: Sequence[Any], values: dict[str, Array]) -> Iterator[Array]:
    """The data of a call's tensors in order, constants included."""
    for argument in arguments:
        if isinstance(argument, relax.Tuple):
            yield from operands(argument.fields, values)
        elif isinstance(argument, relax.Var):
            yield values[argument.name]
        elif is_constant(argument):
            yield argument.value.numpy()


@dataclass(frozen=True)
class Built:
    """A case as C, with the data for each of its parameters."""

    case: Case
    function: CFunction
    data: tuple[Array, ...]


def built(row: Case) -> Built:
    parameters = variables(row.inputs)
    call = row.build(*parameters)
    values = {p.name: a for p, a in zip(parameters, row.inputs, strict=True)}
    return Built(row, compile_call(call, f"op_{row.name}"), tuple(operands(call.args, values)))


ROWS = [*CASES, *EXTREMES]


@pytest.fixture(scope="module")
def rows() -> dict[str, Built]:
    return {row.name: built(row) for row in ROWS}


def harness(row: Built) -> str:
    """A function that calls the row's with arrays of pointers."""
    f = row.function
    arguments = [f"in[{i}]" for i in range(len(f.inputs))] + [f"out[{i}]" for i in range(len(f.outputs))]
    arguments += ["scratch"] if f.scratch_bytes else []
    return (
        f"void run_{row.case.name}(const void *const *in, void *const *out, void *scratch);\n"
        f"void run_{row.case.name}(const void *const *in, void *const *out, void *scratch)\n"
        f"{{\n    (void)in;\n    (void)scratch;\n    {f.name}({', '.join(arguments)});\n}}\n"
    )


def translation_unit(rows: dict[str, Built]) -> str:
    headers = sorted({header for row in rows.values() for header in row.function.headers})
    includes = "".join(f"#include <{header}>\n" for header in headers)
    return includes + "".join(row.function.source + harness(row) for row in rows.values())


@pytest.fixture(scope="module")
def library(rows: dict[str, Built], tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return shared(tmp_path_factory.mktemp("tir_c"), translation_unit(rows))


def outputs_of(row: Built) -> list[Array]:
    return [np.zeros(info.shape, info.dtype) for info in row.function.outputs]


def execute(library: ctypes.CDLL, row: Built) -> list[Array]:
    outputs = outputs_of(row)
    scratch = np.zeros(row.function.scratch_bytes // 8 + 1, np.uint64)

    getattr(library, f"run_{row.case.name}")(
        pointers(row.data), pointers(outputs), ctypes.c_void_p(scratch.ctypes.data)
    )
    return outputs


@pytest.fixture(scope="module")
def host() -> Any:
    """All rows as one TVM module on the host."""
    builder = relax.BlockBuilder()
    for row in CASES:
        parameters = variables(row.inputs)
        with builder.function(row.name, parameters):
            builder.emit_func_output(builder.emit(row.build(*parameters)))
    return relax.VirtualMachine(relax.build(builder.get(), "llvm"), tvm.cpu())


def on_host(host: Any, row: Case) -> list[Array]:
    result = host[row.name](*(tvm.runtime.tensor(a) for a in row.inputs))
    return [part.numpy() for part in (result if isinstance(result, (list, tuple, tvm.ir.Array)) else [result])]


def assert_same(ours: Sequence[Array], wanted: Sequence[Array], tolerance: float) -> None:
    assert [(a.shape, a.dtype) for a in ours] == [(a.shape, a.dtype) for a in wanted]
    for got, want in zip(ours, wanted, strict=True):
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(got, want)


@pytest.mark.sample(30)
@pytest.mark.parametrize("name", [row.name for row in CASES])
def test_computes_what_tvm_computes(name: str, rows: dict[str, Built], library: ctypes.CDLL, host: Any) -> None:
    row = rows[name]
    assert_same(execute(library, row), on_host(host, row.case), row.case.tolerance)


@pytest.mark.parametrize("name", [row.name for row in EXTREMES])
def test_integers_wrap(name: str, rows: dict[str, Built], library: ctypes.CDLL) -> None:
    expected = rows[name].case.expected
    assert expected is not None
    assert_same(execute(library, rows[name]), expected, 0)


@pytest.mark.parametrize("compiler", ["clang"])
def test_nothing_to_warn_of(compiler: str, rows: dict[str, Built], tmp_path: Path) -> None:
    compiled(tmp_path, translation_unit(rows), compiler, "-fsyntax-only")


def main_program(rows: dict[str, Built]) -> str:
    """Reads the inputs of every row from stdin into memory of just their size, writes the outputs to stdout."""
    calls = []
    for row in rows.values():
        sizes_in = ", ".join(str(max(a.nbytes, 1)) for a in row.data) or "1"
        sizes_out = ", ".join(str(info.size) for info in row.function.outputs)
        calls.append(
            f"    {{\n        const size_t in[] = {{{sizes_in}}}, out[] = {{{sizes_out}}};\n"
            f"        run(run_{row.case.name}, in, {len(row.data)}, out, {len(row.function.outputs)},"
            f" {row.function.scratch_bytes});\n    }}\n"
        )
    return f"""
#include <stdio.h>
#include <stdlib.h>
typedef void function(const void *const *, void *const *, void *);
static void run(function *f, const size_t *in, size_t ins, const size_t *out, size_t outs, size_t scratch)
{{
    void *from[8], *to[8], *memory = malloc(scratch + 1);
    const void *constant[8];
    for (size_t i = 0; i < ins; ++i) {{
        constant[i] = from[i] = malloc(in[i]);
        if (fread(from[i], in[i], 1, stdin) != 1) {{ exit(2); }}
    }}
    for (size_t i = 0; i < outs; ++i) {{ to[i] = malloc(out[i]); }}
    f(constant, to, memory);
    for (size_t i = 0; i < outs; ++i) {{ fwrite(to[i], out[i], 1, stdout); free(to[i]); }}
    for (size_t i = 0; i < ins; ++i) {{ free(from[i]); }}
    free(memory);
}}
int main(void)
{{
{"".join(calls)}    return 0;
}}
"""


@pytest.mark.slow
def test_sanitizers_find_nothing(rows: dict[str, Built], library: ctypes.CDLL, tmp_path: Path) -> None:
    flags = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-lm")
    program = compiled(tmp_path, translation_unit(rows) + main_program(rows), "gcc", *flags)
    stdin = b"".join(a.tobytes() for row in rows.values() for a in row.data)
    done = subprocess.run([str(program)], input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[:3000]
    same = b"".join(a.tobytes() for row in rows.values() for a in execute(library, row))
    assert done.stdout == same


def local_arrays(source: str) -> Iterator[int]:
    """Sizes in bytes of the arrays on the stack."""
    sizes = {"bool": 1, "float": 4, "double": 8}
    for kind, count in re.findall(r"^ +(\w+) \w+\[(\d+)\];", source, re.MULTILINE):
        yield int(count) * sizes.get(kind, int(re.sub(r"\D", "", kind) or 0) // 8)


def test_text_is_plain_and_frugal_with_the_stack(rows: dict[str, Built]) -> None:
    assert len(rows) == len(ROWS), "row names must be unique"
    for row in rows.values():
        source = row.function.source
        assert not re.search("tvm|malloc|alloca|#include|#pragma", source, re.IGNORECASE), row.case.name
        assert max(local_arrays(source), default=0) <= 64, row.case.name
        assert max(len(line) for line in source.splitlines()) <= 120, row.case.name
    assert any(list(local_arrays(row.function.source)) for row in rows.values())


def test_same_text_for_the_same_call(rows: dict[str, Built]) -> None:
    for name in ("attention", "resize_cubic", "softmax", "concat_constant"):
        assert built(rows[name].case).function == rows[name].function
