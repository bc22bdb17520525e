"""SOFTMAX: generated C, exact meaning and TFLite Micro give the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row, many
from support.models.reducing_ops import activation, softmax
from support.oracle.exactness import assert_exact, assert_exact_random
from support.oracle.oracle import Array
from support.oracle.refusal import refusal
from support.oracle.sanitized import assert_clean
from uaccel.ops.kernel import Constant
from uaccel.ops.softmax import exponential_lookup, exponentials, reciprocal_lookup
from uaccel.tvm_api.executor import Executor

TYPES = [("int8", "int8"), ("int8", "int16"), ("int16", "int16")]
SHAPES = {
    "classes": (1, 12),
    "one class": (1, 1),
    "two classes": (3, 2),
    "rank 1": (9,),
    "rank 3": (2, 3, 5),
    "rank 4": (1, 3, 4, 2),
    "rank 5": (2, 1, 2, 1, 6),
    "wide": (2, 300),
}


SCALES = {"tiny": 1e-6, "small": 0.004, "middle": 0.3, "large": 2.7, "huge": 90.0}
BETAS = (0.01, 0.5, 1.7, 30.0)


def table(dtype: str, output_dtype: str) -> dict[str, Row]:
    def row(shape: tuple[int, ...], scale: float = 0.1, beta: float = 1.0) -> Row:
        return softmax(shape, scale, beta, dtype=dtype, output_dtype=output_dtype)

    rows = {name: row(shape) for name, shape in SHAPES.items()}
    rows |= {f"{name} scale": row((3, 10), scale) for name, scale in SCALES.items()}
    return rows | {f"beta {beta}": row((3, 10), 0.05, beta) for beta in BETAS}


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "output_dtype"), TYPES)
def test_exact(dtype: str, output_dtype: str) -> None:
    assert_exact_random(many(table(dtype, output_dtype)), runs=12)


@pytest.mark.slow
def test_clean_under_sanitizers() -> None:
    chosen = ("wide", "rank 1", "tiny scale", "huge scale", "beta 30.0")
    rows = {f"{types}: {name}": row for types in TYPES for name, row in table(*types).items() if name in chosen}
    assert_clean(many(rows), runs=3)


@pytest.mark.sample(1)
@pytest.mark.parametrize("scale", [0.001, 0.07, 1.0])
def test_every_distance_of_8_bits(scale: float) -> None:
    distances = np.arange(256)
    values = np.stack([np.full(256, 127), 127 - distances], axis=1).astype(np.int8)
    assert_exact(many({"softmax": softmax((256, 2), scale)}), [[values]])
    assert_exact(many({"softmax": softmax((256, 2), scale, output_dtype="int16")}), [[values]])


def test_every_distance_of_16_bits() -> None:
    distances = np.arange(1 << 16)
    values = np.stack([np.full(1 << 16, 32767), 32767 - distances], axis=1).astype(np.int16)
    data = many({"softmax": softmax(values.shape, 10 / 255, dtype="int16", output_dtype="int16")})
    assert_exact(data, [[values]])


def test_every_denominator_of_16_bits() -> None:
    """Rows of more and more equal elements: their sum takes every value that the reciprocal's table is read at."""
    values = np.where(np.arange(700)[None, :] <= np.arange(700)[:, None], 0, -32768).astype(np.int16)
    data = many({"softmax": softmax(values.shape, 0.05, dtype="int16", output_dtype="int16")})
    assert_exact(data, [[values]])


def outputs_of(row: Row, values: Array) -> list[Array]:
    """By the generated C and by the exact meaning, where the reference has no answer."""
    compiled = compile_bytes(many({"row": row}))
    return [HostModel(compiled)(values)[0], Executor(compiled.stages["import"]).run([values])[0]]


def test_more_equal_elements_than_8_bits_can_share_among() -> None:
    """The reference stops there with a failed check."""
    assert_exact(many({"softmax": softmax((1, 511))}), [[np.full((1, 511), 7, np.int8)]])
    for output in outputs_of(softmax((1, 512)), np.full((1, 512), 7, np.int8)):
        assert (output == -128).all()


@pytest.mark.slow
@given(
    types=st.sampled_from(TYPES),
    shapes=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 80)), min_size=8, max_size=8),
    scales=st.lists(st.floats(-5, 1.3), min_size=8, max_size=8),
    seed=st.integers(0, 1000),
)
@settings(max_examples=6, deadline=None)
def test_any_softmax(types: tuple[str, str], shapes: list[tuple[int, int]], scales: list[float], seed: int) -> None:
    dtype, output_dtype = types
    rows = [
        softmax(shape, 10**scale, dtype=dtype, output_dtype=output_dtype)
        for shape, scale in zip(shapes, scales, strict=True)
    ]
    data = many(rows)
    assert_exact_random(data, runs=12, seed=seed, meaning=False)


def test_the_table_holds_exponentials() -> None:
    """0.5 in units of 2**-26 is 2**25: a multiplier of one half and a shift of 26."""
    values = exponentials(1 << 30, 26) / 2.0**31
    wanted = np.exp(-0.5 * np.arange(256))
    wanted[wanted < 2.0**-20] = 0
    np.testing.assert_allclose(values, wanted, rtol=0, atol=3e-7)


def test_the_table_ends_where_differences_do_not_fit() -> None:
    assert np.flatnonzero(exponentials(1 << 30, 30)).tolist() == [0, 1]
    assert np.flatnonzero(exponentials((1 << 31) - 1, 31)).tolist() == [0]


def test_only_what_counts_of_the_table_lies_in_flash() -> None:
    layer = compile_bytes(many({"softmax": softmax((1, 10), 0.5)})).program.layers[0]
    table = layer.kernel.calls[0].arguments[1]
    assert isinstance(table, Constant)
    assert (layer.kernel.calls[0].parameters["entries"], table.data.shape) == (28, (28,))


def test_the_16_bit_tables_hold_their_functions() -> None:
    steps = np.arange(513) / 512
    np.testing.assert_allclose(exponential_lookup() / 32768, np.exp(10 * steps - 10), rtol=0, atol=2.1 / 32768)
    np.testing.assert_allclose(reciprocal_lookup() / 32768, 1 / (1 + steps), rtol=0, atol=1.1 / 32768)


def test_an_output_that_does_not_cover_0_to_1_is_refused() -> None:
    row = softmax((1, 4))
    other = activation((1, 4), "int8", (1 / 255, -128))
    assert refusal(replace(row, outputs=[other])) == (
        "the output's quantisation is scale 0.00392156886, zero point -128, wanted scale 1/256, zero point -128"
    )


def test_a_scale_below_the_fixed_point_format_is_refused() -> None:
    assert refusal(softmax((1, 4), 1e-8)) == (
        "beta * input scale is 1e-08, too small for the reference's fixed-point format"
    )


def test_a_scale_beyond_the_16_bit_format_is_refused() -> None:
    row = softmax((1, 4), 2000.0, dtype="int16", output_dtype="int16")
    assert refusal(row) == "beta * input scale is 7.81, too large for the reference's 32-bit differences"


def test_rows_beyond_the_16_bit_sum_are_refused() -> None:
    row = softmax((1, 1 << 16), dtype="int16", output_dtype="int16")
    assert refusal(row) == "rows of 65536 elements: their exponentials may overflow the reference's 32-bit sum"
