"""Sums, means and maxima along axes and over windows: exact fractions and ONNX Runtime agree with the kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.hostlib import Array
from support.rounded_once import Case, Quantised, check, check_sanitized, module_of
from uaccel.model import TensorInfo
from uaccel.ops.base import constant, get
from uaccel.ops.scaled_sum import ScaledSum, scaled_sum_attrs
from uaccel.ops.window import WindowAttrs, WindowMax, WindowMean, window_mean_operands

NONE = (0, 0, 0, 0)


def reduction(
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    *,
    mean: bool = True,
    keep: bool = True,
    scales: tuple[float, float] = (0.05, 0.031),
    points: tuple[int, int] = (-3, 9),
    dtype: str = "int8",
    clamp: tuple[int, int] | None = None,
) -> Case:
    x = Quantised(shape, scales[0], points[0], dtype)
    taken = tuple(axis % len(shape) for axis in axes)
    result = np.zeros(shape).sum(axis=taken, keepdims=keep).shape
    y = Quantised(result, scales[1], points[1], dtype)
    count = int(np.prod([shape[axis] for axis in taken])) if mean else 1
    info = TensorInfo(shape, dtype)
    attrs = scaled_sum_attrs(info, x.quantisation, y.quantisation, axes, keep_dims=keep, mean=mean, clamp=clamp)

    def real(values: Array) -> Array:
        return np.asarray(values.sum(axis=taken, keepdims=keep) * (x.fraction / y.fraction / count), object)

    return Case(
        (x,),
        y,
        lambda v: get(ScaledSum)(v, attrs=attrs),
        real,
        "ReduceMean" if mean else "ReduceSum",
        {"keepdims": int(keep)},
        (np.array(axes, np.int64),),
        clamp,
    )


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


@dataclass(frozen=True)
class Pool:
    """``padding`` as the model has it; ``ceil`` more rows and columns below and behind."""

    shape: tuple[int, int, int, int] = (1, 7, 6, 3)
    window: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = NONE
    dilation: tuple[int, int] = (1, 1)
    include: bool = False
    ceil: tuple[int, int] = (0, 0)
    scales: tuple[float, float] = (0.05, 0.031)
    points: tuple[int, int] = (-3, 9)
    dtype: str = "int8"
    maximum: bool = False

    @property
    def wide(self) -> tuple[int, int, int, int]:
        top, left, bottom, right = self.padding
        return top, left, bottom + self.ceil[0], right + self.ceil[1]

    def taps(self, axis: int) -> list[list[int]]:
        """For each position of the window the places of its taps, along one axis."""
        before, after = self.wide[axis], self.wide[axis + 2]
        reach = (self.window[axis] - 1) * self.dilation[axis]
        starts = range(-before, self.shape[axis + 1] + after - reach, self.strides[axis])
        return [[start + tap * self.dilation[axis] for tap in range(self.window[axis])] for start in starts]

    def _inside(self, place: int, axis: int, *, padded: bool) -> bool:
        before, after = (self.padding[axis], self.padding[axis + 2]) if padded else (0, 0)
        return -before <= place < self.shape[axis + 1] + after

    def real(self, values: Array) -> Array:
        rows, columns = self.taps(0), self.taps(1)
        ratio = Fraction(float(np.float32(self.scales[0]))) / Fraction(float(np.float32(self.scales[1])))
        result = np.zeros((self.shape[0], len(rows), len(columns), self.shape[3]), object)
        for y, x in np.ndindex(len(rows), len(columns)):
            ys = [place for place in rows[y] if self._inside(place, 0, padded=False)]
            xs = [place for place in columns[x] if self._inside(place, 1, padded=False)]
            sides = [sum(self._inside(place, 0, padded=self.include) for place in rows[y])]
            sides += [sum(self._inside(place, 1, padded=self.include) for place in columns[x])]
            part = values[:, ys][:, :, xs]
            if self.maximum:
                result[:, y, x] = part.max(axis=(1, 2)) * Fraction(1) if part.size else Fraction(-1000)
            else:
                result[:, y, x] = part.sum(axis=(1, 2)) * (ratio / (sides[0] * sides[1]))
        return result

    @property
    def case(self) -> Case:
        x = Quantised(self.shape, self.scales[0], self.points[0], self.dtype)
        output = (self.shape[0], len(self.taps(0)), len(self.taps(1)), self.shape[3])
        same = self.maximum
        y = Quantised(output, self.scales[not same], self.points[not same], self.dtype)
        low, high = np.iinfo(self.dtype).min, np.iinfo(self.dtype).max
        windows = WindowAttrs(self.window, self.strides, self.wide, self.dilation, low, high)

        def build(v: Any) -> Any:
            if self.maximum:
                return get(WindowMax)(v, attrs=windows)
            counted = self.padding if self.include else NONE
            info = TensorInfo(self.shape, self.dtype)
            attrs, multipliers = window_mean_operands(info, x.quantisation, y.quantisation, windows, counted)
            return get(WindowMean)(v, constant(multipliers), attrs=attrs)

        attributes: dict[str, Any] = {
            "kernel_shape": self.window,
            "strides": self.strides,
            "pads": self.padding,
            "dilations": self.dilation,
            "ceil_mode": int(self.ceil != (0, 0)),
        }
        if not self.maximum:
            attributes["count_include_pad"] = int(self.include)
        name = "MaxPool" if self.maximum else "AveragePool"
        return Case((x,), y, build, self.real, name, attributes, channels_first=True)


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


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_reductions(dtype: str) -> None:
    check(reductions(dtype), runs=2)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_means_over_windows(dtype: str) -> None:
    check(pools(dtype, maximum=False), runs=2)


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
@settings(max_examples=2, deadline=None, derandomize=True)
def test_any(cases: list[Case], seed: int) -> None:
    """ONNX Runtime has no padding as wide as a window, and no dilation of means with padding that counts."""
    check({f"case {i}": case for i, case in enumerate(cases)}, seed=seed, runs=1, meaning=False, onnx=False)


@pytest.mark.slow
@given(cases=Cases, seed=st.integers(0, 1000))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_many(cases: list[Case], seed: int) -> None:
    check({f"case {i}": case for i, case in enumerate(cases)}, seed=seed, runs=2, onnx=False)


def test_clean_under_sanitizers() -> None:
    names = ("one-sided padding that counts", "dilation and padding", "last windows overhang")
    cases = [rows[name] for rows in (pools("int8", maximum=False), pools("int16", maximum=False)) for name in names]
    cases += [pools("int8", maximum=True)["dilation and padding"]]
    cases += [reductions(dtype)[name] for dtype in ("int8", "int16") for name in ("two apart", "saturates")]
    check_sanitized(cases)


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
