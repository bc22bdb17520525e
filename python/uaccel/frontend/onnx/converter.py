"""Defines what converters of ONNX operators are given and how they are registered; converts exact integer operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uaccel.errors import InternalError, ModelError, need
from uaccel.frontend.checks import Budget, at_run_time, need_type
from uaccel.frontend.converters import Converters, StoredBlocks, as_list, half_even
from uaccel.frontend.onnx.graph import DTYPES, Node, OnnxGraph, onnx_package
from uaccel.model import Array, Quantisation, TensorInfo
from uaccel.ops.operator import constant, info_of
from uaccel.tvm_api import relax

# Context and registration: each operator has a converter, registered by its name.

Expr = Any
Converter = Callable[["Context", Node], "Expr | Sequence[Expr]"]


@dataclass(frozen=True, eq=False)
class StoredReal:
    """Holds a constant of real numbers stored as integers: real = (stored - zero point) * scale."""

    stored: Array
    scale: Array
    zero_point: Array
    axis: int

    @property
    def value(self) -> Array:
        shape = [1] * self.stored.ndim
        if self.scale.ndim and self.scale.size > 1:
            shape[self.axis] = -1
        difference = self.stored.astype(np.int64) - self.zero_point.astype(np.int64).reshape(shape)
        return difference.astype(self.scale.dtype) * self.scale.reshape(shape)


@dataclass
class Context:
    """Holds what each tensor so far is: known at import (``constants``) or computed at run time (``exprs``).

    ``otherwise`` converts nodes of operators that have no converter of ours. ``subgraph`` gives the module of a graph
    inside a node, and what is known of its tensors. ``stored`` has dequantised constants, which are in ``exprs`` but
    whose values are known, ``blocks`` those with a scale for each block; ``quantisation`` says what integers stand for.
    """

    graph: OnnxGraph
    block: Any
    budget: Budget
    otherwise: Converter
    subgraph: Callable[[OnnxGraph], tuple[Any, Context]]
    constants: dict[str, Array] = field(default_factory=dict)
    exprs: dict[str, Expr] = field(default_factory=dict)
    stored: dict[str, StoredReal] = field(default_factory=dict)
    blocks: dict[str, StoredBlocks] = field(default_factory=dict)
    quantisation: dict[str, Quantisation] = field(default_factory=dict)

    def expr(self, name: str) -> Expr:
        if name in self.exprs:
            return self.exprs[name]
        if name in self.constants:
            need_type(str(self.constants[name].dtype), DTYPES, f'"{name}"')
            return constant(self.constants[name])
        raise ModelError(f'tensor "{name}" is used before it is computed')

    def optional(self, name: str) -> Expr | None:
        """None for an input that is left out."""
        return self.expr(name) if name else None

    def info(self, name: str) -> TensorInfo:
        if name in self.constants:
            value = self.constants[name]
            return TensorInfo(value.shape, str(value.dtype))
        return static_info(self.expr(name), name)

    def operand(self, node: Node, place: int = 0) -> tuple[Expr, TensorInfo]:
        """An input that must be there, and its type."""
        name = node.required_input(place)
        return self.expr(name), self.info(name)

    def known(self, name: str) -> Array | None:
        """The tensor's value, None where it is computed or given at run time."""
        if name in self.stored:
            return self.stored[name].value
        return self.constants.get(name)

    def need_known(self, name: str, role: str) -> Array:
        value = self.known(name)
        if value is None:
            raise at_run_time(role, name)
        return value

    def need_number(self, name: str, role: str) -> int | float:
        """The one number that a constant tensor holds."""
        value = self.need_known(name, role)
        need(value.size == 1, f'{role} "{name}" has {value.size} elements, wanted 1')
        number: int | float = value.reshape(())[()].item()
        return number

    def compute(self, op: str, inputs: Sequence[Expr | None], **attributes: Any) -> list[Expr]:
        """The results of another operator on these inputs, by the converter that a node of it would have."""
        names = []
        for expr in inputs:
            names.append(f"(inner {len(self.exprs)})" if expr is not None else "")
            if expr is not None:
                self.exprs[names[-1]] = self.normal(expr)
        proto = onnx_package().helper.make_node(op, names, ["(result)"], **attributes)
        return expressions(self, Node(-1, op, "", "", tuple(names), ("(result)",), attributes, proto))

    def normal(self, expr: Expr) -> Expr:
        """The expression with its type inferred."""
        return self.block.builder.normalize(expr)


def static_info(expr: Expr, name: str) -> TensorInfo:
    """The type of an expression, which must not depend on data."""
    try:
        return info_of(expr)
    except (InternalError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f'the shape of "{name}" depends on data, and firmware needs every shape fixed') from error


CONVERTERS: Converters[Converter] = Converters("uaccel.frontend.onnx")
converts = CONVERTERS.converts


def expressions(context: Context, node: Node) -> list[Expr]:
    """The outputs of a node, by a converter of ours or by ``otherwise`` of the context."""
    converter = CONVERTERS.find(node.full_name, node) or context.otherwise
    return as_list(converter(context, node))


# Operators on integers: exact sums, and quantisation with a scale found at run time.

STORED = ("int8", "uint8")


def _difference(context: Context, name: str, point_name: str, point_shape: tuple[int, ...]) -> Expr:
    """The tensor in 32 bits, less its zero point. A list of zero points gets ``point_shape``, so that it broadcasts."""
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
    """A convolution of differences from zero points. Padding is with the zero point, so it is 0 in the difference."""
    data, weights = node.required_input(0), node.required_input(1)
    rank = len(context.info(weights).shape)
    inputs = [
        _difference(context, data, node.optional_input(2), ()),
        _difference(context, weights, node.optional_input(3), (-1, *(1,) * (rank - 1))),
    ]
    return context.compute("Conv", inputs, **node.attributes)


@converts("MatMulInteger")
def matmul_integer(context: Context, node: Node) -> Expr:
    """A product of differences from zero points, which may differ by row on the left and by column on the right."""
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
    """Quantise to uint8 by the range of the data and 0; where all are 0 the scale is 1, as in ONNX Runtime."""
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
