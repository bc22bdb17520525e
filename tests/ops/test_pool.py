"""AVERAGE_POOL_2D and MAX_POOL_2D: generated C, exact meaning and TFLite Micro give the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.device.hostlib import HostModel
from support.models.many import Row, many
from support.models.reducing_ops import activation, pool
from support.oracle.exactness import assert_exact, assert_exact_random
from support.oracle.refusal import refusal
from support.oracle.sanitized import assert_clean

KINDS = ("AVERAGE", "MAX")
ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")


def table(kind: str, dtype: str) -> dict[str, Row]:
    rows = {
        "valid": pool(kind, (1, 7, 9, 3), (3, 2), padding="VALID", dtype=dtype),
        "same": pool(kind, (1, 7, 9, 3), (3, 3), dtype=dtype),
        "same, even window": pool(kind, (1, 7, 9, 3), (4, 2), dtype=dtype),
        "stride 2": pool(kind, (1, 7, 8, 2), (3, 3), (2, 2), dtype=dtype),
        "stride beyond the window": pool(kind, (1, 9, 10, 2), (2, 1), (3, 4), dtype=dtype),
        "global": pool(kind, (1, 5, 4, 8), (5, 4), padding="VALID", dtype=dtype),
        "window larger than the input": pool(kind, (1, 2, 3, 4), (5, 7), dtype=dtype),
        "batch of 3": pool(kind, (3, 4, 4, 2), (2, 2), (2, 2), dtype=dtype),
        "one pixel": pool(kind, (1, 1, 1, 5), (1, 1), dtype=dtype),
        "zero point at the edge": pool(kind, (1, 4, 4, 2), (2, 2), dtype=dtype, quantised=(0.01, -128)),
    }
    rows |= {act: pool(kind, (1, 6, 6, 2), (2, 3), dtype=dtype, act=act, quantised=(0.03, 40)) for act in ACTIVATIONS}
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("kind", KINDS)
def test_exact(kind: str, dtype: str) -> None:
    assert_exact_random(many(table(kind, dtype)), runs=12)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_clean_under_sanitizers(dtype: str) -> None:
    rows = {f"{kind} {name}": row for kind in KINDS for name, row in table(kind, dtype).items()}
    assert_clean(many(rows), runs=3)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("pixels", "mean"),
    [([1, 2], 2), ([-1, -2], -2), ([0, 1], 1), ([0, -1], -1), ([-1, 1], 0), ([127, 126], 127), ([-128, -127], -128)],
)
def test_a_half_rounds_away_from_zero(pixels: list[int], mean: int) -> None:
    """The stored mean rounds, whatever the zero point."""
    data = many({"pool": pool("AVERAGE", (1, 1, 2, 1), (1, 2), padding="VALID", quantised=(0.5, 9))})
    values = np.array(pixels, np.int8).reshape(1, 1, 2, 1)
    host = HostModel(assert_exact(data, [[values]]))
    assert host(values)[0].reshape(-1).tolist() == [mean]


@st.composite
def pools(draw: st.DrawFn) -> Row:
    padding = draw(st.sampled_from(["SAME", "VALID"]))
    height, width = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    largest = (height, width) if padding == "VALID" else (14, 14)
    return pool(
        draw(st.sampled_from(KINDS)),
        (draw(st.integers(1, 2)), height, width, draw(st.integers(1, 5))),
        (draw(st.integers(1, largest[0])), draw(st.integers(1, largest[1]))),
        (draw(st.integers(1, 4)), draw(st.integers(1, 4))),
        padding,
        dtype=draw(st.sampled_from(["int8", "int16"])),
        act=draw(st.sampled_from(ACTIVATIONS)),
        quantised=(draw(st.sampled_from([1e-3, 0.02, 0.4, 50.0])), draw(st.integers(-128, 127))),
    )


@pytest.mark.slow
@given(rows=st.lists(pools(), min_size=10, max_size=10))
@settings(max_examples=5, deadline=None)
def test_any_pool(rows: list[Row]) -> None:
    assert_exact_random(many(rows), runs=9, meaning=False)


@pytest.mark.long
@given(rows=st.lists(pools(), min_size=20, max_size=20))
@settings(max_examples=40, deadline=None)
def test_many_pools(rows: list[Row]) -> None:
    assert_exact_random(many(rows), runs=9)


def test_a_difference_of_scales_below_the_tolerance_is_ignored() -> None:
    row = pool("AVERAGE", (1, 4, 4, 2), (2, 2), quantised=(3e-7, 5))
    other = activation(row.outputs[0].shape, "int8", (8e-7, 5))
    assert_exact_random(many({"pool": replace(row, outputs=[other])}), runs=6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_scale_is_refused(kind: str) -> None:
    row = pool(kind, (1, 4, 4, 2), (2, 2))
    other = activation(row.outputs[0].shape, "int8", (0.06, -3))
    assert refusal(replace(row, outputs=[other])) == (
        "the output's quantisation (scale 0.0599999987, zero point -3) differs from the input's "
        "(scale 0.0500000007, zero point -3); this operator cannot rescale"
    )


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_maximum_of_floats_is_finite(padding: str) -> None:
    """So it is in TensorFlow Lite; other formats' windows of minus infinity alone give minus infinity."""
    row = pool("MAX", (1, 4, 4, 5), (3, 2), padding=padding, dtype="float32")
    below = np.full((1, 4, 4, 5), -np.inf, np.float32)
    host = HostModel(assert_exact(many({"pool": row}), [[below]]))
    assert np.unique(host(below)[0]).tolist() == [np.finfo(np.float32).min]


def test_a_window_whose_sum_overflows_is_refused() -> None:
    row = pool("AVERAGE", (1, 260, 260, 1), (256, 256), padding="VALID", dtype="int16")
    assert refusal(row) == "the sum of 65536 int16 elements overflows 32 bits; at most 65534 are possible"


def test_a_window_of_no_size_is_refused() -> None:
    row = pool("MAX", (1, 4, 4, 1), (1, 1))
    options = {**row.options, "filter_height": 0}
    assert refusal(replace(row, options=options)) == "window (0, 1) and strides (1, 1) must be positive"


def test_another_output_type_is_refused() -> None:
    row = pool("MAX", (1, 4, 4, 1), (1, 1))
    other = activation(row.outputs[0].shape, "int16", (0.05, 0))
    assert refusal(replace(row, outputs=[other])) == 'output "row: output 0" is int16, supported is int8'
