"""Between single-precision floats and quantised integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, Elementwise, IntegerOperator, Site, register, require
from uaccel.ops.exact import half_even, real
from uaccel.ops.kernel import Input, Kernel, Output, dtype_suffix, portable, same
from uaccel.ops.rounding import FLOAT32, TFLITE, check_rounding, kernel_suffix
from uaccel.tvm_api import te, tirx

DTYPES = ("int8", "uint8", "int16")


@dataclass(frozen=True)
class QuantizeAttrs(Attributes):
    """``scale`` is a single-precision number."""

    scale: float
    zero_point: int
    output_dtype: str
    rounding: str = TFLITE


@register
class Quantize(IntegerOperator[QuantizeAttrs]):
    """round(x / scale) + zero_point, clamped; a NaN becomes the lowest value.

    Halves go away from zero as in TFLite, or to even with float32 rounding.
    """

    name = "quantize"
    arguments = ("input",)
    elementwise = Elementwise.FIRST

    def infer(self, inputs: Sequence[TensorInfo], attrs: QuantizeAttrs) -> TensorInfo:
        check_rounding(attrs, self.name)
        require(inputs[0].dtype == "float32", f"quantize: input is {inputs[0].dtype}, wanted float32")
        require(attrs.output_dtype in DTYPES, f"quantize: output is {attrs.output_dtype}")
        return TensorInfo(inputs[0].shape, attrs.output_dtype)

    def meaning(self, inputs: Sequence[Any], attrs: QuantizeAttrs) -> Any:
        (data,) = inputs
        low, high = exact.limits(attrs.output_dtype)
        lowest, highest = (real(limit - attrs.zero_point) for limit in (low, high))

        def clamped(*index: Any) -> Any:
            quotient = data(*index) / real(attrs.scale)
            return tirx.Select(quotient > lowest, tirx.Select(quotient < highest, quotient, highest), lowest)

        steps = te.compute(data.shape, clamped, name="steps")

        def element(*index: Any) -> Any:
            rounded = half_even if attrs.rounding == FLOAT32 else _half_away
            value = rounded(steps(*index)) + exact.const(attrs.zero_point, "int32")
            return value.astype(attrs.output_dtype)

        return te.compute(data.shape, element, name="quantize")

    def kernels(self, site: Site[QuantizeAttrs]) -> Sequence[Kernel]:
        low, high = exact.limits(site.output.dtype)
        parameters = {
            "elements": site.output.elements,
            **same(site.attrs, "scale", "zero_point"),
            "clamp_min": low,
            "clamp_max": high,
        }
        function = f"uaccel_quantize_{dtype_suffix(site.output.dtype)}{kernel_suffix(site.attrs)}"
        return [portable(function, "uaccel_quantize", parameters, (Input(0), Output(0)))]


@dataclass(frozen=True)
class DequantizeAttrs(Attributes):
    """``scale`` is a single-precision number."""

    scale: float
    zero_point: int


@register
class Dequantize(IntegerOperator[DequantizeAttrs]):
    """(x - zero_point) * scale."""

    name = "dequantize"
    arguments = ("input",)
    elementwise = Elementwise.FIRST

    def infer(self, inputs: Sequence[TensorInfo], attrs: DequantizeAttrs) -> TensorInfo:
        require(inputs[0].dtype in DTYPES, f"dequantize: input is {inputs[0].dtype}")
        return TensorInfo(inputs[0].shape, "float32")

    def meaning(self, inputs: Sequence[Any], attrs: DequantizeAttrs) -> Any:
        (data,) = inputs

        def element(*index: Any) -> Any:
            value = exact.i32(data(*index)) - exact.const(attrs.zero_point, "int32")
            return value.astype("float32") * real(attrs.scale)

        return te.compute(data.shape, element, name="dequantize")

    def kernels(self, site: Site[DequantizeAttrs]) -> Sequence[Kernel]:
        parameters = {
            "elements": site.output.elements,
            **same(site.attrs, "scale", "zero_point"),
        }
        function = f"uaccel_dequantize_{dtype_suffix(site.operands[0].info.dtype)}"
        return [portable(function, "uaccel_dequantize", parameters, (Input(0), Output(0)), header="uaccel_quantize.h")]


def _half_away(steps: Any) -> Any:
    """A float32 as an int32."""
    whole = exact.i32(steps)
    rest = steps - whole.astype("float32")
    up, down = (tirx.Select(condition, _one(), _zero()) for condition in (rest >= real(0.5), rest <= real(-0.5)))
    return whole + up - down


def _one() -> Any:
    return exact.const(1, "int32")


def _zero() -> Any:
    return exact.const(0, "int32")
