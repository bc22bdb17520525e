"""Comparisons, DIV, SELECT_V2, ADD_N, CUMSUM, RSQRT on int16: generated C, exact meaning and TFLite Micro agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row, many
from support.models.single_op import Activation, Constant
from support.oracle.exactness import assert_exact, assert_exact_random, assert_same
from support.oracle.oracle import Array, Tflm, random_inputs
from support.oracle.refusal import refused
from support.oracle.sanitized import assert_clean
from uaccel.ops.fixedpoint import quantize_multiplier
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import run_compiled

COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
Scales = tuple[tuple[float, int], tuple[float, int]]
PAIRS: tuple[Scales, ...] = (
    ((0.1, 3), (0.07, -2)),
    ((0.5, -128), (0.25, 127)),
    ((0.003, 3), (0.00301, -2)),
    ((0.99, 0), (1e-6, 0)),
)
STORED = np.arange(-128, 128).astype(np.int8)
ALL = [STORED.reshape(256, 1), STORED]
"""Every pair of stored values, by broadcasting."""
RNG = np.random.default_rng(5)


def comparison(operator: str, scales: Scales) -> Row:
    (scale1, point1), (scale2, point2) = scales
    inputs = [Activation((256, 1), "int8", scale1, point1), Activation((256,), "int8", scale2, point2)]
    return Row(operator, inputs, [Activation((256, 256), "bool")])


@pytest.mark.sample(1)
@pytest.mark.parametrize("scales", PAIRS, ids=str)
def test_comparisons(scales: Scales) -> None:
    """Of all pairs, at scales where comparing real numbers would differ."""
    data = many({operator: comparison(operator, scales) for operator in COMPARISONS})
    assert_exact(data, [ALL * len(COMPARISONS)], meaning=False)


def test_real_numbers_compare_otherwise() -> None:
    """So that the test above tells."""
    (scale1, point1), (scale2, point2) = PAIRS[2]
    first, second = scale1 * (ALL[0].astype(int) - point1), scale2 * (ALL[1].astype(int) - point2)
    (got,) = Tflm(many({"row": comparison("GREATER", PAIRS[2])})).run(ALL)
    assert np.count_nonzero(got != (first > second)) > 100


def quotient(scales: tuple[float, float, float], points: tuple[int, int, int], activation: str = "NONE") -> Row:
    inputs = [Activation((256, 1), "int8", scales[0], points[0]), Activation((256,), "int8", scales[1], points[1])]
    output = Activation((256, 256), "int8", scales[2], points[2])
    return Row("DIV", inputs, [output], {"fused_activation_function": activation})


DIVISIONS = {
    "equal scales": quotient((0.1, 0.1, 0.1), (3, 3, 3)),
    "fine output": quotient((0.1, 0.1, 0.01), (0, 0, 0)),
    "points at the edges": quotient((0.05, 0.02, 0.3), (-128, -128, -100)),
    "finest output": quotient((0.01, 0.5, 0.0005), (5, -7, 2)),
    "ones": quotient((1.0, 1.0, 1.0), (5, -7, 2)),
    "relu6": quotient((0.1, 0.1, 0.1), (3, 3, 3), "RELU6"),
    "shifts of 31 bits at most": quotient((0.5, 0.001, 0.01), (0, 0, 0)),
}


def shifts(row: Row) -> Array:
    """By how many bits the reference shifts each quotient to the right; more than 31 are undefined in C."""
    (first, second), (output,) = row.inputs, row.outputs
    assert isinstance(first, Activation)
    assert isinstance(second, Activation)
    reals = [float(np.float32(tensor.scale or 0)) for tensor in (first, second, output)]
    _, shift = quantize_multiplier(reals[0] / (reals[1] * reals[2]))
    dividend, divisor = ALL[0].astype(int) - first.zero_point, ALL[1].astype(int) - second.zero_point
    signed = np.where(divisor < 0, -dividend, dividend)
    bits = np.vectorize(lambda value: int(value).bit_length())
    room = 31 - bits(np.where(signed < 0, -signed - 1, signed))
    return np.asarray(bits(np.abs(divisor)) - 1 + room - shift)


@pytest.mark.parametrize("name", DIVISIONS)
def test_div(name: str) -> None:
    """All pairs. Where the reference shifts by more than 31 bits, its bytes are those of its compiler; here they are
    the quotient's, which rounds to zero. Divisions by zero are the reference's."""
    row = DIVISIONS[name]
    data, defined = many({name: row}), shifts(row) <= 31
    (expected,) = Tflm(data).run(ALL)
    (got,) = HostModel(compile_bytes(data))(*ALL)
    wanted = np.where(defined, expected, row.outputs[0].zero_point)
    assert_same(got, wanted.astype(np.int8), name)
    assert defined.mean() > 0.9
    assert defined[:, row_zero(row)].all()


def row_zero(row: Row) -> int:
    """The column of divisions by zero."""
    divisor = row.inputs[1]
    assert isinstance(divisor, Activation)
    return divisor.zero_point + 128


def rows() -> dict[str, Row]:
    """The other operators, small."""
    i8 = [Activation((2, 6, 3), "int8", 0.1, 5)] * 5
    i16 = Activation((2, 7), "int16", 0.01)
    found = {
        f"CUMSUM {axis} {exclusive} {reverse}": Row(
            "CUMSUM",
            [i8[0], Constant(np.array(axis, np.int32))],
            [Activation((2, 6, 3), "int8", 0.3, -9)],
            {"exclusive": bool(exclusive), "reverse": bool(reverse)},
        )
        for axis, exclusive, reverse in ((0, 0, 0), (1, 1, 0), (-1, 0, 1), (1, 1, 1), (1, 0, 0))
    }
    found |= {
        f"ADD_N of {count}": Row("ADD_N", i8[:count], [Activation((2, 6, 3), "int8", 0.35, 2)]) for count in (2, 3, 5)
    }
    kinds: tuple[tuple[str, float | None], ...] = (("int8", 0.1), ("int16", 0.01), ("float32", None))
    for dtype, scale in kinds:
        chosen = [Activation((2, 3), "bool"), Activation((2, 3), dtype, scale), Activation((3,), dtype, scale)]
        found[f"SELECT_V2 {dtype}"] = Row("SELECT_V2", chosen, [Activation((2, 3), dtype, scale)])
    numbers = [Activation((4, 5), "int32"), Activation((5,), "int32")]
    found["SQUARED_DIFFERENCE int32"] = Row("SQUARED_DIFFERENCE", numbers, [Activation((4, 5), "int32")])
    found["CUMSUM float"] = Row(
        "CUMSUM",
        [Activation((3, 4), "float32"), Constant(np.array(1, np.int32))],
        [Activation((3, 4), "float32")],
        {"exclusive": False, "reverse": True},
    )
    for output in (0.1, 0.003):
        found[f"RSQRT {output}"] = Row("RSQRT", [i16], [Activation((2, 7), "int16", output)])
    return found


def inputs_of(data: bytes, runs: int) -> list[list[Array]]:
    """Small int8 values, so that sums do not saturate, and int16 ones that have a root."""
    found = [
        [np.abs(v) if v.dtype == np.int16 else v % 13 - 6 if v.dtype == np.int8 else v for v in run]
        for run in random_inputs(data, 3, runs)
    ]
    return [[np.maximum(v, 0) if v.dtype == np.int16 else v for v in run] for run in found]


def test_others() -> None:
    data = many(rows())
    assert_exact(data, inputs_of(data, 9), meaning=False)


def test_every_root() -> None:
    values = np.arange(32768).astype(np.int16)
    row = Row("RSQRT", [Activation((32768,), "int16", 0.01)], [Activation((32768,), "int16", 0.02)])
    assert_exact(many({"row": row}), [[values]], meaning=False)


def test_long_sums_wrap() -> None:
    """As the reference's 32 bits do."""
    inputs: list[Activation | Constant] = [Activation((1, 90), "int8", 0.1, -128), Constant(np.array(1, np.int32))]
    row = Row("CUMSUM", inputs, [Activation((1, 90), "int8", 0.9, 0)], {"exclusive": False, "reverse": False})
    assert_exact_random(many({"row": row}), runs=5, meaning=False)


