"""Converts QuantizeLinear and DequantizeLinear, and operators on integers with scales of their own (QLinear...)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.onnx.blocks import blocks_of
from uaccel.frontend.onnx.converter import Context, Converter, Expr, StoredReal, converts
from uaccel.frontend.onnx.functions import evaluated
from uaccel.frontend.onnx.graph import FOUR_BITS, MICROSOFT, MOVING, Node, onnx_package
from uaccel.frontend.onnx.schema import dtype_name
from uaccel.model import Array, Quantisation
from uaccel.ops.operator import constant
from uaccel.tvm_api import relax

# QuantizeLinear and DequantizeLinear.

STORED = ("int8", "uint8", "int16", "uint16")
ACCUMULATED = "int32"  # The type of biases.


def parameters(context: Context, scale_name: str, point_name: str, dtype: str) -> tuple[Array, Array]:
    """Scale and zero point; a zero point that is left out is 0 of the stored type."""
    scale = context.need_known(scale_name, "scale")
    need(scale.dtype in (np.float32, np.float16), f'scale "{scale_name}" is {scale.dtype}, wanted float32')
    need(bool(np.all(np.isfinite(scale) & (scale > 0))), f'scale "{scale_name}" is not a positive number')
    point = np.zeros(scale.shape, dtype) if not point_name else context.need_known(point_name, "zero point")
    fits = point.size == scale.size
    need(fits, f'scale "{scale_name}" has {scale.size} entries and zero point "{point_name}" has {point.size}')
    return _flat(scale), _flat(point)


def _flat(values: Array) -> Array:
    """A scalar for one number, which nodes may give as a list, else a list."""
    return values.reshape(()) if values.size == 1 else values.reshape(-1)


def checked_axis(node: Node, shape: tuple[int, ...], scale: Array) -> int:
    """The axis that a list of scales runs along."""
    need(not node.attributes.get("block_size"), "blocked quantisation is not supported; quantise per tensor or axis")
    if scale.ndim == 0:
        return 0
    axis = need_axis(node.attributes.get("axis", 1), len(shape))
    need(scale.size == shape[axis], f"{scale.size} scales for the {shape[axis]} slices along axis {axis}")
    return axis


def quantisation(scale: Array, point: Array, axis: int) -> Quantisation:
    scales, points = scale.reshape(-1), point.reshape(-1)
    return Quantisation(tuple(map(float, scales)), tuple(map(int, points)), axis)


def dequantised(data: Expr, scale: Array, point: Array, axis: int) -> Expr:
    return relax.op.dequantize(data, constant(scale), constant(point), axis, str(scale.dtype))


def quantised(data: Expr, scale: Array, point: Array, axis: int, dtype: str) -> Expr:
    return relax.op.quantize(data, constant(scale), constant(point), axis, dtype)


def _target(context: Context, node: Node) -> str:
    """The stored type: the zero point's, or the attribute's, or uint8."""
    name = node.optional_input(2)
    given = str(context.need_known(name, "zero point").dtype) if name else _named_type(node)
    need(given in STORED, f"quantising to {given} is not supported, only to {', '.join(STORED)}")
    return given


def _named_type(node: Node) -> str:
    kind = node.attributes.get("output_dtype", 0)
    return dtype_name(onnx_package(), kind) if kind else "uint8"


@converts("QuantizeLinear", f"{MICROSOFT}.QuantizeLinear")
def quantize_linear(context: Context, node: Node) -> Expr:
    name = node.required_input(0)
    dtype, info = _target(context, node), context.info(name)
    need(info.dtype in ("float32", "float16"), f'"{name}" is {info.dtype}, only float can be quantised')
    scale, point = parameters(context, node.required_input(1), node.optional_input(2), dtype)
    axis = checked_axis(node, info.shape, scale)
    context.quantisation[node.outputs[0]] = quantisation(scale, point, axis)
    known = context.known(name)
    if known is not None:
        return constant(_stored(known, scale, point, axis))
    return quantised(context.expr(name), scale, point, axis, dtype)


def _stored(reals: Array, scale: Array, point: Array, axis: int) -> Array:
    """The integers of a constant that is not folded before: dequantised, or quantised by Microsoft's operator."""
    shape = [-1 if place == axis and scale.ndim else 1 for place in range(reals.ndim)]
    scales, points = (part.reshape(shape) for part in (scale, point))
    limits = np.iinfo(point.dtype)
    steps = np.rint(reals / scales) + points
    return np.asarray(np.clip(steps, limits.min, limits.max).astype(point.dtype))


