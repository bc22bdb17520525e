"""ARG_MAX and ARG_MIN: generated C, exact meaning and TFLite Micro give the same positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row, many
from support.models.reducing_ops import arg_extreme
from support.models.single_op import Activation, Constant
from support.oracle.exactness import assert_exact_random, assert_same
from support.oracle.oracle import LiteRt, Tflm, random_inputs
from support.oracle.refusal import refusal
from support.oracle.sanitized import assert_clean
from uaccel.tvm_api.executor import Executor

OPERATORS = ("ARG_MAX", "ARG_MIN")
CASES = {
    "last axis": ((2, 3, 10), -1),
    "middle axis": ((2, 5, 4), 1),
    "first axis": ((6, 2, 3), 0),
    "first axis, negative": ((6, 2, 3), -3),
    "rank 1": ((9,), 0),
    "rank 4": ((1, 4, 5, 3), 3),
    "one element": ((3, 1), 1),
    "classes": ((1, 300), 1),
}


def table(operator: str, dtype: str = "int8", output_dtype: str = "int32") -> dict[str, Row]:
    return {
        name: arg_extreme(operator, shape, axis, dtype=dtype, output_dtype=output_dtype)
        for name, (shape, axis) in CASES.items()
    }


@pytest.mark.parametrize("operator", OPERATORS)
def test_exact(operator: str) -> None:
    assert_exact_random(many(table(operator)), runs=12)


def test_clean_under_sanitizers() -> None:
    rows = {f"{operator} {name}": row for operator in OPERATORS for name, row in table(operator).items()}
    assert_clean(many(rows), runs=3)


@pytest.mark.parametrize("operator", OPERATORS)
def test_wide_positions_as_litert(operator: str) -> None:
    """TFLite Micro has no kernel that writes int64."""
    data = many(table(operator, output_dtype="int64"))
    compiled = compile_bytes(data)
    reference, host, executor = LiteRt(data), HostModel(compiled), Executor(compiled.stages["import"])
    for values in random_inputs(data, 0, 6):
        for got, meant, wanted in zip(host(*values), executor.run(values), reference.run(values), strict=True):
            assert_same(got, wanted.reshape(got.shape), operator)
            assert_same(meant, wanted.reshape(meant.shape), operator)


@pytest.mark.parametrize("operator", OPERATORS)
def test_16_bits_as_numpy(operator: str) -> None:
    """No TFLite runtime has a kernel for them."""
    rows = table(operator, "int16")
    data = many(rows)
    compiled = compile_bytes(data)
    host, executor = HostModel(compiled), Executor(compiled.stages["import"])
    find = np.argmax if operator == "ARG_MAX" else np.argmin
    for values in random_inputs(data, 0, 9):
        found = zip(host(*values), executor.run(values), values, CASES.values(), strict=True)
        for got, meant, value, (_, axis) in found:
            wanted = np.asarray(find(value, axis=axis), np.int32)
            assert_same(got, wanted, operator)
            assert_same(meant, wanted, operator)


@pytest.mark.parametrize("operator", OPERATORS)
def test_floats_with_nan(operator: str) -> None:
    """NaN is no extreme, except where it comes first. LiteRT ignores the first, too, for some shapes."""
    data = many({name: arg_extreme(operator, (6, 9), axis, dtype="float32") for name, axis in (("a", 0), ("b", 1))})
    compiled, generator = compile_bytes(data), np.random.default_rng(8)
    reference, host, executor = Tflm(data), HostModel(compiled), Executor(compiled.stages["import"])
    values = [generator.integers(-3, 4, (6, 9)).astype(np.float32) for _ in range(2)]
    for value in values:
        value[generator.random(value.shape) < 0.3] = np.nan
        value[1:3], value[4] = np.nan, np.where(np.isnan(value[4]), value[4], np.inf)
    for got, meant, wanted in zip(host(*values), executor.run(values), reference.run(values), strict=True):
        assert_same(got, wanted.reshape(got.shape), operator)
        assert_same(meant, wanted.reshape(meant.shape), operator)


@pytest.mark.slow
@given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple),
    axis=st.integers(0, 3),
    seed=st.integers(0, 100),
)
@settings(max_examples=12, deadline=None)
def test_any_axis(shape: tuple[int, ...], axis: int, seed: int) -> None:
    rows = {operator: arg_extreme(operator, shape, axis % len(shape)) for operator in OPERATORS}
    assert_exact_random(many(rows), runs=12, seed=seed, meaning=False)


def test_an_axis_that_is_none_is_refused() -> None:
    row = arg_extreme("ARG_MAX", (2, 3), 1)
    given_ = [row.inputs[0], Constant(np.array(-3, np.int32))]
    assert refusal(replace(row, inputs=given_)) == "axis -3 is not an axis of int8 [2,3]"


def test_two_axes_are_refused() -> None:
    row = arg_extreme("ARG_MAX", (2, 3), 1)
    given_ = [row.inputs[0], Constant(np.array([0, 1], np.int32))]
    assert refusal(replace(row, inputs=given_)) == "2 axes given, wanted 1"


def test_an_axis_of_run_time_is_refused() -> None:
    row = arg_extreme("ARG_MIN", (2, 3), 1)
    assert refusal(replace(row, inputs=[row.inputs[0], Activation((1,), "int32")])) == (
        'axes "row: input 1" is computed at run time; only constant axes can be compiled'
    )


def test_positions_as_other_than_integers_are_refused() -> None:
    row = arg_extreme("ARG_MAX", (2, 3), 1)
    assert refusal(replace(row, outputs=[Activation((2,), "float32")])) == (
        'output "row: output 0" is float32, supported is int32 or int64'
    )
