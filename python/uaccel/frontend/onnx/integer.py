"""Operators that give exact sums of integers, and the quantisation that goes with them."""

from __future__ import annotations

import numpy as np

from uaccel.errors import need
from uaccel.frontend.half_even import half_even
from uaccel.frontend.onnx.convert import Context, Expr, converts
from uaccel.frontend.onnx.graph import Node
from uaccel.ops.base import constant, info_of
from uaccel.tvm_api import relax

STORED = ("int8", "uint8")


def _difference(context: Context, name: str, point_name: str, point_shape: tuple[int, ...]) -> Expr:
    """The tensor in 32 bits, less its zero point; ``point_shape`` is how a list of zero points broadcasts."""
    dtype = context.info(name).dtype
    need(dtype in STORED, f'"{name}" is {dtype}, wanted {" or ".join(STORED)}')
    wide = relax.op.astype(context.expr(name), "int32")
    if not point_name:
        return wide
    info, known = context.info(point_name), context.known(point_name)
    need(info.dtype == dtype, f'the zero point "{point_name}" is {info.dtype} and "{name}" is {dtype}')
    if known is not None and not known.any():
        return wide
    shape = info.shape if len(info.shape) > 1 else () if info.elements == 1 else point_shape
    if known is not None:
        return relax.op.subtract(wide, constant(known.astype(np.int32).reshape(shape)))
    point = relax.op.astype(relax.op.reshape(context.expr(point_name), shape), "int32")
    return relax.op.subtract(wide, point)


@converts("ConvInteger")
def conv_integer(context: Context, node: Node) -> Expr:
    """Padding is with the zero point, so with 0 behind the difference."""
    data, weights = node.required_input(0), node.required_input(1)
    rank = len(context.info(weights).shape)
    inputs = [
        _difference(context, data, node.optional_input(2), ()),
        _difference(context, weights, node.optional_input(3), (-1, *(1,) * (rank - 1))),
    ]
    return context.compute("Conv", inputs, **node.attributes)


@converts("MatMulInteger")
def matmul_integer(context: Context, node: Node) -> Expr:
    """A list of zero points goes by row on the left and by column on the right."""
    left = _difference(context, node.required_input(0), node.optional_input(2), (-1, 1))
    right = _difference(context, node.required_input(1), node.optional_input(3), (1, -1))
    return relax.op.matmul(left, right)


def round_half_even(context: Context, data: Expr) -> Expr:
    return half_even(context.block.builder.emit, data)


def real(number: float, context: Context, like: Expr) -> Expr:
    """A constant of the type that another tensor has."""
    return constant(np.asarray(number, info_of(context.normal(like)).dtype))


@converts("DynamicQuantizeLinear")
def dynamic_quantize_linear(context: Context, node: Node) -> list[Expr]:
    """To uint8, by the range of the data; where all of them are 0 the scale is 1, as ONNX Runtime has it."""
    data = context.expr(node.required_input(0))
    emit, zero = context.block.builder.emit, real(0.0, context, data)
    high = relax.op.maximum(relax.op.max(data), zero)
    low = emit(relax.op.minimum(relax.op.min(data), zero))
    span = emit(relax.op.subtract(high, low))
    none = relax.op.equal(span, zero)
    scale = emit(relax.op.where(none, real(1.0, context, data), relax.op.divide(span, real(255.0, context, data))))
    point = relax.op.divide(relax.op.negative(low), scale)
    point = emit(round_half_even(context, relax.op.clip(point, 0, 255)))
    scaled = round_half_even(context, relax.op.divide(data, scale))
    value = relax.op.clip(relax.op.add(scaled, point), 0, 255)
    return [relax.op.astype(value, "uint8"), scale, relax.op.astype(point, "uint8")]
