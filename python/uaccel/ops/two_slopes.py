"""One factor for positive values and another for negative ones: LEAKY_RELU and ABS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from uaccel.model import Array, TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, Elementwise, IntegerOperator, Site, register, require
from uaccel.ops.fixedpoint import multiply_by_quantized_multiplier
from uaccel.ops.kernel import Input, Kernel, Output, dtype_suffix, portable
from uaccel.ops.lookup import lookup_kernel, stored_values, worth_a_table
from uaccel.tvm_api import te, tirx


@dataclass(frozen=True)
class TwoSlopesAttrs(Attributes):
    """``negative_multiplier`` may be negative."""

    input_zero_point: int
    output_zero_point: int
    positive_multiplier: int
    positive_shift: int
    negative_multiplier: int
    negative_shift: int


@register
class TwoSlopes(IntegerOperator[TwoSlopesAttrs]):
    """x * positive factor for x >= 0, x * negative factor for x < 0; int8 and int16."""

    name = "two_slopes"
    arguments = ("input",)
    elementwise = Elementwise.FIRST

    def infer(self, inputs: Sequence[TensorInfo], attrs: TwoSlopesAttrs) -> TensorInfo:
        require(inputs[0].dtype in ("int8", "int16"), f"two_slopes: input is {inputs[0].dtype}, wanted int8 or int16")
        return inputs[0]

    def meaning(self, inputs: Sequence[Any], attrs: TwoSlopesAttrs) -> Any:
        (data,) = inputs
        low, high = exact.limits(str(data.dtype))

        def element(*index: Any) -> Any:
            value = exact.i32(data(*index)) - exact.const(attrs.input_zero_point, "int32")
            positive = exact.requantize_const(value, attrs.positive_multiplier, attrs.positive_shift)
            negative = exact.requantize_const(value, attrs.negative_multiplier, attrs.negative_shift)
            scaled = tirx.Select(value >= exact.const(0, "int32"), positive, negative)
            return exact.finish(scaled, attrs.output_zero_point, low, high, str(data.dtype))

        return te.compute(data.shape, element, name="two_slopes")

    def kernels(self, site: Site[TwoSlopesAttrs]) -> Sequence[Kernel]:
        low, high = exact.limits(site.output.dtype)
        parameters = {"elements": site.output.elements} | asdict(site.attrs) | {"clamp_min": low, "clamp_max": high}
        function = f"uaccel_two_slopes_{dtype_suffix(site.output.dtype)}"
        arithmetic = portable(function, "uaccel_two_slopes", parameters, (Input(0), Output(0)), inplace=(0,))
        if site.output.dtype == "int8" and worth_a_table(site.output.elements):
            return [lookup_kernel(site.output.elements, _table(site.attrs)), arithmetic]
        return [arithmetic]


def _table(attrs: TwoSlopesAttrs) -> Array:
    value = stored_values("int8") - attrs.input_zero_point
    positive = multiply_by_quantized_multiplier(value, attrs.positive_multiplier, attrs.positive_shift)
    negative = multiply_by_quantized_multiplier(value, attrs.negative_multiplier, attrs.negative_shift)
    scaled = np.where(value >= 0, positive, negative) + attrs.output_zero_point
    return np.asarray(np.clip(scaled, -128, 127), np.int8)
