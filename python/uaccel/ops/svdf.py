"""Defines SVDF, a layer of streaming networks, of integers and of floats.

Each filter computes one feature of a frame; a second filter weighs the features of the last frames, which are state.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.conv import folded_bias
from uaccel.ops.kernel import Constant, Input, Kernel, Output, dtype_suffix, portable, same
from uaccel.ops.operator import Attributes, IntegerOperator, Site, require
from uaccel.tvm_api import te, tirx

# SVDF of integers, as TFLite's reference computes it.


class OfRank(Attributes):
    """``rank`` filters make a unit."""

    rank: int


A = TypeVar("A", bound=OfRank)


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

    arguments: ClassVar[tuple[str, ...]] = ("input", "state", "feature_weights", "time_weights", "bias")

    def infer(self, attrs: A, *inputs: TensorInfo) -> tuple[TensorInfo, ...]:
        data, state, features, times, bias = inputs
        require(len(data.shape) == 2, f"svdf: input {data}, wanted rank 2")
        (batch, depth), (filters, memory), rank = data.shape, times.shape, attrs.rank
        require(features.shape == (filters, depth), f"svdf: weights {features} do not fit {data} and {times}")
        require(state.shape == (batch, filters * memory), f"svdf: state {state} does not fit {data} and {times}")
        require(state.dtype == times.dtype, f"svdf: state {state} and weights {times} differ in type")
        require(bias.shape == (filters // rank,), f"svdf: bias {bias} for {filters} filters of rank {rank}")
        return TensorInfo((batch, filters // rank), data.dtype), state

    def term(self, value: Any, attrs: A, zero_point: str = "") -> Any:
        """A factor of a product, less the zero point that is named."""
        return value

    def time_weight(self, value: Any, attrs: A) -> Any:
        """A weight of the last features."""
        return self.term(value, attrs)

    def kept(self, sums: Any, attrs: A, dtype: str) -> Any:
        """The features of a frame as the state keeps them."""
        return sums

    @abc.abstractmethod
    def result(self, total: Any, bias: Any, attrs: A, dtype: str) -> Any:
        """The element of a unit."""

    def meaning(self, attrs: A, data: Any, state: Any, features: Any, times: Any, bias: Any) -> Any:
        (batch, depth), filters = exact.info(data).shape, exact.info(times).shape[0]
        k = te.reduce_axis((0, depth), name="k")

        def dot(b: Any, f: Any) -> Any:
            return te.sum(self.term(data(b, k), attrs, "input") * self.term(features(f, k), attrs), axis=k)

        newest = self.kept(te.compute((batch, filters), dot, name="newest"), attrs, str(state.dtype))
        return self.remembered(newest, state, times, bias, attrs, str(data.dtype))

    def remembered(self, newest: Any, state: Any, times: Any, bias: Any, attrs: A, dtype: str) -> list[Any]:
        """The result of the last features and these newest ones, and the state with them."""
        (batch, filters), memory = exact.info(newest).shape, exact.info(times).shape[1]

        def moved(b: Any, i: Any) -> Any:
            following = tirx.min(i + 1, filters * memory - 1)
            is_last = tirx.floormod(i, memory) == memory - 1
            return tirx.Select(is_last, newest(b, tirx.floordiv(i, memory)), state(b, following))

        after = te.compute((batch, filters * memory), moved, name="state")
        r, m = te.reduce_axis((0, attrs.rank), name="r"), te.reduce_axis((0, memory), name="m")

        def product(b: Any, unit: Any) -> Any:
            row = unit * attrs.rank + r
            value = self.term(after(b, row * memory + m), attrs, "state")
            return te.sum(value * self.time_weight(times(row, m), attrs), axis=[r, m])

        sums = te.compute((batch, filters // attrs.rank), product, name="sums")

        def output(b: Any, unit: Any) -> Any:
            return self.result(sums(b, unit), bias(unit), attrs, dtype)

        return [te.compute(sums.shape, output, name="svdf"), after]

    def macs(self, site: Site[A]) -> int:
        features, times = site.operands[2].info, site.operands[3].info
        return site.operands[0].info.shape[0] * (features.elements + times.elements)


class Svdf(OfFilters[SvdfAttrs]):
    """Filters input [batch, depth] with state [batch, filters * memory], which has the newest feature of a filter last;
    its second result is the state afterwards."""

    name = "svdf"

    def term(self, value: Any, attrs: SvdfAttrs, zero_point: str = "") -> Any:
        return exact.i32(value) - exact.const(getattr(attrs, f"{zero_point}_zero_point", 0), "int32")

    def kept(self, sums: Any, attrs: SvdfAttrs, dtype: str) -> Any:
        low, high = exact.limits(dtype)

        def feature(b: Any, f: Any) -> Any:
            scaled = exact.requantize_const(sums(b, f), attrs.feature_multiplier, attrs.feature_shift)
            shifted = exact.clamp(scaled, low, high) + exact.const(attrs.state_zero_point)
            return shifted.astype(dtype)  # wraps, as the reference's does: it clamps too early

        return te.compute(sums.shape, feature, name="feature")

    def result(self, total: Any, bias: Any, attrs: SvdfAttrs, dtype: str) -> Any:
        acc = exact.wrap32(exact.i64(total) + exact.i64(bias))
        scaled = exact.requantize_const(acc, attrs.output_multiplier, attrs.output_shift)
        return exact.finish(scaled, attrs.output_zero_point, *exact.limits(dtype), dtype)

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


class SvdfFloatAttrs(OfRank):
    """Says with ``relu`` 1 that negative results become zero."""

    relu: int


def _ended(value: Any, attrs: SvdfFloatAttrs, dtype: str) -> Any:
    return tirx.max(value, tirx.const(0, dtype)) if attrs.relu else value


class SvdfFloat(OfFilters[SvdfFloatAttrs]):
    """Does as ``svdf``: the newest feature of a filter lies last, and the second result is the state afterwards."""

    name = "svdf_float"

    def result(self, total: Any, bias: Any, attrs: SvdfFloatAttrs, dtype: str) -> Any:
        return _ended(total + bias, attrs, dtype)


# SVDF of floats whose weights are bytes: ``hybrid_fully_connected`` computes the features of a frame.


class SvdfHybridAttrs(SvdfFloatAttrs):
    """A time weight is its byte times ``time_scale``."""

    time_scale: float


class SvdfHybrid(OfFilters[SvdfHybridAttrs]):
    """Weighs features [batch, filters] of the newest frame and of those in the state, as ``svdf_float`` does."""

    name = "svdf_hybrid"
    arguments = ("input", "state", "time_weights", "bias")

    def infer(self, attrs: SvdfHybridAttrs, *inputs: TensorInfo) -> tuple[TensorInfo, ...]:
        features, state, times, bias = inputs
        (filters, memory), rank = times.shape, attrs.rank
        fits = features.shape[1:] == (filters,) and state.shape == (features.shape[0], filters * memory)
        require(fits, f"{self.name}: features {features} and state {state} do not fit {times}")
        types = (features.dtype, state.dtype, times.dtype) == ("float32", "float32", "int8")
        require(types, f"{self.name}: {features}, {state} and {times}, wanted float32, float32 and int8")
        require(bias.shape == (filters // rank,), f"{self.name}: bias {bias} for {filters} filters of rank {rank}")
        return TensorInfo((features.shape[0], filters // rank), features.dtype), state

    def meaning(self, attrs: SvdfHybridAttrs, *inputs: Any) -> Any:
        features, state, times, bias = inputs
        return self.remembered(features, state, times, bias, attrs, str(features.dtype))

    def time_weight(self, value: Any, attrs: SvdfHybridAttrs) -> Any:
        return value.astype("float32") * exact.real(attrs.time_scale)

    def result(self, total: Any, bias: Any, attrs: SvdfHybridAttrs, dtype: str) -> Any:
        return _ended(total + bias, attrs, dtype)

    def macs(self, site: Site[SvdfHybridAttrs]) -> int:
        return site.operands[0].info.shape[0] * site.operands[2].info.elements
