"""LOG_SOFTMAX and L2_NORMALIZATION: generated C, exact meaning and TFLite Micro give the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.models.many import Row, many
from support.models.reducing_ops import activation, l2_normalization, log_softmax
from support.oracle.exactness import assert_exact, assert_exact_random
from support.oracle.refusal import refusal
from support.oracle.sanitized import assert_clean

SHAPES = {
    "rows": (3, 12),
    "one element": (3, 1),
    "rank 1": (9,),
    "rank 4": (1, 3, 2, 5),
    "wide": (2, 900),
}
SCALES = {"tiny": 1e-6, "small": 0.004, "middle": 0.06, "large": 0.9, "huge": 40.0}
ZERO_POINTS = (-128, -1, 0, 77, 127)


def logarithms() -> dict[str, Row]:
    rows = {name: log_softmax(shape) for name, shape in SHAPES.items()}
    return rows | {f"{name} scale": log_softmax((3, 40), scale) for name, scale in SCALES.items()}


def lengths() -> dict[str, Row]:
    rows = {name: l2_normalization(shape) for name, shape in SHAPES.items()}
    return rows | {f"zero point {point}": l2_normalization((3, 7), point) for point in ZERO_POINTS}


@pytest.mark.slow
@pytest.mark.parametrize("table", [logarithms, lengths])
def test_exact(table: object) -> None:
    assert callable(table)
    assert_exact_random(many(table()), runs=18)


@pytest.mark.slow
def test_clean_under_sanitizers() -> None:
    rows = {f"log {name}": row for name, row in logarithms().items()}
    assert_clean(many(rows | {f"l2 {name}": row for name, row in lengths().items()}), runs=6)


@pytest.mark.slow
@given(
    rows=st.integers(1, 4),
    depths=st.lists(st.integers(1, 90), min_size=6, max_size=6),
    scales=st.lists(st.floats(-5, 1), min_size=6, max_size=6),
    zero_point=st.integers(-128, 127),
    seed=st.integers(0, 1000),
)
@settings(max_examples=4, deadline=None)
def test_any_row(rows: int, depths: list[int], scales: list[float], zero_point: int, seed: int) -> None:
    models = {}
    for number, (depth, scale) in enumerate(zip(depths, scales, strict=True)):
        models[f"log {number}"] = log_softmax((rows, depth), 10**scale)
        models[f"l2 {number}"] = l2_normalization((rows, depth), zero_point)
    assert_exact_random(many(models), runs=12, seed=seed, meaning=False)


@pytest.mark.parametrize("scale", [0.001, 0.06, 0.5])
def test_every_distance(scale: float) -> None:
    values = np.stack([np.full(256, 127), 127 - np.arange(256)], axis=1).astype(np.int8)
    assert_exact(many({"log": log_softmax((256, 2), scale)}), [[values]])


def test_logarithms_of_many_sums() -> None:
    """Rows of more and more equal elements."""
    values = np.where(np.arange(600)[None, :] <= np.arange(600)[:, None], 100, -128).astype(np.int8)
    assert_exact(many({"log": log_softmax(values.shape, 0.05)}), [[values]])


def test_lengths_of_many_sums() -> None:
    """Sums of squares from 0 on, each as a few squares."""
    rows = []
    for total in range(2000):
        row: list[int] = []
        rest = total
        while rest and len(row) < 6:
            row.append(int(rest**0.5))
            rest -= row[-1] ** 2
        rows.append([*row, *[0] * (6 - len(row))])
    values = np.array(rows, np.int8)
    assert_exact(many({"l2": l2_normalization(values.shape, 0)}), [[values], [-values]])


def with_output(row: Row, quantised: tuple[float, int]) -> Row:
    return replace(row, outputs=[activation(row.outputs[0].shape, "int8", quantised)])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            with_output(log_softmax((1, 4)), (0.1, 127)),
            "the output's quantisation is scale 0.100000001, zero point 127, wanted scale 1/16, zero point 127",
        ),
        (log_softmax((1, 4), 1e-9), "input scale is 1e-09, too small for the reference's fixed-point format"),
        (log_softmax((1, 5000)), "rows of 5000 elements: at most 4095 exponentials can be summed"),
        (
            with_output(l2_normalization((1, 4)), (1 / 128, 1)),
            "the output's quantisation is scale 0.0078125, zero point 1, wanted scale 1/128, zero point 0",
        ),
        (
            replace(l2_normalization((1, 4)), options={"fused_activation": "RELU"}),
            "fused activation RELU is not supported here; make it an operator of its own",
        ),
        (
            l2_normalization((1, 40000)),
            "rows of 40000 elements: at most 33025 squares can be summed in 32 bits",
        ),
    ],
    ids=lambda value: "" if isinstance(value, Row) else str(value)[:40],
)
def test_what_cannot_be_exact_is_refused(row: Row, reason: str) -> None:
    assert refusal(row) == reason
