"""The rounding that exact meanings are made of, against whole numbers and fractions of Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import floor
from random import Random
from typing import Any

import numpy as np
import pytest

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.exact import FLOAT32, TFLITE
from uaccel.tvm_api import relax, te
from uaccel.tvm_api.executor import Executor

HALF, MOST = 1 << 30, (1 << 31) - 1
Columns = Sequence[tuple[str, Sequence[int]]]


def evaluated(function: Callable[..., Any], columns: Columns) -> list[Any]:
    """What the expression gives for each row of the columns, which are (type, values)."""
    builder = relax.BlockBuilder()
    arrays = [np.array(values, dtype) for dtype, values in columns]
    given = [relax.Var(f"x{i}", relax.TensorType(array.shape, str(array.dtype))) for i, array in enumerate(arrays)]

    def rows(*tensors: Any) -> Any:
        return te.compute(tensors[0].shape, lambda i: function(*(tensor(i) for tensor in tensors)))

    with builder.function("main", given):
        with builder.dataflow():
            result = builder.emit_output(builder.emit_te(rows, *given))
        builder.emit_func_output(result)
    return list(Executor(builder.get()).run(arrays)[0].tolist())


def away(value: Fraction) -> int:
    """To the nearest, halves away from zero."""
    return floor(value + Fraction(1, 2)) if value >= 0 else -floor(-value + Fraction(1, 2))


def upwards(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))


def wrapped(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def requantized(acc: int, multiplier: int, shift: int) -> int:
    high = upwards(Fraction(wrapped(acc << max(shift, 0)) * multiplier, 1 << 31))
    return away(Fraction(high, 1 << max(-shift, 0)))


def requantized_wide(acc: int, multiplier: int, shift: int) -> int:
    reduced = min(upwards(Fraction(multiplier, 1 << 16)), 0x7FFF)
    return upwards(Fraction(acc * reduced, 1 << (15 - shift)))


def drawn(least: int, most: int, *edges: int) -> list[int]:
    """300 numbers of all sizes, ``edges`` among them again and again."""
    draw = Random(5)
    sizes = [draw.randint(least, most) >> draw.randrange(max(1, most.bit_length())) for _ in range(300)]
    return [draw.choice((*edges, least, most)) if i % 4 == 0 else size for i, size in enumerate(sizes)]


ACC = ("int32", drawn(-MOST, MOST, 0, 5, -5, HALF, 1, -1))
WIDE = ("int64", drawn(-(1 << 44), 1 << 44, 0, 5, -5, 32768, -32768))
MULTIPLIER = ("int32", drawn(0, MOST, HALF, 0x7FFEFFFF, 0x7FFF0000, 0x7FFF7FFF, 0x7FFE8000)[::-1])
SHIFT = ("int32", [Random(i).choice((-31, -8, -2, -1, 0, 1, 2, 9)) for i in range(300)])
EXPONENT = ("int64", [i % 32 for i in range(300)])
BITS = ("int64", [i % 20 + 1 for i in range(300)])

ROWS: dict[str, tuple[Callable[..., Any], Columns, Callable[..., int]]] = {
    "wrap32": (exact.wrap32, [("int64", [*WIDE[1], 1 << 31, -(1 << 31), MOST, -(1 << 31) - 1])], wrapped),
    "clamp": (lambda x: exact.clamp(x, -7, 9), [("int32", range(-12, 13))], lambda x: max(-7, min(9, x))),
    "chosen": (lambda x: exact.chosen(x < 0, x, -x), [("int32", range(-3, 4))], lambda x: -abs(x)),
    "quotient": (
        exact.rounding_divide_by_power,
        [("int64", [*ACC[1], *range(-40, 41)]), ("int64", [*EXPONENT[1], *[3] * 81])],
        lambda x, exponent: away(Fraction(x, 1 << exponent)),
    ),
    "high word": (exact.high_mul, [ACC, MULTIPLIER], lambda a, b: upwards(Fraction(a * b, 1 << 31))),
    "requantize": (exact.requantize, [ACC, MULTIPLIER, SHIFT], requantized),
    "requantize, known": (
        lambda acc: exact.requantize_const(acc, HALF + 77, -3),
        [ACC],
        lambda acc: requantized(acc, HALF + 77, -3),
    ),
    "requantize wide": (exact.requantize_wide, [WIDE, MULTIPLIER, SHIFT], requantized_wide),
    "as TFLite": (lambda *row: exact.requantize_as(TFLITE, *row), [ACC, MULTIPLIER, SHIFT], requantized),
    "as TFLite, wide": (lambda *row: exact.requantize_as(TFLITE, *row), [WIDE, MULTIPLIER, SHIFT], requantized_wide),
    "half to even": (
        exact.round_half_even,
        [("int64", [*ACC[1][:270], *range(-15, 15)]), BITS],
        lambda x, bits: round(Fraction(x, 1 << bits)),
    ),
    "half to even, nearly": (  # of 16: 6 to 10 are as good as the middle
        lambda x: exact.round_half_even(x, 4, 2),
        [("int64", range(-64, 65))],
        lambda x: round(Fraction(x - x % 16 + 8 if 6 <= x % 16 <= 10 else x, 16)),
    ),
    "finish": (
        lambda x: exact.finish(x, -3, -100, 90, "int8"),
        [("int32", range(-110, 110))],
        lambda x: max(-100, min(90, x - 3)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_rounding(name: str) -> None:
    function, columns, wanted = ROWS[name]
    rows = zip(*(values for _, values in columns), strict=True)
    assert evaluated(function, columns) == [wanted(*row) for row in rows]


SINGLE = [  # acc, multiplier, shift, by hand
    (5, HALF, 0, 2),  # 2.5
    (7, HALF, 0, 4),
    (-5, HALF, 0, -2),
    (5, HALF + 1, 0, 3),  # 5 and 1/128, halved
    (5, HALF + 127, 0, 3),
    (0, HALF + 64, 1, 0),  # 1/2
    (1, HALF + 64, 1, 2),
    (1 << 20, HALF, 4, (1 << 23) - 1),  # saturated
    (-(1 << 20), HALF, 5, -(1 << 23)),
    (1 << 30, HALF, -30, 0),  # 1/2
    (3 << 29, HALF, -30, 1),
    ((1 << 24) + 1, HALF, -3, 1 << 20),
]


@pytest.mark.parametrize("entry", [exact.requantize_float32, lambda *row: exact.requantize_as(FLOAT32, *row)])
def test_single_precision(entry: Callable[..., Any]) -> None:
    columns = [("int32", [row[i] for row in SINGLE]) for i in range(3)]
    assert evaluated(entry, columns) == [row[3] for row in SINGLE]


def test_limits_and_shapes() -> None:
    assert [exact.limits(dtype) for dtype in ("int8", "uint8", "int16")] == [(-128, 127), (0, 255), (-32768, 32767)]
    assert exact.info(te.placeholder((2, 3), "int16")) == TensorInfo((2, 3), "int16")