@converts("DequantizeLinear", f"{MICROSOFT}.DequantizeLinear")
def dequantize_linear(context: Context, node: Node) -> Expr:
    name = node.required_input(0)
    info, stored = context.info(name), context.known(name)
    allowed = (*STORED, ACCUMULATED, *FOUR_BITS)
    need(info.dtype in allowed, f'"{name}" is {info.dtype}; dequantising is supported from {", ".join(allowed)}')
    if node.attributes.get("block_size"):
        return _of_blocks(context, node, stored)
    scale, point = parameters(context, node.required_input(1), node.optional_input(2), info.dtype)
    need(str(point.dtype) == info.dtype, f'the zero point is {point.dtype} and "{name}" is {info.dtype}')
    axis = checked_axis(node, info.shape, scale)
    if info.dtype in FOUR_BITS and stored is not None:
        stored, point = (part.astype(FOUR_BITS[info.dtype]) for part in (stored, point))
    if stored is not None:
        context.stored[node.outputs[0]] = StoredReal(stored, scale, point, axis)
    context.quantisation.setdefault(name, quantisation(scale, point, axis))
    return dequantised(context.expr(name) if stored is None else constant(stored), scale, point, axis)


def _of_blocks(context: Context, node: Node, stored: Array | None) -> Expr:
    """Dequantise constants with a scale for each block at import. Products take the integers (``blocks``)."""
    need(stored is not None, "blocked quantisation is supported of constants alone; quantise per tensor or axis")
    assert stored is not None
    axis, size = need_axis(node.attributes.get("axis", 1), stored.ndim), node.attributes["block_size"]
    names = [name for name in node.inputs[1:3] if name]
    scale, *points = (context.need_known(name, "scale or zero point") for name in names)
    blocks = (*stored.shape[:axis], -(-stored.shape[axis] // size), *stored.shape[axis + 1 :])
    need(size > 0 and all(part.shape == blocks for part in (scale, *points)), f"its scales are not {list(blocks)}")
    dtype = context.info(node.inputs[0]).dtype
    kept = blocks_of(stored, dtype, scale, points[0] if points else None, axis, size)
    if kept is not None:
        context.blocks[node.outputs[0]] = kept
    scale, *points = (np.repeat(part, size, axis).take(range(stored.shape[axis]), axis) for part in (scale, *points))
    centred = stored.astype(np.int64) - (points[0].astype(np.int64) if points else 0)
    return constant(centred.astype(scale.dtype) * scale)


def move_quantization(context: Context, node: Node) -> Expr | None:
    """Move the integers of a dequantised constant, so that later stages still find them; None for other nodes."""
    source = context.stored.get(node.inputs[0]) if node.inputs else None
    if source is None or node.op not in MOVING or node.domain:
        return None
    if not all(name in context.constants for name in node.inputs[1:] if name):
        return None
    axis = 0
    if source.scale.ndim:
        if node.op not in ("Identity", "Transpose"):
            return None
        rank = source.stored.ndim
        order = node.attributes.get("perm", tuple(reversed(range(rank)))) if node.op == "Transpose" else range(rank)
        axis = list(order).index(source.axis)
    values = {node.inputs[0]: source.stored} | {name: context.constants[name] for name in node.inputs[1:] if name}
    (stored,) = evaluated(context, node, values)
    context.stored[node.outputs[0]] = StoredReal(stored, source.scale, source.zero_point, axis)
    return dequantised(constant(stored), source.scale, source.zero_point, axis)


# Operators on integers with scales: dequantise the inputs, compute in float, quantise the result.
#
# So they look like QDQ graphs, for which later stages find exact integer arithmetic.


@dataclass(frozen=True, eq=False)
class Stored:
    """Holds an integer tensor of a node with its scale and zero point."""

    expr: Expr
    shape: tuple[int, ...]
    dtype: str
    scale: Array
    point: Array

    def real(self, axis: int = 0) -> Expr:
        if self.scale.ndim:
            axis = need_axis(axis, len(self.shape))
            need(self.scale.size == self.shape[axis], f"{self.scale.size} scales for {self.shape[axis]} slices")
        return dequantised(self.expr, self.scale, self.point, axis)

    @property
    def uniform(self) -> Stored:
        """Itself, if it has one scale for all elements."""
        need(self.scale.ndim == 0, "a scale for each slice is possible for weights only")
        return self


def stored(context: Context, node: Node, position: int) -> Stored:
    """The input at a position; its scale and zero point are the two inputs behind it."""
    name = node.required_input(position)
    info = context.info(name)
    need(info.dtype in STORED, f'"{name}" is {info.dtype}, wanted {", ".join(STORED)}')
    scale, point = parameters(context, node.required_input(position + 1), node.optional_input(position + 2), info.dtype)
    scale = scale.astype(np.float32)
    need(str(point.dtype) == info.dtype, f'the zero point is {point.dtype} and "{name}" is {info.dtype}')
    if scale.ndim == 0:
        context.quantisation.setdefault(name, quantisation(scale, point, 0))
    return Stored(context.expr(name), info.shape, info.dtype, scale, point)


def result(context: Context, node: Node, real: Expr, position: int, dtype: str) -> Expr:
    """Quantise a result by the scale and zero point at this position; without a zero point to type ``dtype``."""
    scale, point = parameters(context, node.required_input(position), node.optional_input(position + 1), dtype)
    scale = scale.astype(np.float32)
    need(scale.ndim == 0, "a scale for each slice of the output is not supported")
    context.quantisation[node.outputs[0]] = quantisation(scale, point, 0)
    return quantised(context.normal(real), scale, point, 0, str(point.dtype))


@converts("QLinearConv")
@converts(f"{MICROSOFT}.QLinearConv")
def qlinear_conv(context: Context, node: Node) -> Expr:
    """A quantised convolution. The scale of its bias is the product of the scales of data and weights."""
    _need_channels_first(node)
    data, weights = stored(context, node, 0).uniform, stored(context, node, 3)
    inputs = [data.real(), weights.real(0), _bias(context, node.optional_input(8), data.scale * weights.scale)]
    attributes = {name: value for name, value in node.attributes.items() if name != "channels_last"}
    (real,) = context.compute("Conv", inputs[: 2 + (inputs[2] is not None)], **attributes)
    return result(context, node, real, 6, data.dtype)


def _need_channels_first(node: Node) -> None:
    fits = not node.attributes.get("channels_last")
    need(fits, "channels_last is what ONNX Runtime makes of models for itself; give the model that it was made from")


def _bias(context: Context, name: str, scale: Array) -> Expr | None:
    if not name:
        return None
    dtype = context.info(name).dtype
    need(dtype == ACCUMULATED, f'the bias "{name}" is {dtype}, wanted {ACCUMULATED}')
    return dequantised(context.expr(name), scale, np.zeros(scale.shape, np.int32), 0)


@converts("QLinearMatMul")
def qlinear_matmul(context: Context, node: Node) -> Expr:
    left, right = stored(context, node, 0).uniform, stored(context, node, 3)
    (real,) = context.compute("MatMul", [left.real(), right.real(-1)])
    return result(context, node, real, 6, left.dtype)


@converts(f"{MICROSOFT}.QGemm")
def qgemm(context: Context, node: Node) -> Expr:
    """A quantised Gemm. The scale of its bias is the product of all factors; without an output scale it gives float."""
    left, right = stored(context, node, 0).uniform, stored(context, node, 3)
    alpha, transposed = node.attributes.get("alpha", 1.0), node.attributes.get("transB", 0)
    bias = _bias(context, node.optional_input(6), np.float32(alpha) * left.scale * right.scale)
    inputs = [left.real(), right.real(0 if transposed else -1), bias]
    (real,) = context.compute("Gemm", inputs[: 2 + (bias is not None)], **node.attributes)
    return result(context, node, real, 7, left.dtype) if node.optional_input(7) else real


def _elementwise(operator: str) -> Converter:
    def convert(context: Context, node: Node) -> Expr:
        left, right = stored(context, node, 0).uniform, stored(context, node, 3).uniform
        (real,) = context.compute(operator, [left.real(), right.real()])
        return result(context, node, real, 6, left.dtype)

    return convert


for _operator in ("Add", "Mul"):
    converts(f"{MICROSOFT}.QLinear{_operator}")(_elementwise(_operator))


def _of_one(operator: str, *passed: str, **defaults: Any) -> Converter:
    """The converter of an operator of one input. ``passed`` are attributes that it shares with the float operator."""

    def convert(context: Context, node: Node) -> Expr:
        _need_channels_first(node)
        data = stored(context, node, 0).uniform
        given = {name: node.attributes[name] for name in passed if name in node.attributes}
        (real,) = context.compute(operator, [data.real()], **(defaults | given))
        return result(context, node, real, 3, data.dtype)

    return convert


_WINDOW = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
_ONE: dict[str, Converter] = {
    "AveragePool": _of_one("AveragePool", *_WINDOW),
    "GlobalAveragePool": _of_one("GlobalAveragePool"),
    "LeakyRelu": _of_one("LeakyRelu", "alpha", alpha=0.01),
    "Sigmoid": _of_one("Sigmoid"),
}
for _operator, _converter in _ONE.items():
    converts(f"{MICROSOFT}.QLinear{_operator}")(_converter)


@converts(f"{MICROSOFT}.QLinearSoftmax")
def qlinear_softmax(context: Context, node: Node) -> Expr:
    """A quantised softmax. Before opset 13 an axis meant itself and all behind it; an attribute gives the opset."""
    data = stored(context, node, 0).uniform
    old = node.attributes.get("opset", 13) < 13
    axis = need_axis(node.attributes.get("axis", 1 if old else -1), len(data.shape))
    need(not old or axis == len(data.shape) - 1, "softmax over several axes at once (opset before 13) is not supported")
    (real,) = context.compute("Softmax", [data.real()], axis=axis)
    return result(context, node, real, 3, data.dtype)


@converts(f"{MICROSOFT}.QLinearConcat")
def qlinear_concat(context: Context, node: Node) -> Expr:
    """A quantised concatenation, whose first inputs are scale and zero point of the output."""
    need(len(node.inputs) >= 5 and len(node.inputs) % 3 == 2, f"{len(node.inputs)} inputs, wanted 2 and 3 a tensor")
    parts = [stored(context, node, position).uniform for position in range(2, len(node.inputs), 3)]
    axis = need_axis(node.attributes.get("axis", 0), len(parts[0].shape))
    return result(context, node, relax.op.concat([part.real() for part in parts], axis), 0, parts[0].dtype)


@converts(f"{MICROSOFT}.QLinearWhere")
def qlinear_where(context: Context, node: Node) -> Expr:
    condition = context.expr(node.required_input(0))
    left, right = stored(context, node, 1).uniform, stored(context, node, 4).uniform
    (real,) = context.compute("Where", [condition, left.real(), right.real()])
    return result(context, node, real, 7, left.dtype)
