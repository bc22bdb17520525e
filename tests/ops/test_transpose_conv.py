"""TRANSPOSE_CONV: generated C, exact meaning and TFLite Micro give the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.device.hostlib import compile_bytes
from support.models.many import Row, many
from support.models.reducing_ops import transpose_conv
from support.models.single_op import Activation, Constant
from support.models.windows import spread_scales
from support.oracle.exactness import assert_exact_random
from support.oracle.refusal import refusal
from support.oracle.sanitized import assert_clean

CASES = {
    "plain": transpose_conv(),
    "stride 1": transpose_conv(stride=(1, 1)),
    "stride beyond the window": transpose_conv(kernel=(2, 1), stride=(3, 2)),
    "window beyond the input": transpose_conv((1, 2, 2, 2), (5, 5), (2, 3)),
    "even window, batch of 2": transpose_conv((2, 4, 3, 3), (2, 4), (3, 2)),
    "1x1": transpose_conv(kernel=(1, 1)),
    "valid": transpose_conv(padding="VALID"),
    "valid, even window": transpose_conv((2, 4, 3, 3), (2, 4), (3, 2), "VALID"),
    "one pixel": transpose_conv((1, 1, 1, 4), (2, 2)),
    "output cut off": transpose_conv(padding="VALID", size=(6, 7)),
    "output beyond the windows": transpose_conv(padding="VALID", size=(9, 11)),
    "odd output": transpose_conv(size=(5, 7)),
    "no bias": transpose_conv(bias=None),
    "per channel": transpose_conv(channels=6, weight_scales=spread_scales(6)),
    "relu": transpose_conv(act="RELU"),
    "relu6": transpose_conv(act="RELU6"),
    "zero points at the edges": transpose_conv(given=(0.1, -128), wanted=(0.2, 127)),
    "saturates": transpose_conv(wanted=(0.0005, 0)),
}

CASES_16 = {
    "int64 bias": transpose_conv(dtype="int16", bias="int64", wanted=(9.0, 0)),
    "int16 bias": transpose_conv(dtype="int16", bias="int16", wanted=(9.0, 0)),
    "no bias": transpose_conv(dtype="int16", bias=None, wanted=(9.0, 0), padding="VALID"),
    "per channel": transpose_conv(
        channels=4, dtype="int16", bias="int64", wanted=(5.0, 0), weight_scales=spread_scales(4)
    ),
    "saturates": transpose_conv(dtype="int16", bias="int64", wanted=(0.01, 0), act="RELU"),
}


@pytest.mark.slow
def test_exact() -> None:
    assert_exact_random(many(CASES), runs=12)


@pytest.mark.slow
def test_16_bits_exact() -> None:
    assert_exact_random(many(CASES_16), runs=12)


@pytest.mark.slow
def test_clean_under_sanitizers() -> None:
    assert_clean(many({**CASES, **{f"int16, {name}": row for name, row in CASES_16.items()}}), runs=3)


@st.composite
def windows(draw: st.DrawFn) -> Row:
    extents = st.integers(1, 5)
    pairs = st.tuples(st.integers(1, 4), st.integers(1, 4))
    dtype = draw(st.sampled_from(["int8", "int16"]))
    return transpose_conv(
        (draw(st.integers(1, 2)), draw(extents), draw(extents), draw(extents)),
        draw(pairs),
        draw(pairs),
        draw(st.sampled_from(["SAME", "VALID"])),
        channels=draw(st.integers(1, 4)),
        dtype=dtype,
        bias="int64" if dtype == "int16" else "int32",
        act=draw(st.sampled_from(["NONE", "RELU", "RELU6", "RELU_N1_TO_1"])),
        given=(0.1, draw(st.integers(-128, 127))),
        wanted=(draw(st.sampled_from([0.02, 1.0, 40.0])), draw(st.integers(-128, 127))),
    )


@pytest.mark.slow
@given(rows=st.lists(windows(), min_size=10, max_size=10))
@settings(max_examples=4, deadline=None)
def test_any_transpose_conv(rows: list[Row]) -> None:
    assert_exact_random(many(rows), runs=6, meaning=False)


def test_it_counts_multiplications() -> None:
    layer = compile_bytes(many({"row": transpose_conv((1, 3, 4, 2), channels=5)})).program.layers[0]
    assert (layer.op, layer.macs) == ("transpose_conv2d", 3 * 4 * 2 * 5 * 9)


def replaced(row: Row, position: int, given_: Activation | Constant) -> Row:
    return replace(row, inputs=[*row.inputs[:position], given_, *row.inputs[position + 1 :]])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            replaced(transpose_conv(), 1, Constant(np.ones((3, 3, 3, 4), np.int8), (0.1,))),
            "transpose_conv2d: input int8 [1,3,4,2] does not fit weights int8 [3,3,3,4]",
        ),
        (
            transpose_conv(dtype="int16", bias="int32"),
            'bias "row: input 3" is int32, supported is int16 or int64',
        ),
        (
            transpose_conv(dtype="int16", bias="int64", wanted=(1e-6, 0)),
            "the output's scale is finer than the products' by 2**10; 16-bit activations allow 2**7",
        ),
    ],
    ids=lambda value: "" if isinstance(value, Row) else str(value)[:40],
)
def test_what_cannot_be_exact_is_refused(row: Row, reason: str) -> None:
    assert refusal(row) == reason
