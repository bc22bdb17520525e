"""SVDF in float: its C is printed from its meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.tvm_api import te, tirx


@dataclass(frozen=True)
class SvdfFloatAttrs(Attributes):
    """``rank`` filters make a unit; ``relu`` is 1 where negative results become zero."""

    rank: int
    relu: int


@register
class SvdfFloat(IntegerOperator[SvdfFloatAttrs]):
    """As ``svdf``: the newest feature of a filter lies last, and the second result is the state afterwards."""

    name = "svdf_float"
    arguments = ("input", "state", "feature_weights", "time_weights", "bias")

    def infer(self, inputs: Sequence[TensorInfo], attrs: SvdfFloatAttrs) -> tuple[TensorInfo, ...]:
        data, state, features, times, bias = inputs
        require(len(data.shape) == 2, f"svdf: input {data}, wanted rank 2")
        (batch, depth), (filters, memory) = data.shape, times.shape
        require(features.shape == (filters, depth), f"svdf: weights {features} do not fit {data} and {times}")
        require(state.shape == (batch, filters * memory), f"svdf: state {state} does not fit {data} and {times}")
        require(bias.shape == (filters // attrs.rank,), f"svdf: bias {bias} for {filters} filters of rank {attrs.rank}")
        return TensorInfo((batch, filters // attrs.rank), data.dtype), state

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

    def macs(self, site: Site[SvdfFloatAttrs]) -> int:
        features, times = site.operands[2].info, site.operands[3].info
        return site.operands[0].info.shape[0] * (features.elements + times.elements)
