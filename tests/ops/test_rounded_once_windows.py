"""Sums, means and maxima along axes and over windows: exact fractions and ONNX Runtime agree with the kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.rounded_once import Case, Quantised, check, module_of
from ops.rounded_once_cases import Pool, reduction, resize
from uaccel.ops.operator import get
from uaccel.ops.pool import WindowAttrs, WindowMax

NONE = (0, 0, 0, 0)


def reductions(dtype: str) -> dict[str, Case]:
    return {
        "global average": reduction((1, 5, 4, 8), (1, 2), dtype=dtype),
        "ties of a sixth": reduction((4, 6, 5), (1,), scales=(0.1, 0.1), dtype=dtype),
        "ties of a fourth": reduction((1, 2, 2, 9), (1, 2), scales=(0.5, 0.25), dtype=dtype),
        "last axis": reduction((3, 4, 7), (-1,), keep=False, dtype=dtype),
        "first axis": reduction((6, 4), (0,), dtype=dtype),
        "two apart": reduction((3, 4, 5, 6), (0, 2), keep=False, dtype=dtype),
        "everything": reduction((3, 4, 5), (0, 1, 2), keep=False, dtype=dtype),
        "one element": reduction((1, 1, 1, 3), (1, 2), scales=(0.1, 0.07), dtype=dtype),
        "sum": reduction((2, 7, 3), (1,), mean=False, scales=(0.05, 0.3), dtype=dtype),
        "rectified": reduction((2, 7, 3), (1,), scales=(0.1, 0.05), clamp=(9, 60), dtype=dtype),
        "saturates": reduction((2, 3, 3), (1,), scales=(0.1, 1e-6), dtype=dtype),
        "all zero": reduction((2, 3, 3), (1,), scales=(1e-6, 1e6), dtype=dtype),
    }


POOLS = {
    "no padding": Pool(),
    "stride": Pool(window=(3, 2), strides=(2, 3)),
    "padding": Pool(padding=(1, 1, 1, 1)),
    "padding that counts": Pool(padding=(1, 1, 1, 1), include=True),
    "one-sided padding": Pool(padding=(0, 2, 1, 0)),
    "one-sided padding that counts": Pool(padding=(0, 2, 1, 0), include=True),
    "window of all": Pool(window=(7, 6)),
    "dilation": Pool(shape=(1, 9, 8, 2), dilation=(2, 3)),
    "dilation and padding": Pool(shape=(1, 9, 8, 2), dilation=(3, 2), padding=(2, 1, 0, 2), strides=(2, 1)),
    "ties": Pool(window=(2, 2), strides=(2, 2), scales=(0.1, 0.1)),
    "ties of sixths": Pool(window=(2, 3), padding=(1, 1, 1, 1), scales=(0.1, 0.1)),
    "last windows overhang": Pool(window=(2, 2), strides=(2, 3), ceil=(1, 0)),
    "batch": Pool(shape=(3, 4, 4, 2), window=(2, 2)),
    "saturates": Pool(scales=(0.1, 1e-6)),
    "zero points": Pool(points=(127, -128), padding=(1, 1, 1, 1)),
}


def pools(dtype: str, *, maximum: bool) -> dict[str, Case]:
    rows = {name: replace(row, dtype=dtype, maximum=maximum) for name, row in POOLS.items()}
    return {name: row.case for name, row in rows.items() if not (maximum and row.include)}


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_reductions(dtype: str) -> None:
    check(reductions(dtype), runs=2, meaning=dtype == "int8")


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_means_over_windows(dtype: str) -> None:
    check(pools(dtype, maximum=False), runs=2, meaning=dtype == "int8")


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_bilinear_resizes(dtype: str) -> None:
    """Ties of fourths are common where one scale stays: an image to twice its size."""
    rows = {
        "twice": resize((1, 4, 3, 5), (8, 6), "half_pixel", (0.1, 0.1), dtype=dtype),
        "corners": resize((2, 4, 5, 2), (7, 9), "align_corners", dtype=dtype),
        "a third": resize((1, 9, 6, 3), (3, 2), "half_pixel", dtype=dtype),
        "asymmetric": resize((1, 4, 5, 2), (6, 10), "asymmetric", points=(127, -128), dtype=dtype),
        "one pixel": resize((1, 1, 1, 4), (3, 2), "half_pixel", (0.1, 1e-6), dtype=dtype),
        "to one pixel": resize((1, 5, 4, 2), (1, 1), "align_corners", dtype=dtype),
    }
    check(rows, runs=2, meaning=dtype == "int8", onnx=False)


@pytest.mark.slow
def test_maxima_over_windows() -> None:
    check(pools("int8", maximum=True), runs=2)


def test_windows_that_hold_no_element() -> None:
    """Their maximum is the lowest value, their mean zero where padding counts."""
    pool = Pool(shape=(1, 2, 2, 2), window=(2, 2), padding=(3, 0, 0, 3), include=True)
    check({"mean": pool.case, "maximum": replace(pool, maximum=True).case}, onnx=False)


@st.composite
def any_pool(draw: st.DrawFn) -> Case:
    small, scale, point = st.integers(1, 3), st.floats(1e-3, 1.0), st.integers(-128, 127)
    window, dilation = (draw(small), draw(small)), (draw(small), draw(small))
    reach = [(w - 1) * d for w, d in zip(window, dilation, strict=True)]
    padding = [draw(st.integers(0, reach[axis % 2])) for axis in range(4)]
    height, width = (draw(st.integers(max(1, reach[axis]), 9)) + (reach[axis] > 0) for axis in (0, 1))
    return Pool(
        (draw(small), height, width, draw(small)),
        window,
        (draw(small), draw(small)),
        (padding[0], padding[1], padding[2], padding[3]),
        dilation,
        include=draw(st.booleans()),
        scales=(draw(scale), draw(scale)),
        points=(draw(point), draw(point)),
        dtype=draw(st.sampled_from(["int8", "int16"])),
        maximum=draw(st.booleans()),
    ).case


@st.composite
def any_reduction(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    axes = tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    scale, point = st.floats(1e-3, 1.0), st.integers(-128, 127)
    return reduction(
        shape,
        axes,
        mean=draw(st.booleans()),
        keep=draw(st.booleans()),
        scales=(draw(scale), draw(scale)),
        points=(draw(point), draw(point)),
        dtype=draw(st.sampled_from(["int8", "int16"])),
    )


Cases = st.lists(any_pool() | any_reduction(), min_size=20, max_size=20)


@given(cases=Cases, seed=st.integers(0, 1000))
@settings(max_examples=2, deadline=None)
def test_any(cases: list[Case], seed: int) -> None:
    """ONNX Runtime has no padding as wide as a window, and no dilation of means with padding that counts."""
    check({f"case {i}": case for i, case in enumerate(cases)}, seed=seed, runs=1, meaning=False, onnx=False)


@pytest.mark.long
@given(cases=Cases, seed=st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_many(cases: list[Case], seed: int) -> None:
    check({f"case {i}": case for i, case in enumerate(cases)}, seed=seed, runs=2, onnx=False)


def type_error(case: Case) -> str:
    with pytest.raises(TypeError) as caught:
        module_of([case])
    return str(caught.value).strip().splitlines()[-1]


def test_windows_that_count_nothing_are_refused() -> None:
    pool = Pool(shape=(1, 2, 2, 2), window=(2, 2), padding=(3, 0, 0, 0))
    assert type_error(pool.case) == "window_mean: padding (3, 0, 0, 0) leaves windows (2, 2) that count no element"


def test_a_window_larger_than_the_input_is_refused() -> None:
    pool = Pool(shape=(1, 2, 2, 2), window=(4, 1))
    words = "the window (4, 1) is larger than the padded input int8 [1,2,2,2]"
    case = replace(Pool().case, build=lambda v: window_max(v, pool))
    assert type_error(replace(case, inputs=(Quantised(pool.shape, 1.0),))) == f"window_max: {words}"


def window_max(value: Any, pool: Pool) -> Any:
    attrs = WindowAttrs(pool.window, pool.strides, pool.padding, pool.dilation, -128, 127)
    return get(WindowMax)(value, attrs=attrs)


def test_a_sum_that_overflows_is_refused() -> None:
    words = "scaled_sum: the sum of 65536 int16 elements overflows 32 bits; at most 32768 are possible"
    assert type_error(reduction((256, 256), (0, 1), dtype="int16")) == words


def test_more_loops_than_the_kernel_has_are_refused() -> None:
    words = "scaled_sum: axes (1, 3, 5) of int8 [2,2,2,2,2,2] take 7 loops, at most 5"
    assert type_error(reduction((2,) * 6, (1, 3, 5))) == words
