"""Defines changes of type: quantise, dequantise, requantise, and the same bits as another type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from uaccel.model import Array, TensorInfo
from uaccel.ops import exact
from uaccel.ops.exact import FLOAT32, TFLITE, check_rounding, half_even, kernel_suffix, real, requantize_numpy
from uaccel.ops.kernel import Kernel, dtype_suffix, same
from uaccel.ops.lookup import BYTES, lookup_kernel, stored_values, worth_a_table
from uaccel.ops.operator import Attributes, Each, EachAtOnce, Site, require
from uaccel.tvm_api import te, tirx

# Between single-precision floats and quantised integers.

QUANTIZE_DTYPES = ("int8", "uint8", "int16")


class DequantizeAttrs(Attributes):
    """``scale`` is a single-precision number."""

    scale: float
    zero_point: int


class QuantizeAttrs(DequantizeAttrs):
    """Results are of ``output_dtype``, rounded as ``rounding`` says."""

    output_dtype: str
    rounding: str = TFLITE


class Quantize(Each[QuantizeAttrs]):
    """Computes round(x / scale) + zero_point, clamped; a NaN becomes the lowest value.

    Halves go away from zero as in TFLite, or to even with float32 rounding.
    """

    name = "quantize"
    takes = ("float32",)

    def infer(self, attrs: QuantizeAttrs, *inputs: TensorInfo) -> TensorInfo:
        check_rounding(attrs, self.name)
        require(attrs.output_dtype in QUANTIZE_DTYPES, f"quantize: output is {attrs.output_dtype}")
        return super().infer(attrs, *inputs)

    def meaning(self, attrs: QuantizeAttrs, data: Any) -> Any:
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
        return self.one_call(site, parameters, f"{dtype_suffix(site.output.dtype)}{kernel_suffix(site.attrs)}")


class Dequantize(EachAtOnce[DequantizeAttrs]):
    """Computes (x - zero_point) * scale."""

    name = "dequantize"
    takes = QUANTIZE_DTYPES

    def infer(self, attrs: DequantizeAttrs, *inputs: TensorInfo) -> TensorInfo:
        return replace(super().infer(attrs, *inputs), dtype="float32")

    def element(self, value: Any, attrs: DequantizeAttrs, *tables: Any) -> Any:
        return (exact.i32(value) - exact.const(attrs.zero_point, "int32")).astype("float32") * real(attrs.scale)

    def kernels(self, site: Site[DequantizeAttrs]) -> Sequence[Kernel]:
        parameters = {"elements": site.output.elements, **same(site.attrs, "scale", "zero_point")}
        return self.one_call(site, parameters)


def _half_away(steps: Any) -> Any:
    """A float32 as an int32, halves away from zero; the rest behind the point is exact, so the halves are."""
    whole = exact.i32(steps)
    rest = steps - whole.astype("float32")
    one, zero = exact.const(1, "int32"), exact.const(0, "int32")
    up, down = (tirx.Select(condition, one, zero) for condition in (rest >= real(0.5), rest <= real(-0.5)))
    return whole + up - down


# From one integer quantisation to another, with a clamp; ReLU and its relatives are such layers, too.

DTYPES = ("int8", "uint8", "int16", "int32")
UNSIGNED = ("uint16", "int16")  # each may become either
UNITY = (1 << 30, 1)  # the multiplier and shift that mean exactly one


class RequantizeAttrs(Attributes):
    """``multiplier * 2**(shift - 31)`` is input scale / output scale; the clamp bounds the stored result."""

    input_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int
    clamp_min: int
    clamp_max: int
    output_dtype: str
    rounding: str = TFLITE


class Requantize(EachAtOnce[RequantizeAttrs]):
    """Computes clamp(output_zero_point + (input - input_zero_point) * multiplier / 2**31 * 2**shift).

    With float32 rounding results have at most 16 bits.
    """

    name = "requantize"

    def infer(self, attrs: RequantizeAttrs, *inputs: TensorInfo) -> TensorInfo:
        check_rounding(attrs, self.name)
        if inputs[0].dtype not in UNSIGNED or attrs.output_dtype not in UNSIGNED:
            require(inputs[0].dtype in DTYPES, f"requantize: input is {inputs[0].dtype}")
            require(attrs.output_dtype in DTYPES, f"requantize: output is {attrs.output_dtype}")
        narrow = attrs.rounding == TFLITE or attrs.output_dtype != "int32"
        require(narrow, f"requantize: output is {attrs.output_dtype}, too wide for the rounding {attrs.rounding}")
        return super().infer(attrs, *inputs)

    def element(self, value: Any, attrs: RequantizeAttrs, *tables: Any) -> Any:
        factor = (exact.const(number, "int32") for number in (attrs.multiplier, attrs.shift))
        centred = exact.i32(value) - exact.const(attrs.input_zero_point, "int32")
        scaled = exact.i32(exact.requantize_as(attrs.rounding, centred, *factor))
        return exact.finish(scaled, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, attrs.output_dtype)

    def kernels(self, site: Site[RequantizeAttrs]) -> Sequence[Kernel]:
        attrs, data, output = site.attrs, site.operands[0].info, site.output
        parameters = {"elements": output.elements} | asdict(attrs)
        del parameters["output_dtype"], parameters["rounding"]
        types = f"{dtype_suffix(data.dtype)}_{dtype_suffix(output.dtype)}"
        inplace = (0,) if data.itemsize == output.itemsize else ()
        arithmetic = self.one_call(site, parameters, f"{types}{kernel_suffix(attrs)}", inplace=inplace)
        bytes_only = data.dtype in BYTES and output.dtype in BYTES
        if bytes_only and (attrs.multiplier, attrs.shift) != UNITY and worth_a_table(output.elements):
            return [lookup_kernel(output.elements, _table(data.dtype, attrs)), *arithmetic]
        return arithmetic


def _table(dtype: str, attrs: RequantizeAttrs) -> Array:
    value = stored_values(dtype) - attrs.input_zero_point
    scaled = requantize_numpy(value, attrs.multiplier, attrs.shift, attrs.rounding) + attrs.output_zero_point
    return np.clip(scaled, attrs.clamp_min, attrs.clamp_max).astype(attrs.output_dtype)


# The bits of numbers, read as numbers of another type of the same width.


class BitCastAttrs(Attributes):
    """``dtype`` is the type to read the bits as, of the same width."""

    dtype: str


class BitCast(EachAtOnce[BitCastAttrs]):
    """Reads the bits of numbers as another type; its C is printed from its meaning."""

    name = "bit_cast"

    def infer(self, attrs: BitCastAttrs, *inputs: TensorInfo) -> TensorInfo:
        result = TensorInfo(inputs[0].shape, attrs.dtype)
        require(result.itemsize == inputs[0].itemsize, f"bit_cast: {inputs[0]} as {result}, which is of other width")
        return result

    def element(self, value: Any, attrs: BitCastAttrs, *tables: Any) -> Any:
        return tirx.reinterpret(attrs.dtype, value)
