"""Sums of all elements so far along an axis, quantised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.exact import const
from uaccel.ops.kernel import Input, Kernel, Output, portable, same
from uaccel.tvm_api import te, tirx


@dataclass(frozen=True)
class CumsumAttrs(Attributes):
    """``exclusive``: without the element itself. ``reverse``: from the end. Both 0 or 1.

    A sum is raised by ``left_shift`` bits, wraps to 32, and is brought to the output's scale.
    """

    axis: int
    exclusive: int
    reverse: int
    left_shift: int
    input_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int
    clamp_min: int
    clamp_max: int


@register
class Cumsum(IntegerOperator[CumsumAttrs]):
    """Each sum begins with minus the input's zero point, as the reference's does."""

    name = "cumsum"
    arguments = ("input",)

    def infer(self, inputs: Sequence[TensorInfo], attrs: CumsumAttrs) -> TensorInfo:
        (data,) = inputs
        require(data.dtype == "int8", f"cumsum: input is {data.dtype}, wanted int8")
        require(0 <= attrs.axis < len(data.shape), f"cumsum: {attrs.axis} is not an axis of {data}")
        return data

    def meaning(self, inputs: Sequence[Any], attrs: CumsumAttrs) -> Any:
        (data,) = inputs
        info, axis = exact.info(data), attrs.axis
        k = te.reduce_axis((0, info.shape[axis]), name="k")

        def total(*index: Any) -> Any:
            """Of those that are not behind the element."""
            position = index[axis]
            before = (k.var > position) if attrs.reverse else (k.var < position)
            counts = before if attrs.exclusive else tirx.any(before, tirx.all(k.var <= position, k.var >= position))
            value = exact.i64(data(*index[:axis], k, *index[axis + 1 :])) - const(attrs.input_zero_point)
            return te.sum(tirx.Select(counts, value, const(0)), axis=k)

        sums = te.compute(info.shape, total, name="sums")

        def element(*index: Any) -> Any:
            raised = exact.wrap32((sums(*index) - const(attrs.input_zero_point)) << const(attrs.left_shift))
            scaled = exact.requantize_const(raised, attrs.multiplier, attrs.shift)
            return exact.finish(scaled, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, "int8")

        return te.compute(info.shape, element, name="cumsum")

    def kernels(self, site: Site[CumsumAttrs]) -> Sequence[Kernel]:
        axis, data = site.attrs.axis, site.operands[0].info
        parameters = {
            "outer": math.prod(data.shape[:axis]),
            "extent": data.shape[axis],
            "inner": math.prod(data.shape[axis + 1 :]),
            **same(site.attrs, "exclusive", "reverse", "left_shift", "input_zero_point", "output_zero_point"),
            **same(site.attrs, "multiplier", "shift", "clamp_min", "clamp_max"),
        }
        return [portable("uaccel_cumsum_s8", "uaccel_cumsum", parameters, (Input(0), Output(0)), inplace=(0,))]
