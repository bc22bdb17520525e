"""The TIR fallback as its callers see it: text, parameters, scratch memory, refusals; and its arithmetic in depth."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.c_function import called, shared
from uaccel.errors import ModelError
from uaccel.lower.tir.expression import ExpressionPrinter, Scope
from uaccel.lower.tir.function import Demand, compile_call, place
from uaccel.lower.tir.value import as_type, cast, name_of
from uaccel.model import TensorInfo
from uaccel.tvm_api import make_call, register_operator, relax, tirx
from uaccel.util.c_text import c_type

OP = relax.op


def var(name: str, shape: tuple[Any, ...], dtype: str = "float32") -> Any:
    return relax.Var(name, relax.TensorType(shape, dtype))


X = var("x", (4, 6))

GELU = """\
static void gelu(const float *in0, float *out0)
{
    for (int32_t ax0 = 0; ax0 < 4; ++ax0) {
        for (int32_t ax1 = 0; ax1 < 6; ++ax1) {
            const int32_t common1 = ax0 * 6 + ax1;
            out0[common1] = in0[common1] * (0.5f + erff(in0[common1] * 0.70710677f) * 0.5f);
        }
    }
}
"""

MATMUL = """\
static void product(const int8_t *in0, const int8_t *in1, int32_t *out0)
{
    for (int32_t i0 = 0; i0 < 4; ++i0) {
        for (int32_t i1 = 0; i1 < 3; ++i1) {
            const int32_t common1 = i0 * 3 + i1;
            int32_t acc = 0;
            for (int32_t k = 0; k < 6; ++k) {
                acc += in0[i0 * 6 + k] * in1[k * 3 + i1];
            }
            out0[common1] = acc;
        }
    }
}
"""

CAST = """\
#ifndef UACCEL_F32_TO_I32
#define UACCEL_F32_TO_I32
static inline int32_t uaccel_f32_to_i32(float x)
{
    if (x >= 2147483648.0f) {
        return INT32_MAX;
    }
    if (x <= -2147483648.0f) {
        return INT32_MIN;
    }
    return x == x ? (int32_t)x : 0;
}
#endif

static void narrow(const float *in0, int8_t *out0)
{
    for (int32_t i0 = 0; i0 < 4; ++i0) {
        for (int32_t i1 = 0; i1 < 6; ++i1) {
            const int32_t common1 = i0 * 6 + i1;
            out0[common1] = (int8_t)uaccel_f32_to_i32(in0[common1]);
        }
    }
}
"""


@pytest.mark.parametrize(
    ("name", "call", "source", "headers"),
    [
        ("gelu", OP.nn.gelu(X), GELU, ("math.h", "stdint.h")),
        (
            "product",
            OP.matmul(var("x", (4, 6), "int8"), var("y", (6, 3), "int8"), out_dtype="int32"),
            MATMUL,
            ("stdint.h",),
        ),
        ("narrow", OP.astype(X, "int8"), CAST, ("stdint.h",)),
    ],
)
def test_text(name: str, call: Any, source: str, headers: tuple[str, ...]) -> None:
    function = compile_call(call, name)
    assert function.source == source
    assert function.headers == headers


def test_parameters_are_the_tensors_in_order() -> None:
    """Tuples flat, constants in their place; a scalar constant is in the code, its parameter for the order alone."""
    scale, zero = relax.const(np.float32(0.5), "float32"), relax.const(np.int8(3), "int8")
    quantize = compile_call(OP.quantize(X, scale, zero, out_dtype="int8"), "q")
    assert quantize.inputs == (TensorInfo((4, 6), "float32"), TensorInfo((), "float32"), TensorInfo((), "int8"))
    assert (quantize.outputs, quantize.used_inputs) == ((TensorInfo((4, 6), "int8"),), (0,))
    pair = relax.Var(
        "pair", relax.TupleType([relax.TensorType((2, 6), "float32"), relax.TensorType((4, 6), "float32")])
    )
    stacked = compile_call(OP.concat(pair, 0), "s")
    assert [info.shape for info in stacked.inputs] == [(2, 6), (4, 6)]
    pieces = compile_call(OP.split(X, 2, 1), "p")
    assert [info.shape for info in pieces.outputs] == [(4, 3), (4, 3)]


def test_unused_parameter_may_be_null(tmp_path: Path) -> None:
    call = OP.multiply(X, relax.const(np.float32(0.5), "float32"))
    data = np.arange(24, dtype=np.float32).reshape(4, 6)
    (result,) = called(tmp_path, compile_call(call, "half"), [data, None])
    np.testing.assert_array_equal(result, data / 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            OP.topk(X, 3),
            "relax.topk of float32 [4,6] has no plain C: it calls into a run time that plain C does not have"
            " (call_packed); replace the operator in the model, or give it to an accelerator",
        ),
        (
            OP.unique(X),
            "relax.unique of float32 [4,6] has no plain C: it calls into a run time that plain C does not have;"
            " replace the operator in the model, or give it to an accelerator",
        ),
        (
            OP.exp(var("x", (4, 6), "float16")),
            "relax.exp of float16 [4,6] has no plain C: C99 has no type float16; replace the operator in the model,"
            " or give it to an accelerator",
        ),
        (
            OP.astype(X, "bfloat16"),
            "relax.astype of float32 [4,6] has no plain C: C99 has no type bfloat16; replace the operator in the"
            " model, or give it to an accelerator",
        ),
        (
            OP.exp(var("x", (tirx.Var("n", "int64"), 6))),
            'relax.exp of float32 [n,6] has no plain C: the shape of R.Tensor((n, 6), dtype="float32") is only known'
            " at run time; replace the operator in the model, or give it to an accelerator",
        ),
        (
            OP.power(var("x", (4, 6), "int32"), var("y", (4, 6), "int32")),
            "relax.power of int32 [4,6], int32 [4,6] has no plain C: TVM cannot express it for these types, shapes and"
            " options; replace the operator in the model, or give it to an accelerator",
        ),
    ],
    ids=["topk", "unique", "float16", "bfloat16", "dynamic", "power"],
)
def test_refuses_in_one_line(call: Any, message: str) -> None:
    with pytest.raises(ModelError) as refusal:
        compile_call(call, "f")
    assert str(refusal.value) == message


def chained(builder: Any, call: Any) -> Any:
    """x -> (x + table) * 2, x, x + table: three functions' worth, a constant of its own, its input, a tensor twice."""
    table = relax.const(np.arange(24, dtype=np.float32).reshape(4, 6) / 7, "float32")
    first = builder.emit(OP.add(call.args[0], table))
    second = builder.emit(OP.multiply(first, relax.const(np.float32(2), "float32")))
    return relax.Tuple([second, call.args[0], first, first])


