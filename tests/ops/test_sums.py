"""Sums as accelerators give them, and what the CPU does with them: both together are the operator they came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.device.hostlib import Array, HostModel
from support.models.relax_modules import compiled, module_of
from support.oracle.exactness import assert_same
from support.oracle.sanitized import POOL, run_sanitized
from uaccel.codegen.options import EmitOptions
from uaccel.memory import Pool
from uaccel.model import TensorInfo
from uaccel.ops.accumulators import (
    NCHW,
    NHWC,
    TO_NHWC,
    Conv2dSums,
    Conv2dSumsAttrs,
    FullyConnectedSums,
    RequantizeSums,
    RequantizeSumsAttrs,
)
from uaccel.ops.conv import Conv2d, Conv2dAttrs
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import Attributes, constant, get
from uaccel.tvm_api import relax
from uaccel.tvm_api.executor import Executor

QUICK = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
LOWEST, HIGHEST = -(2**31), 2**31 - 1
FROM_NHWC = {NCHW: (0, 3, 1, 2), NHWC: (0, 1, 2, 3)}


@dataclass(frozen=True)
class Window:
    """A convolution as its operators see it; tensors are NHWC and OHWI."""

    x: Array
    weights: Array
    strides: tuple[int, int]
    padding: tuple[int, int, int, int]
    dilation: tuple[int, int]
    groups: int

    def attrs(self, layout: str, padding: tuple[int, ...]) -> Conv2dSumsAttrs:
        return Conv2dSumsAttrs(self.strides, padding, self.dilation, self.groups, layout)

    def sums(self, border: int) -> Array:
        """Window by window, in 64 bits."""
        top, left, bottom, right = self.padding
        x = np.pad(self.x.astype(np.int64), [(0, 0), (top, bottom), (left, right), (0, 0)], constant_values=border)
        outputs, height, width, depth = self.weights.shape
        reach = [(extent - 1) * step for extent, step in zip((height, width), self.dilation, strict=True)]
        rows = range(0, x.shape[1] - reach[0], self.strides[0])
        columns = range(0, x.shape[2] - reach[1], self.strides[1])
        result = np.zeros((len(x), len(rows), len(columns), outputs), np.int64)
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                patch = x[:, row : row + reach[0] + 1 : self.dilation[0], column : column + reach[1] + 1, :]
                patch = patch[:, :, :: self.dilation[1]]
                for o in range(outputs):
                    first = o // (outputs // self.groups) * depth
                    result[:, i, j, o] = (patch[..., first : first + depth] * self.weights[o]).sum(axis=(1, 2, 3))
        return result


def some_bytes(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Extremes as often as anything between."""
    anything = rng.integers(-128, 128, shape)
    return np.where(rng.random(shape) < 0.3, rng.choice([-128, -1, 0, 127], shape), anything).astype(np.int8)


