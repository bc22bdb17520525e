"""The largest or smallest elements along an axis in their order, and where they were."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, register, require
from uaccel.tvm_api import tirx
from uaccel.tvm_api.loops import computed_once, count_to, local_array, where, written_by_loops


@dataclass(frozen=True)
class TopKAttrs(Attributes):
    """``axis`` counts from the front; ``largest``: or else the smallest; positions are int32 or int64."""

    axis: int
    count: int
    largest: int
    position_dtype: str


@register
class TopK(IntegerOperator[TopKAttrs]):
    """Of equal elements the first comes first. An element takes its place among the best so far."""

    name = "top_k"
    hides_differences = True
    arguments = ("input",)

    def infer(self, inputs: Sequence[TensorInfo], attrs: TopKAttrs) -> tuple[TensorInfo, ...]:
        (data,) = inputs
        require(0 <= attrs.axis < len(data.shape), f"top_k: {attrs.axis} is not an axis of {data}")
        extent = data.shape[attrs.axis]
        require(1 <= attrs.count <= extent, f"top_k: {attrs.count} of {extent} elements, wanted 1 to {extent}")
        shape = (*data.shape[: attrs.axis], attrs.count, *data.shape[attrs.axis + 1 :])
        return TensorInfo(shape, data.dtype), TensorInfo(shape, attrs.position_dtype)

    def meaning(self, inputs: Sequence[Any], attrs: TopKAttrs) -> Any:
        info = exact.info(inputs[0])
        outputs = [(result.shape, result.dtype) for result in self.infer([info], attrs)]
        outer, inner = math.prod(info.shape[: attrs.axis]), math.prod(info.shape[attrs.axis + 1 :])
        extent, count = info.shape[attrs.axis], attrs.count

        def write(data: Any, values: Any, positions: Any) -> None:
            place = local_array(1, "int32")

            def precedes(value: Any, at: Any) -> Any:
                """Whether it comes before what stands there; nothing stands where the position is below 0."""
                better = value > values[at] if attrs.largest else value < values[at]
                return tirx.any(positions[at] < tirx.const(0, attrs.position_dtype), better)

            with count_to(outer) as o, count_to(inner) as i:
                first = o * count * inner + i
                with count_to(count) as rank:
                    values[first + rank * inner] = tirx.const(0, info.dtype)
                    positions[first + rank * inner] = tirx.const(-1, attrs.position_dtype)
                with count_to(extent) as number:
                    value = computed_once(data[(o * extent + number) * inner + i])
                    with where(precedes(value, first + (count - 1) * inner)):
                        place[0] = count - 1
                        with count_to(count - 1) as step:
                            before = first + (count - 2 - step) * inner
                            with where(precedes(value, before)):
                                values[before + inner] = values[before]
                                positions[before + inner] = positions[before]
                                place[0] = count - 2 - step
                        values[first + place[0] * inner] = value
                        positions[first + place[0] * inner] = tirx.Cast(attrs.position_dtype, number)

        return written_by_loops(outputs, list(inputs), write, self.name)
