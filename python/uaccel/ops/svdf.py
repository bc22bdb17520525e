"""Defines SVDF, a layer of streaming networks, of integers and of floats.

Each filter computes one feature of a frame; a second filter weighs the features of the last frames, which are state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.conv import folded_bias
from uaccel.ops.kernel import Constant, Input, Kernel, Output, dtype_suffix, portable, same
from uaccel.ops.operator import Attributes, IntegerOperator, Site, register, require
from uaccel.tvm_api import te, tirx

# SVDF of integers, as TFLite's reference computes it.


@dataclass(frozen=True)
class OfRank(Attributes):
    """``rank`` filters make a unit."""

    rank: int


A = TypeVar("A", bound=OfRank)


@dataclass(frozen=True)
class SvdfAttrs(OfRank):
    """``feature_...`` scales a frame's sum of products to the feature that is kept."""

    input_zero_point: int
    state_zero_point: int
    output_zero_point: int
    feature_multiplier: int
    feature_shift: int
    output_multiplier: int
    output_shift: int


class OfFilters(IntegerOperator[A]):
    """Has what both operators share: types, and work."""

    arguments = ("input", "state", "feature_weights", "time_weights", "bias")

    def infer(self, inputs: Sequence[TensorInfo], attrs: A) -> tuple[TensorInfo, ...]:
        data, state, features, times, bias = inputs
        require(len(data.shape) == 2, f"svdf: input {data}, wanted rank 2")
        (batch, depth), (filters, memory), rank = data.shape, times.shape, attrs.rank
        require(features.shape == (filters, depth), f"svdf: weights {features} do not fit {data} and {times}")
        require(state.shape == (batch, filters * memory), f"svdf: state {state} does not fit {data} and {times}")
        require(state.dtype == times.dtype, f"svdf: state {state} and weights {times} differ in type")
        require(bias.shape == (filters // rank,), f"svdf: bias {bias} for {filters} filters of rank {rank}")
        return TensorInfo((batch, filters // rank), data.dtype), state

    def macs(self, site: Site[A]) -> int:
        features, times = site.operands[2].info, site.operands[3].info
        return site.operands[0].info.shape[0] * (features.elements + times.elements)


@register
class Svdf(OfFilters[SvdfAttrs]):
    """Filters input [batch, depth] with state [batch, filters * memory], which has the newest feature of a filter last;
    its second result is the state afterwards."""

    name = "svdf"

    def meaning(self, inputs: Sequence[Any], attrs: SvdfAttrs) -> Any:
        data, state, features, times, bias = inputs
        batch, depth = (int(extent) for extent in data.shape)
        filters, memory = (int(extent) for extent in times.shape)
        low, high = exact.limits(str(state.dtype))
        k = te.reduce_axis((0, depth), name="k")
        zero = exact.const(attrs.input_zero_point, "int32")
        dot = te.compute(
            (batch, filters),
            lambda b, f: te.sum((exact.i32(data(b, k)) - zero) * exact.i32(features(f, k)), axis=k),
            name="dot",
        )

        def feature(b: Any, f: Any) -> Any:
            scaled = exact.requantize_const(dot(b, f), attrs.feature_multiplier, attrs.feature_shift)
            shifted = exact.clamp(scaled, low, high) + exact.const(attrs.state_zero_point)
            return shifted.astype(str(state.dtype))  # wraps, as the reference's does: it clamps too early

        newest = te.compute((batch, filters), feature, name="newest")
        last = exact.const(memory - 1, "int32")

        def moved(b: Any, i: Any) -> Any:
            following = tirx.min(i + 1, filters * memory - 1)
            return tirx.Select(i % memory == last, newest(b, i // memory), state(b, following))

        after = te.compute((batch, filters * memory), moved, name="state")
        r, m = te.reduce_axis((0, attrs.rank), name="r"), te.reduce_axis((0, memory), name="m")
        point = exact.const(attrs.state_zero_point, "int32")

        def product(b: Any, unit: Any) -> Any:
            row = unit * attrs.rank + r
            value = exact.i32(after(b, row * memory + m)) - point
            return te.sum(value * exact.i32(times(row, m)), axis=[r, m])

        sums = te.compute((batch, filters // attrs.rank), product, name="sums")

        def output(b: Any, unit: Any) -> Any:
            acc = exact.wrap32(exact.i64(sums(b, unit)) + exact.i64(bias(unit)))
            scaled = exact.requantize_const(acc, attrs.output_multiplier, attrs.output_shift)
            return exact.finish(scaled, attrs.output_zero_point, *exact.limits(str(data.dtype)), str(data.dtype))

        return [te.compute(sums.shape, output, name="svdf"), after]

    def kernels(self, site: Site[SvdfAttrs]) -> Sequence[Kernel]:
        attrs, data = site.attrs, site.operands[0].info
        features, times, bias = (operand.value for operand in site.operands[2:])
        low, high = exact.limits(site.operands[1].info.dtype)
        parameters = {
            "batch": data.shape[0],
            "depth": data.shape[1],
            "units": len(bias),
            "rank": attrs.rank,
            "memory": times.shape[1],
            **same(attrs, "state_zero_point", "output_zero_point"),
            "state_min": low,
            "state_max": high,
            **same(attrs, "feature_multiplier", "feature_shift", "output_multiplier", "output_shift"),
        }
        by_unit = times.reshape(len(bias), -1)
        arguments = (
            *(Input(0), Input(1), Constant("feature_weights", features)),
            Constant("feature_bias", folded_bias(np.zeros(len(features), np.int32), features, attrs.input_zero_point)),
            *(Constant("time_weights", times), Constant("bias", folded_bias(bias, by_unit, attrs.state_zero_point))),
            *(Output(0), Output(1)),
        )
        function = f"uaccel_svdf_{dtype_suffix(str(times.dtype))}"
        return [portable(function, "uaccel_svdf", parameters, arguments, updates=((1, 1),))]


# SVDF in float: its C is printed from its meaning.


@dataclass(frozen=True)
class SvdfFloatAttrs(OfRank):
    """Says with ``relu`` 1 that negative results become zero."""

    relu: int


@register
class SvdfFloat(OfFilters[SvdfFloatAttrs]):
    """Does as ``svdf``: the newest feature of a filter lies last, and the second result is the state afterwards."""

    name = "svdf_float"

    def meaning(self, inputs: Sequence[Any], attrs: SvdfFloatAttrs) -> Any:
        data, state, features, times, bias = inputs
        batch, depth = (int(extent) for extent in data.shape)
        filters, memory = (int(extent) for extent in times.shape)
        k = te.reduce_axis((0, depth), name="k")
        newest = te.compute((batch, filters), lambda b, f: te.sum(data(b, k) * features(f, k), axis=k), name="newest")

        def moved(b: Any, i: Any) -> Any:
            following = tirx.min(i + 1, filters * memory - 1)
            is_last = tirx.floormod(i, memory) == memory - 1
            return tirx.Select(is_last, newest(b, tirx.floordiv(i, memory)), state(b, following))

        after = te.compute((batch, filters * memory), moved, name="state")
        r, m = te.reduce_axis((0, attrs.rank), name="r"), te.reduce_axis((0, memory), name="m")

        def product(b: Any, unit: Any) -> Any:
            row = unit * attrs.rank + r
            return te.sum(after(b, row * memory + m) * times(row, m), axis=[r, m])

        sums = te.compute((batch, filters // attrs.rank), product, name="sums")

        def output(b: Any, unit: Any) -> Any:
            total = sums(b, unit) + bias(unit)
            return tirx.max(total, tirx.const(0, data.dtype)) if attrs.relu else total

        return [te.compute(sums.shape, output, name="svdf"), after]