@pytest.mark.long
def test_meaning() -> None:
    data = many(rows())
    assert_exact(data, inputs_of(data, 3))


@pytest.mark.slow
def test_meaning_of_quotients_and_comparisons() -> None:
    """Some pairs, zero among them."""
    inputs = [Activation((6, 1), "int8", 0.1, 5), Activation((5,), "int8", 0.1, -7)]
    kinds = {operator: Row(operator, inputs, [Activation((6, 5), "bool")]) for operator in COMPARISONS}
    kinds["DIV"] = Row("DIV", inputs, [Activation((6, 5), "int8", 0.01, 2)])
    pair = [np.array([-128, -50, 5, 6, 40, 127], np.int8).reshape(6, 1), np.array([-128, -7, -6, 3, 127], np.int8)]
    assert_exact(many(kinds), [pair * len(kinds)])


@pytest.mark.slow
@pytest.mark.sample(1)
def test_on_a_board(tmp_path: Path) -> None:
    kinds = {**rows(), **{operator: comparison(operator, PAIRS[2]) for operator in COMPARISONS[1:3]}}
    kinds["DIV"] = DIVISIONS["finest output"]
    data = many(kinds)
    samples = inputs_of(data, 2)
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    board = board_with_tools("mps2_an500")
    compiled = compile_model(path, board="mps2_an500")
    run = run_compiled(compiled, board, samples, tmp_path / "run", lambda step: None).run
    host = HostModel(compiled)
    for sample, outputs in zip(samples, run.outputs, strict=True):
        for label, got, wanted in zip(kinds, outputs, host(*sample), strict=True):
            assert_same(got, wanted, label)


@pytest.mark.slow
def test_clean_under_sanitizers() -> None:
    integers = {name: row for name, row in rows().items() if "RSQRT" not in name}
    assert_clean(many(integers), runs=3)


def test_scales_beyond_the_reference_are_refused() -> None:
    assert refused(comparison("LESS", ((1.5, 0), (0.1, 0)))) == (
        'operator 0 LESS ("row: output 0"): scale of input 1 1.5 is not between 0 and 1, as the reference compares them'
    )
    assert refused(quotient((9.0, 1.0, 1e-7), (0, 0, 0))) == (
        "operator 0 DIV (\"row: output 0\"): the output's scale is finer than the quotient's by 2**27, at most 2**22"
    )
