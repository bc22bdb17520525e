"""Converts QUANTIZE (also between integer quantisations), DEQUANTIZE, and CAST between plain numbers."""

from __future__ import annotations

import numpy as np

from uaccel.errors import need
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.checks import need_dtype, need_one_scale
from uaccel.frontend.tflite.converter import Context, Expr, converts
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.ops import exact
from uaccel.ops.fixedpoint import quantize_multiplier
from uaccel.ops.operator import get
from uaccel.ops.quantize import Dequantize, DequantizeAttrs, Quantize, QuantizeAttrs, Requantize, RequantizeAttrs
from uaccel.tvm_api import relax

QUANTISED_FLOATS, HALF = ("int8", "uint8", "int16"), "float16"
REQUANTISATIONS = {
    "int8": ("int8", "uint8", "int16", "int32"),
    "uint8": ("int8",),
    "int16": ("int8", "int16", "int32"),
    "int32": ("int8", "int16"),
}


def _tensors(operator: Operator) -> tuple[Tensor, Tensor]:
    data, output = operator.required_input(0), operator.outputs[0]
    need(data.info.shape == output.info.shape, f"the shapes of {data.info} and {output.info} differ")
    return data, output


@converts("QUANTIZE", when=always)
def quantize(context: Context, operator: Operator) -> Expr:
    data, output = _tensors(operator)
    need_dtype(data, ("float32", *REQUANTISATIONS), "input")
    need_one_scale(output)
    if data.info.dtype == "float32":
        need_dtype(output, QUANTISED_FLOATS, "output")
        attrs = QuantizeAttrs(output.scale, output.zero_point, output.info.dtype)
        return get(Quantize)(context.expr(data), attrs=attrs)
    need_dtype(output, REQUANTISATIONS[data.info.dtype], f"from {data.info.dtype}, output")
    need_one_scale(data)
    low, high = exact.limits(output.info.dtype)
    return rescaled(context, data, output, low, high)


def rescaled(context: Context, data: Tensor, output: Tensor, low: int, high: int) -> Expr:
    """Rescales from the input's quantisation to the output's, clamped to the stored values low..high."""
    points, scale = (data.zero_point, output.zero_point), quantize_multiplier(data.scale / output.scale)
    attrs = RequantizeAttrs(*points, *scale, low, high, output.info.dtype)
    return get(Requantize)(context.expr(data), attrs=attrs)


@converts("DEQUANTIZE", when=always)
def dequantize(context: Context, operator: Operator) -> Expr:
    data, output = _tensors(operator)
    need_dtype(data, (*QUANTISED_FLOATS, HALF), "input")
    need_dtype(output, ("float32",), "output")
    if data.info.dtype == HALF:
        return relax.op.astype(context.expr(data), "float32")  # every such number is one
    return dequantised(context.expr(data), data)


@converts("DENSIFY", when=always)
def densify(context: Context, operator: Operator) -> Expr:
    """The reader spreads a sparse constant already."""
    data, _ = _tensors(operator)
    need(data.data is not None, "its input is no constant")
    return context.expr(data)


def dequantised(expr: Expr, tensor: Tensor) -> Expr:
    """The numbers that a tensor's integers stand for, by its one scale; ``expr`` are they, or some of them."""
    need_one_scale(tensor)
    return get(Dequantize)(expr, attrs=DequantizeAttrs(float(np.float32(tensor.scale)), tensor.zero_point))


@converts("CAST", "STABLEHLO_CONVERT", when=always)
def cast(context: Context, operator: Operator) -> Expr:
    """Casts stored numbers, whatever the scales; too large ones lose their upper bits.

    The tensors' types count: the reference does not read the options, which contradict them in some files.
    """
    data, output = _tensors(operator)
    return relax.op.astype(context.expr(data), output.info.dtype)
