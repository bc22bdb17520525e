"""From one integer quantisation to another, with a clamp: also what RELU and its relatives are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from uaccel.model import Array, TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, Elementwise, IntegerOperator, Site, register, require
from uaccel.ops.kernel import Input, Kernel, Output, dtype_suffix, portable
from uaccel.ops.lookup import BYTES, lookup_kernel, stored_values, worth_a_table
from uaccel.ops.rounding import TFLITE, check_rounding, kernel_suffix, requantized
from uaccel.tvm_api import te

DTYPES = ("int8", "uint8", "int16", "int32")
UNSIGNED = ("uint16", "int16")  # what either of them may become
UNITY = (1 << 30, 1)  # the multiplier and shift that mean exactly one


@dataclass(frozen=True)
class RequantizeAttrs(Attributes):
    input_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int
    clamp_min: int
    clamp_max: int
    output_dtype: str
    rounding: str = TFLITE


@register
class Requantize(IntegerOperator[RequantizeAttrs]):
    """clamp(output_zero_point + (input - input_zero_point) * multiplier / 2**31 * 2**shift).

    With float32 rounding results have at most 16 bits.
    """

    name = "requantize"
    arguments = ("input",)
    elementwise = Elementwise.FIRST

    def infer(self, inputs: Sequence[TensorInfo], attrs: RequantizeAttrs) -> TensorInfo:
        check_rounding(attrs, self.name)
        if inputs[0].dtype not in UNSIGNED or attrs.output_dtype not in UNSIGNED:
            require(inputs[0].dtype in DTYPES, f"requantize: input is {inputs[0].dtype}")
            require(attrs.output_dtype in DTYPES, f"requantize: output is {attrs.output_dtype}")
        narrow = attrs.rounding == TFLITE or attrs.output_dtype != "int32"
        require(narrow, f"requantize: output is {attrs.output_dtype}, too wide for the rounding {attrs.rounding}")
        return TensorInfo(inputs[0].shape, attrs.output_dtype)

    def meaning(self, inputs: Sequence[Any], attrs: RequantizeAttrs) -> Any:
        (data,) = inputs
        factor = [exact.const(number, "int32") for number in (attrs.multiplier, attrs.shift)]

        def element(*index: Any) -> Any:
            value = exact.i32(data(*index)) - exact.const(attrs.input_zero_point, "int32")
            scaled = exact.i32(exact.requantize_as(attrs.rounding, value, *factor))
            return exact.finish(scaled, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, attrs.output_dtype)

        return te.compute(data.shape, element, name="requantize")

    def kernels(self, site: Site[RequantizeAttrs]) -> Sequence[Kernel]:
        attrs, data, output = site.attrs, site.operands[0].info, site.output
        parameters = {"elements": output.elements} | asdict(attrs)
        del parameters["output_dtype"], parameters["rounding"]
        types = f"{dtype_suffix(data.dtype)}_{dtype_suffix(output.dtype)}"
        function = f"uaccel_requantize_{types}{kernel_suffix(attrs)}"
        inplace = (0,) if data.itemsize == output.itemsize else ()
        arguments = (Input(0), Output(0))
        arithmetic = portable(function, "uaccel_requantize", parameters, arguments, inplace=inplace)
        bytes_only = data.dtype in BYTES and output.dtype in BYTES
        if bytes_only and (attrs.multiplier, attrs.shift) != UNITY and worth_a_table(output.elements):
            return [lookup_kernel(output.elements, _table(data.dtype, attrs)), arithmetic]
        return [arithmetic]


def _table(dtype: str, attrs: RequantizeAttrs) -> Array:
    value = stored_values(dtype) - attrs.input_zero_point
    scaled = requantized(value, attrs.multiplier, attrs.shift, attrs.rounding) + attrs.output_zero_point
    return np.clip(scaled, attrs.clamp_min, attrs.clamp_max).astype(attrs.output_dtype)
