"""What is left to do with an accelerator's sums: bias, requantisation per channel, zero point, clamp."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.conv2d import differ, scale_constants
from uaccel.ops.kernel import Constant, Input, Kernel, Output, portable, same
from uaccel.ops.rounding import TFLITE, check_rounding, kernel_suffix
from uaccel.tvm_api import te


@dataclass(frozen=True)
class RequantizeSumsAttrs(Attributes):
    """``axis`` is that of the channels."""

    axis: int
    output_zero_point: int
    clamp_min: int
    clamp_max: int
    output_dtype: str
    rounding: str = TFLITE


@register
class RequantizeSums(IntegerOperator[RequantizeSumsAttrs]):
    """The output stage of a convolution: sums + bias (which wraps), times multiplier / 2**31 * 2**shift, clamped."""

    name = "requantize_sums"
    arguments = ("sums", "bias", "multiplier", "shift")
    channel_axis = "axis"

    def infer(self, inputs: Sequence[TensorInfo], attrs: RequantizeSumsAttrs) -> TensorInfo:
        sums, rank = inputs[0], len(inputs[0].shape)
        check_rounding(attrs, self.name)
        require(sums.dtype == "int32" and rank >= 2, f"requantize_sums: {sums}, wanted int32 of rank 2 or more")
        require(0 <= attrs.axis < rank, f"requantize_sums: axis {attrs.axis} of {sums}")
        wanted = TensorInfo((sums.shape[attrs.axis],), "int32")
        for name, given in zip(self.arguments[1:], inputs[1:], strict=True):
            require(given == wanted, f"requantize_sums: {name} is {given}, wanted {wanted}")
        require(attrs.output_dtype == "int8", f"requantize_sums: output is {attrs.output_dtype}, wanted int8")
        return TensorInfo(sums.shape, attrs.output_dtype)

    def meaning(self, inputs: Sequence[Any], attrs: RequantizeSumsAttrs) -> Any:
        sums, bias, multiplier, shift = inputs

        def element(*index: Any) -> Any:
            c = index[attrs.axis]
            total = exact.i32(exact.wrap32(exact.i64(sums(*index)) + exact.i64(bias(c))))
            scaled = exact.requantize_as(attrs.rounding, total, multiplier(c), shift(c))
            return exact.finish(scaled, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, attrs.output_dtype)

        return te.compute(sums.shape, element, name="requantize_sums")

    def kernels(self, site: Site[RequantizeSumsAttrs]) -> Sequence[Kernel]:
        attrs, shape = site.attrs, site.output.shape
        bias, multiplier, shift = (operand.value for operand in site.operands[1:])
        parameters = {
            "outer": math.prod(shape[: attrs.axis]),
            "channels": shape[attrs.axis],
            "inner": math.prod(shape[attrs.axis + 1 :]),
            **same(attrs, "output_zero_point", "clamp_min", "clamp_max"),
            "scale_step": int(differ(multiplier, shift)),
        }
        arguments = (Input(0), Constant("bias", bias), *scale_constants(multiplier, shift), Output(0))
        struct = "uaccel_requantize_sums"
        function = f"{struct}_s8{kernel_suffix(attrs)}"
        return [portable(function, struct, parameters, arguments, inplace=(0,))]