def test_several_functions_become_one(tmp_path: Path) -> None:
    kind = relax.TensorType((4, 6), "float32")
    register_operator("uaccel_test.chain", "", 1, lambda call, context: relax.TupleType([kind] * 4), chained)
    function = compile_call(make_call("uaccel_test.chain", [X], {}), "chain")
    data = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
    shifted = data + np.arange(24, dtype=np.float32).reshape(4, 6) / np.float32(7)
    results = called(tmp_path, function, [data])
    for got, want in zip(results, (shifted * 2, data, shifted, shifted), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_scratch_places_do_not_overlap_while_alive() -> None:
    rng = random.Random(1)
    for _ in range(200):
        demands = []
        for key in range(rng.randrange(1, 12)):
            first = rng.randrange(10)
            demands.append(Demand(key, rng.randrange(65, 400), first, first + rng.randrange(4)))
        offsets, total = place(demands)
        assert all(offsets[d.key] % 8 == 0 and offsets[d.key] + d.size <= total for d in demands)
        for a in demands:
            for b in demands:
                apart = offsets[a.key] + a.size <= offsets[b.key] or offsets[b.key] + b.size <= offsets[a.key]
                meet = a.first <= b.last and b.first <= a.last
                assert a.key == b.key or apart or not meet


def test_scratch_is_reused() -> None:
    """Three steps that each need the one before: two places do."""
    demands = [Demand("a", 800, 1, 2), Demand("b", 400, 2, 3), Demand("c", 800, 3, 4)]
    assert place(demands) == ({"a": 0, "c": 0, "b": 800}, 1200)


def test_scratch_is_planned_better_than_by_size() -> None:
    """The largest first, each at the lowest place, would take 800 bytes: the second largest would lie above a gap."""
    demands = [Demand("a", 320, 0, 0), Demand("b", 160, 1, 3), Demand("c", 320, 0, 1), Demand("d", 400, 2, 3)]
    assert place(demands)[1] == 640


# Random integer expressions: what they compute, and what the printer knows of it, against Python's integers.

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
VARIABLES = {dtype: tirx.Var(f"v_{dtype}", dtype) for dtype in INTEGERS}
Environment = dict[str, int]
Expression = tuple[Any, Callable[[Environment], int]]


def wrap(value: int, dtype: str) -> int:
    bits = np.iinfo(dtype).bits
    value %= 1 << bits
    return value - (1 << bits) if dtype.startswith("int") and value >> (bits - 1) else value


def truncating_quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY: list[tuple[Any, Callable[[int, int], int]]] = [
    (tirx.Add, lambda a, b: a + b),
    (tirx.Sub, lambda a, b: a - b),
    (tirx.Mul, lambda a, b: a * b),
    (tirx.FloorDiv, lambda a, b: a // b if b else 0),
    (tirx.FloorMod, lambda a, b: a % b if b else 0),
    (tirx.Div, truncating_quotient),
    (tirx.Mod, lambda a, b: a - truncating_quotient(a, b) * b if b else 0),
    (tirx.Min, min),
    (tirx.Max, max),
    (tirx.BitwiseAnd, lambda a, b: a & b),
    (tirx.BitwiseOr, lambda a, b: a | b),
    (tirx.BitwiseXor, lambda a, b: a ^ b),
]


def leaf(rng: random.Random, dtype: str) -> Expression:
    if rng.random() < 0.6:
        return VARIABLES[dtype], lambda env: env[dtype]
    info = np.iinfo(dtype)
    value = wrap(rng.choice([0, 1, 2, 3, -1, -5, 100, int(info.min), int(info.max) // 3, -(1 << 33)]), dtype)
    value = min(value, 2**63 - 1)
    return tirx.IntImm(dtype, value), lambda env: value


def expression(rng: random.Random, dtype: str, depth: int) -> Expression:
    if depth == 0:
        return leaf(rng, dtype)
    kind = rng.choice(["binary", "binary", "binary", "shift", "not", "cast", "select"])
    if kind == "cast":
        source = rng.choice([other for other in INTEGERS if other != dtype])
        inner, value = expression(rng, source, depth - 1)
        return tirx.Cast(dtype, inner), lambda env: wrap(value(env), dtype)
    first, left = expression(rng, dtype, depth - 1)
    if kind == "not":
        return tirx.BitwiseNot(first), lambda env: wrap(~left(env), dtype)
    second, right = expression(rng, dtype, depth - 1)
    if kind == "shift":
        width = max(32, np.iinfo(dtype).bits)
        if rng.random() < 0.5:
            return tirx.LShift(first, second), lambda env: wrap(left(env) << (right(env) % width), dtype)
        return tirx.RShift(first, second), lambda env: left(env) >> (right(env) % width)
    if kind == "select":
        low, high = (expression(rng, rng.choice(INTEGERS), 0) for _ in range(2))
        other = tirx.Cast(low[0].ty.dtype, high[0]) if str(high[0].ty) != str(low[0].ty) else high[0]
        target = str(low[0].ty.dtype)
        chosen = tirx.Select(tirx.LT(low[0], other), first, second)
        return chosen, lambda env: left(env) if low[1](env) < wrap(high[1](env), target) else right(env)
    node, function = rng.choice(BINARY)
    return node(first, second), lambda env: wrap(function(left(env), right(env)), dtype)


def environment(rng: random.Random) -> Environment:
    result = {}
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        result[dtype] = rng.choice([low, high, 0, 1, high - 1, max(low, -1), rng.randrange(low, high + 1)])
    return result


def test_random_integer_expressions(tmp_path: Path) -> None:
    rng = random.Random(7)
    scope = Scope({variable: name_of(variable.name, dtype) for dtype, variable in VARIABLES.items()})
    printer = ExpressionPrinter(scope)
    parameters = ", ".join(f"{c_type(dtype)} v_{dtype}" for dtype in INTEGERS)
    unused = " ".join(f"(void)v_{dtype};" for dtype in INTEGERS)
    cases, text = [], ""
    for index in range(300):
        node, meaning = expression(rng, rng.choice(INTEGERS), rng.randrange(1, 5))
        value = printer(node)
        wide = "uint64" if value.dtype == "uint64" else "int64"
        head = f"{c_type(wide)} f{index}({parameters})"
        text += f"{head};\n{head}\n{{\n    {unused}\n    return {cast(as_type(value, wide), wide).text};\n}}\n"
        cases.append((node, meaning, value, wide))
    # Nobody writes what these find: an expression compared with itself, or a type's bounds passed by another way.
    quiet = ("-Wno-tautological-compare", "-Wno-type-limits", "-Wno-sign-compare", "-Wno-sign-conversion")
    source = "#include <stdbool.h>\n#include <stdint.h>\n" + scope.helpers.define(text) + text
    library = shared(tmp_path, source, *quiet, "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")
    for index, (node, meaning, value, wide) in enumerate(cases):
        function = getattr(library, f"f{index}")
        function.restype = getattr(ctypes, f"c_{wide}")
        function.argtypes = [getattr(ctypes, f"c_{dtype}") for dtype in INTEGERS]
        for _ in range(20):
            env = environment(rng)
            wanted = meaning(env)
            assert function(*env.values()) == wanted, f"{node} as {value.text} with {env}"
            assert value.low <= wanted <= value.high, f"{node} as {value.text} with {env}: bounds"