@st.composite
def windows(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Window:
    small, extent = st.integers(1, 2), st.integers(1, 3)
    kernel, dilation = (draw(extent), draw(extent)), (draw(small), draw(small))
    padding = tuple(draw(st.integers(0, 2)) for _ in range(4))
    height, width = ((k - 1) * d + 1 + draw(st.integers(0, 4)) for k, d in zip(kernel, dilation, strict=True))
    groups, depth, per_group = draw(extent), draw(extent), draw(extent)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = some_bytes(rng, (draw(small), height, width, depth * groups))
    weights = some_bytes(rng, (per_group * groups, *kernel, depth))
    return Window(x, weights, (draw(small), draw(small)), padding, dilation, groups)


@pytest.mark.slow
@QUICK
@given(windows(), st.sampled_from([NCHW, NHWC]))
def test_sums_of_a_convolution(window: Window, layout: str) -> None:
    data, weights = (np.ascontiguousarray(t.transpose(FROM_NHWC[layout])) for t in (window.x, window.weights))
    attrs = window.attrs(layout, window.padding)
    module = module_of([data, weights], lambda x, w: get(Conv2dSums)(x, w, attrs=attrs))
    (sums,) = Executor(module).run([data, weights])
    assert_same(sums.transpose(TO_NHWC[layout]), window.sums(0).astype(np.int32), "sums")


@dataclass(frozen=True)
class Scaling:
    """The output stage for some channels."""

    bias: Array
    multiplier: Array
    shift: Array
    zero_point: int
    clamp_min: int
    clamp_max: int

    def __call__(self, sums: Any, axis: int, *, less: Array | int = 0) -> Any:
        attrs = RequantizeSumsAttrs(axis, self.zero_point, self.clamp_min, self.clamp_max, "int8")
        bias = (self.bias - less).astype(np.int32)
        return get(RequantizeSums)(sums, *map(constant, (bias, self.multiplier, self.shift)), attrs=attrs)

    def of(self, total: int, channel: int) -> int:
        """In Python's own integers, halves away from zero."""
        multiplier, shift = int(self.multiplier[channel]), int(self.shift[channel])
        value = wrapped(wrapped(total + int(self.bias[channel])) << max(shift, 0))
        value = (value * multiplier + (1 << 30)) >> 31
        if shift < 0:
            magnitude = (abs(value) + (1 << (-shift - 1))) >> -shift
            value = magnitude if value >= 0 else -magnitude
        return min(max(value + self.zero_point, self.clamp_min), self.clamp_max)

    def expected(self, sums: Array, axis: int) -> Array:
        result = np.zeros(sums.shape, np.int8)
        for index in np.ndindex(sums.shape):
            result[index] = self.of(int(sums[index]), index[axis])
        return result


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


@st.composite
def scalings(draw: Callable[[st.SearchStrategy[Any]], Any], channels: int, *, extreme: bool) -> Scaling:
    bias = st.sampled_from([LOWEST, -1, 0, HIGHEST]) if extreme else st.integers(-(10**6), 10**6)
    multipliers = [0, 1, 2**30, HIGHEST - 1, HIGHEST] if extreme else []
    multiplier = st.sampled_from(multipliers) if extreme else st.integers(2**30, HIGHEST)
    shift = st.integers(-31, 30) if extreme else st.integers(-12, -3)
    count = draw(st.sampled_from([1, channels]))  # one scale for all, or one a channel

    def values(strategy: st.SearchStrategy[int], count: int) -> Array:
        found = [draw(strategy) for _ in range(count)]
        return np.array(found * (channels // count), np.int32)

    low, high = sorted([draw(st.integers(-128, 127)), draw(st.integers(-128, 127))])
    low, high = draw(st.sampled_from([(low, high), (-128, 127)]))
    scale = values(multiplier, count), values(shift, count)
    return Scaling(values(bias, channels), *scale, draw(st.integers(-128, 127)), low, high)


@st.composite
def wild_sums(draw: Callable[[st.SearchStrategy[Any]], Any]) -> tuple[Array, int, Scaling]:
    """Sums, the axis of their channels and what is done with them, everything at its limits."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=5)))
    axis = draw(st.integers(0, len(shape) - 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    limits = rng.choice([LOWEST, LOWEST + 1, -(2**30), -1, 0, 1, 2**30, HIGHEST - 1, HIGHEST], shape)
    near = rng.integers(-200, 200, shape)
    anything = np.where(rng.random(shape) < 0.3, near, rng.integers(LOWEST, HIGHEST, shape, endpoint=True))
    sums = np.where(rng.random(shape) < 0.5, limits, anything).astype(np.int32)
    return sums, axis, draw(scalings(shape[axis], extreme=draw(st.booleans())))


def assert_requantized(sums: Array, axis: int, scaling: Scaling) -> None:
    expected = scaling.expected(sums, axis)
    found = compiled([sums], lambda x: scaling(x, axis))
    assert_same(Executor(found.model.module).run([sums])[0], expected, "the exact meaning")
    assert_same(HostModel(found)(sums)[0], expected, "the generated C")
    assert [call.function for layer in found.program.layers for call in layer.kernel.calls] == [
        "uaccel_requantize_sums_s8"
    ]


@pytest.mark.slow
@QUICK
@given(wild_sums())
def test_sums_of_any_size_are_requantized(case: tuple[Array, int, Scaling]) -> None:
    assert_requantized(*case)


@pytest.mark.long
@settings(QUICK, max_examples=300)
@given(wild_sums())
def test_many_sums_of_any_size_are_requantized(case: tuple[Array, int, Scaling]) -> None:
    assert_requantized(*case)


def limits_of_everything() -> tuple[Array, Scaling]:
    """Every pair of a sum and a channel at their limits; the scaled value alone overflows with a zero point."""
    scales = [(m, s) for m in (0, 1, 2**30, HIGHEST) for s in (-31, -1, 0, 1, 30)]
    channels = [(bias, *scale) for bias in (LOWEST, 0, HIGHEST) for scale in scales]
    bias, multiplier, shift = (np.array(column, np.int32) for column in zip(*channels, strict=True))
    row = np.array([LOWEST, LOWEST + 1, -(2**30), -3, -1, 0, 1, 3, 2**30, HIGHEST], np.int32)
    sums = np.repeat(row[None, None], len(channels), axis=1)
    return sums, Scaling(bias, multiplier, shift, 127, -128, 127)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_limits_under_sanitizers(compiler: str) -> None:
    sums, scaling = limits_of_everything()
    found = compiled([sums], lambda x: scaling(x, 1), EmitOptions(pools=(Pool(POOL),)))
    (outputs,) = run_sanitized(found, [[sums]], compiler)
    assert_same(outputs[0], scaling.expected(sums, 1), "the generated C")


def test_sums_lend_their_bytes_to_what_becomes_of_them() -> None:
    """In C the output overwrites the sums, where nobody else reads them."""
    rng = np.random.default_rng(5)
    scaling = Scaling(np.arange(6, dtype=np.int32), np.full(6, 2**30, np.int32), np.full(6, -3, np.int32), 3, -128, 127)
    x = rng.integers(-1000, 1000, (2, 6, 5), np.int32)
    found = compiled([x], lambda x: relax.op.abs(scaling(relax.op.negative(x), 1)))
    sums, output = found.program.layers[1].inputs[0], found.program.layers[1].outputs[0]
    places = found.placement.places
    assert places[sums.name].offset == places[output.name].offset
    assert_same(HostModel(found)(x)[0], np.abs(scaling.expected(-x, 1)), "the generated C")


@pytest.mark.slow
@QUICK
@given(windows(), st.sampled_from([NCHW, NHWC]), st.integers(-128, 127), st.data())
def test_sums_of_a_padded_input_requantized_are_the_convolution(
    window: Window, layout: str, zero: int, data: st.DataObject
) -> None:
    weights = window.weights
    scaling = data.draw(scalings(len(weights), extreme=False))
    clamp = (scaling.clamp_min, scaling.clamp_max)
    whole = Conv2dAttrs(
        window.strides, window.padding, window.dilation, window.groups, zero, scaling.zero_point, *clamp
    )
    parts = window.attrs(layout, (0, 0, 0, 0))
    order = FROM_NHWC[layout]
    correction = zero * weights.astype(np.int64).sum(axis=(1, 2, 3))

    def build(x: Any) -> Any:
        stage = [constant(values) for values in (scaling.bias, scaling.multiplier, scaling.shift)]
        convolution = get(Conv2d)(x, constant(weights), *stage, attrs=whole)
        top, left, bottom, right = window.padding
        padded = relax.op.nn.pad(x, [0, 0, top, bottom, left, right, 0, 0], "constant", zero)
        padded = relax.op.permute_dims(padded, order)
        sums = get(Conv2dSums)(padded, constant(np.ascontiguousarray(weights.transpose(order))), attrs=parts)
        split = scaling(sums, layout.index("C"), less=correction)
        return relax.Tuple([convolution, relax.op.permute_dims(split, TO_NHWC[layout])])

    convolution, split = Executor(module_of([window.x], build)).run([window.x])
    assert_same(split, convolution, "sums, then requantized")
    assert_same(split, scaling.expected(window.sums(zero) - correction, 3), "the convolution itself")


@pytest.mark.slow
@QUICK
@given(st.integers(1, 4), st.integers(1, 9), st.integers(1, 5), st.integers(-128, 127), st.data())
def test_sums_of_a_fully_connected_layer(rows: int, depth: int, units: int, zero: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    x, weights = some_bytes(rng, (rows, depth)), some_bytes(rng, (units, depth))
    scaling = data.draw(scalings(units, extreme=False))
    whole = FullyConnectedAttrs(zero, scaling.zero_point, scaling.clamp_min, scaling.clamp_max)
    correction = zero * weights.astype(np.int64).sum(axis=1)

    def build(x: Any) -> Any:
        stage = [constant(values) for values in (scaling.bias, scaling.multiplier, scaling.shift)]
        connected = get(FullyConnected)(x, constant(weights), *stage, attrs=whole)
        sums = get(FullyConnectedSums)(x, constant(weights), attrs=Attributes())
        return relax.Tuple([connected, sums, scaling(sums, 1, less=correction)])

    connected, sums, split = Executor(module_of([x], build)).run([x])
    assert_same(sums, x.astype(np.int32) @ weights.astype(np.int32).T, "sums")
    assert_same(split, connected, "sums, then requantized")


@pytest.mark.parametrize("layout", [NCHW, NHWC])
def test_sums_alone_are_left_to_the_fallback(layout: str) -> None:
    rng = np.random.default_rng(3)
    weights = some_bytes(rng, (6, 3, 2, 4))
    window = Window(some_bytes(rng, (1, 6, 5, 8)), weights, (2, 1), (1, 0, 2, 1), (1, 2), 2)
    x, stored = (np.ascontiguousarray(t.transpose(FROM_NHWC[layout])) for t in (window.x, weights))
    attrs = window.attrs(layout, window.padding)
    found = compiled([x], lambda x: get(Conv2dSums)(x, constant(stored), attrs=attrs))
    (layer,) = found.program.layers
    expected = window.sums(0).astype(np.int32)
    assert layer.reason == "no CPU kernel for conv2d_sums: C from its TIR (TIR fallback)"
    assert (layer.op, layer.macs) == ("conv2d_sums", expected.size * 3 * 2 * 4)
    assert_same(HostModel(found)(x)[0].transpose(TO_NHWC[layout]), expected, "the generated C")


@pytest.mark.parametrize("units", [3, 4, 5, 6])
def test_sums_of_some_units(units: int) -> None:
    x, weights = some_bytes(np.random.default_rng(1), (3, 7)), some_bytes(np.random.default_rng(2), (units, 7))
    operator = get(FullyConnectedSums)
    found = compiled([x], lambda x: operator(x, constant(weights), attrs=Attributes()))
    (layer,) = found.program.layers
    assert layer.reason == "CPU kernel uaccel_fully_connected_sums (portable)"
    assert (layer.op, layer.macs) == ("fully_connected_sums", 3 * units * 7)
    assert_same(HostModel(found)(x)[0], x.astype(np.int32) @ weights.astype(np.int32).T, "the generated C")


I8, I32 = "int8", "int32"
UNPADDED = ((1, 1), (0, 0, 0, 0), (1, 1))
SUMS = RequantizeSumsAttrs(1, 0, -128, 127, "int8")

REFUSED: dict[str, tuple[Any, Any, list[tuple[tuple[int, ...], str]], str]] = {
    "layout": (
        Conv2dSums,
        Conv2dSumsAttrs(*UNPADDED, 1, "NHCW"),
        [((1, 4, 4, 2), I8), ((3, 1, 1, 2), I8)],
        "conv2d_sums: layout 'NHCW', wanted NCHW or NHWC",
    ),
    "depth": (
        Conv2dSums,
        Conv2dSumsAttrs(*UNPADDED, 2, "NCHW"),
        [((1, 4, 5, 5), I8), ((2, 4, 1, 1), I8)],
        "conv2d_sums: input int8 [1,5,5,4] does not fit weights int8 [2,1,1,4] in 2 groups",
    ),
    "groups": (
        Conv2dSums,
        Conv2dSumsAttrs(*UNPADDED, 2, "NHWC"),
        [((1, 5, 5, 4), I8), ((3, 1, 1, 2), I8)],
        "conv2d_sums: input int8 [1,5,5,4] does not fit weights int8 [3,1,1,2] in 2 groups",
    ),
    "window": (
        Conv2dSums,
        Conv2dSumsAttrs(*UNPADDED, 1, "NHWC"),
        [((1, 2, 5, 4), I8), ((3, 3, 1, 4), I8)],
        "conv2d_sums: the window (3, 1) is larger than the padded input int8 [1,2,5,4]",
    ),
    "wide input": (
        Conv2dSums,
        Conv2dSumsAttrs(*UNPADDED, 1, "NHWC"),
        [((1, 2, 5, 4), "int16"), ((3, 1, 1, 4), I8)],
        "conv2d_sums: int16 [1,2,5,4] and int8 [3,1,1,4], wanted int8",
    ),
    "units": (
        FullyConnectedSums,
        Attributes(),
        [((1, 5), I8), ((3, 4), I8)],
        "fully_connected_sums: input int8 [1,5] does not fit weights int8 [3,4]",
    ),
    "sums": (
        RequantizeSums,
        SUMS,
        [((1, 5), I8), ((5,), I32), ((5,), I32), ((5,), I32)],
        "requantize_sums: int8 [1,5], wanted int32 of rank 2 or more",
    ),
    "channels": (
        RequantizeSums,
        SUMS,
        [((1, 5, 4), I32), ((5,), I32), ((4,), I32), ((5,), I32)],
        "requantize_sums: multiplier is int32 [4], wanted int32 [5]",
    ),
    "axis": (
        RequantizeSums,
        RequantizeSumsAttrs(2, 0, -128, 127, "int8"),
        [((1, 5), I32), ((5,), I32), ((5,), I32), ((5,), I32)],
        "requantize_sums: axis 2 of int32 [1,5]",
    ),
    "output": (
        RequantizeSums,
        RequantizeSumsAttrs(1, 0, -128, 127, "int16"),
        [((1, 5), I32), ((5,), I32), ((5,), I32), ((5,), I32)],
        "requantize_sums: output is int16, wanted int8",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_do_not_fit_are_refused(name: str) -> None:
    operator, attrs, inputs, reason = REFUSED[name]
    with pytest.raises(TypeError) as refusal:
        get(operator).infer(attrs, *(TensorInfo(*entry) for entry in inputs))
    assert str(refusal.value) == reason
