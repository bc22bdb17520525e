"""MEAN, SUM, REDUCE_MAX and REDUCE_MIN: generated C, exact meaning and TFLite Micro give the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row, many
from support.models.reducing_ops import Quantised, activation, reduce
from support.models.single_op import Activation, Constant
from support.oracle.exactness import assert_exact, assert_exact_random, assert_same
from support.oracle.oracle import LiteRt, random_inputs
from support.oracle.refusal import refusal
from support.oracle.sanitized import assert_clean
from uaccel.ops.reduce import loop_extents

SUMS = ("MEAN", "SUM")
EXTREMES = ("REDUCE_MAX", "REDUCE_MIN")

AXES = {
    "height and width": ((2, 5, 7, 3), (1, 2)),
    "in another order": ((2, 5, 7, 3), (2, 1)),
    "channels": ((2, 5, 7, 3), (3,)),
    "batch": ((2, 5, 7, 3), (0,)),
    "two apart": ((2, 5, 7, 3), (1, 3)),
    "the outer two": ((2, 5, 7, 3), (0, 1)),
    "all but one": ((2, 5, 7, 3), (0, 2, 3)),
    "all": ((2, 5, 7, 3), (0, 1, 2, 3)),
    "negative": ((2, 5, 7, 3), (-2, -3)),
    "negative and positive": ((2, 5, 7, 3), (-1, 1)),
    "named twice": ((4, 5), (1, -1, 1)),
    "rank 1": ((6,), (0,)),
    "rank 2": ((3, 40), (1,)),
    "rank 5": ((2, 3, 4, 5, 2), (1, 3)),
    "axes of one element": ((2, 1, 3, 1, 4), (1, 2, 3)),
    "only axes of one element": ((3, 1, 4), (1,)),
}

DROPPED = ("height and width", "two apart", "all", "named twice", "only axes of one element")

SCALES: dict[str, tuple[Quantised, Quantised]] = {
    "same quantisation": ((0.1, 3), (0.1, 3)),
    "other zero point": ((0.1, 3), (0.1, -20)),
    "zero points at the edges": ((0.02, -128), (0.02, 127)),
    "other zero points at the edges": ((0.02, 127), (0.03, -128)),
    "finer": ((0.5, 20), (0.01, -20)),
    "much finer": ((3.0, 0), (1e-4, 0)),
    "coarser": ((0.01, -5), (0.7, 9)),
    "much coarser": ((1e-5, -5), (900.0, 9)),
}


def table(operator: str, dtype: str) -> dict[str, Row]:
    rows = {name: reduce(operator, shape, axes, dtype=dtype) for name, (shape, axes) in AXES.items()}
    rows |= {f"{name}, dropped": reduce(operator, *AXES[name], False, dtype=dtype) for name in DROPPED}
    rows["an axis that is a scalar"] = reduce(operator, (3, 5), 1, dtype=dtype)
    if operator in SUMS:
        shape = (2, 3, 5, 4)
        for name, (given_, wanted) in SCALES.items():
            rows[name] = reduce(operator, shape, (1, 2), dtype=dtype, given=given_, wanted=wanted)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("operator", SUMS)
def test_exact(operator: str, dtype: str) -> None:
    assert_exact_random(many(table(operator, dtype)), runs=9)


@pytest.mark.slow
@pytest.mark.parametrize("operator", EXTREMES)
def test_extremes_exact(operator: str) -> None:
    assert_exact_random(many(table(operator, "int8")), runs=9)


@pytest.mark.parametrize("operator", EXTREMES)
def test_16_bit_extremes_as_litert(operator: str) -> None:
    """TFLite Micro has no kernel for them."""
    data = many(table(operator, "int16"))
    reference, host = LiteRt(data), HostModel(compile_bytes(data))
    for values in random_inputs(data, 0, 6):
        for got, wanted in zip(host(*values), reference.run(values), strict=True):
            assert_same(got, wanted.reshape(got.shape), operator)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_clean_under_sanitizers(dtype: str) -> None:
    operators = SUMS if dtype == "int16" else (*SUMS, *EXTREMES)
    chosen = ("two apart", "all", "much finer", "much coarser", "named twice, dropped")
    rows = {f"{o} {name}": row for o in operators for name, row in table(o, dtype).items() if name in chosen}
    assert_clean(many(rows), runs=6)


@st.composite
def reductions(draw: st.DrawFn) -> Row:
    operator = draw(st.sampled_from((*SUMS, *SUMS, *EXTREMES)))
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    axes = draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=4))
    zero_points = st.sampled_from([-128, -77, 0, 1, 90, 127])
    quantised = (10 ** draw(st.floats(-4, 1)), draw(zero_points))
    wanted = (quantised[0] * 10 ** draw(st.floats(-4, 4)), draw(zero_points))
    sums = operator in SUMS
    return reduce(
        operator,
        shape,
        axes,
        draw(st.booleans()),
        dtype=draw(st.sampled_from(["int8", "int16"])) if sums else "int8",
        given=quantised,
        wanted=draw(st.sampled_from([wanted, quantised])) if sums else quantised,
    )


@pytest.mark.slow
@given(rows=st.lists(reductions(), min_size=12, max_size=12))
@settings(max_examples=5, deadline=None)
def test_any_reduction(rows: list[Row]) -> None:
    assert_exact_random(many(rows), runs=9, meaning=False)


@pytest.mark.long
@given(rows=st.lists(reductions(), min_size=30, max_size=30))
@settings(max_examples=40, deadline=None)
def test_many_reductions(rows: list[Row]) -> None:
    assert_exact_random(many(rows), runs=9)


def test_scales_are_divided_in_double_precision() -> None:
    """Scales and a sum at which a quotient in single precision would give 91."""
    row = reduce("SUM", (1, 600000), 1, given=(0.6732655167579651, 0), wanted=(566786.9375, 0))
    full, rest = divmod(76187204, 127)
    values = np.zeros((1, 600000), np.int8)
    values[0, :full], values[0, full] = 127, rest
    host = HostModel(assert_exact(many({"row": row}), [[values]]))
    assert host(values)[0].item() == 90


@pytest.mark.parametrize(
    ("shape", "axes", "extents"),
    [
        ((2, 3, 4, 5), (1, 2), [2, 12, 5]),
        ((2, 3, 4, 5), (0,), [1, 2, 60]),
        ((2, 3, 4, 5), (3,), [24, 5, 1]),
        ((2, 3, 4, 5), (1, 3), [2, 3, 4, 5, 1]),
        ((2, 1, 3, 1, 4), (0, 3, 4), [1, 2, 3, 4, 1]),
        ((1, 1), (0,), [1]),
        ((2, 3, 2, 3, 2), (0, 2, 4), [1, 2, 3, 2, 3, 2, 1]),
    ],
)
def test_neighbouring_axes_are_joined(shape: tuple[int, ...], axes: tuple[int, ...], extents: list[int]) -> None:
    assert loop_extents(shape, axes) == extents


def test_three_separate_runs_of_axes_are_refused() -> None:
    assert refusal(reduce("MEAN", (2, 3, 2, 3, 2), (0, 2, 4))) == (
        "axes (0, 2, 4) of int8 [2,3,2,3,2] are more than two separate runs; reduce in two steps"
    )


def test_a_sum_that_overflows_is_refused() -> None:
    assert refusal(reduce("SUM", (300, 300), (0, 1), dtype="int16")) == (
        "the sum of 90000 int16 elements overflows 32 bits; at most 65534 are possible"
    )


def test_an_axis_that_is_none_is_refused() -> None:
    row = reduce("REDUCE_MAX", (2, 3), (1,))
    given_ = [row.inputs[0], Constant(np.array([2], np.int32))]
    assert refusal(replace(row, inputs=given_)) == "axis 2 is not an axis of int8 [2,3]"


def test_axes_of_run_time_are_refused() -> None:
    row = reduce("MEAN", (2, 3), (1,))
    assert refusal(replace(row, inputs=[row.inputs[0], Activation((1,), "int32")])) == (
        'axes "row: input 1" is computed at run time; only constant axes can be compiled'
    )


@pytest.mark.parametrize("operator", EXTREMES)
def test_an_extreme_does_not_rescale(operator: str) -> None:
    row = reduce(operator, (2, 3), (1,))
    other = activation(row.outputs[0].shape, "int8", (0.1, 4))
    assert refusal(replace(row, outputs=[other])) == (
        "the output's quantisation (scale 0.100000001, zero point 4) differs from the input's "
        "(scale 0.100000001, zero point 3); this operator cannot rescale"
    )
