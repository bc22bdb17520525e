"""Operators on integers that carry their scales: dequantise the inputs, compute in float, quantise the result.

So they look like QDQ graphs to later stages, which find exact integer arithmetic for both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.onnx.convert import Context, Converter, Expr, converts
from uaccel.frontend.onnx.graph import MICROSOFT, Node
from uaccel.frontend.onnx.quantise import (
    ACCUMULATED,
    STORED,
    dequantised,
    parameters,
    quantisation,
    quantised,
)
from uaccel.model import Array
from uaccel.tvm_api import relax

FloatOperator = Callable[[Context, Node, list[Expr]], Expr]


@dataclass(frozen=True, eq=False)
class Stored:
    """An integer tensor of a node and what its integers mean."""

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
        """Itself, with one scale for all elements."""
        need(self.scale.ndim == 0, "a scale for each slice is possible for weights only")
        return self


def stored(context: Context, node: Node, position: int) -> Stored:
    """The input at a position, with scale and zero point behind it."""
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
    """The real result as the scale and zero point at this position say; without a zero point of type ``dtype``."""
    scale, point = parameters(context, node.required_input(position), node.optional_input(position + 1), dtype)
    scale = scale.astype(np.float32)
    need(scale.ndim == 0, "a scale for each slice of the output is not supported")
    context.quantisation[node.outputs[0]] = quantisation(scale, point, 0)
    return quantised(context.normal(real), scale, point, 0, str(point.dtype))


@converts("QLinearConv")
@converts(f"{MICROSOFT}.QLinearConv")
def qlinear_conv(context: Context, node: Node) -> Expr:
    """The bias is counted in units of the product of both scales."""
    _need_channels_first(node)
    data, weights = stored(context, node, 0).uniform, stored(context, node, 3)
    inputs = [data.real(), weights.real(0), _bias(context, node.optional_input(8), data.scale * weights.scale)]
    attributes = {name: value for name, value in node.attributes.items() if name != "channels_last"}
    (real,) = context.compute("Conv", inputs[: 2 + (inputs[2] is not None)], **attributes)
    return result(context, node, real, 6, data.dtype)


def _need_channels_first(node: Node) -> None:
    need(
        not node.attributes.get("channels_last"),
        "channels_last is what ONNX Runtime makes of models for itself; give the model that it was made from",
    )


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
    """Without a scale of the output the result stays float; the bias counts in units of all factors."""
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
    """An operator of one input; ``passed`` are the attributes that it shares with the float operator."""

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
    """Until opset 13 an axis stood for itself and all behind it; the attribute says which rule holds."""
    data = stored(context, node, 0).uniform
    old = node.attributes.get("opset", 13) < 13
    axis = need_axis(node.attributes.get("axis", 1 if old else -1), len(data.shape))
    need(not old or axis == len(data.shape) - 1, "softmax over several axes at once (opset before 13) is not supported")
    (real,) = context.compute("Softmax", [data.real()], axis=axis)
    return result(context, node, real, 3, data.dtype)


@converts(f"{MICROSOFT}.QLinearConcat")
def qlinear_concat(context: Context, node: Node) -> Expr:
    """The output's scale and zero point come first."""
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
