"""The frame of the ONNX converters: one function an operator, registered by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uaccel.errors import InternalError, ModelError, need
from uaccel.frontend.budget import Budget
from uaccel.frontend.checks import at_run_time, need_type
from uaccel.frontend.converters import Converters
from uaccel.frontend.onnx.graph import DTYPES, Graph, Node
from uaccel.frontend.onnx.package import onnx_package
from uaccel.frontend.walk import as_list
from uaccel.model import Array, Quantisation, TensorInfo
from uaccel.ops.base import constant, info_of

Expr = Any
Converter = Callable[["Context", Node], "Expr | Sequence[Expr]"]


@dataclass(frozen=True, eq=False)
class StoredReal:
    """A constant of real numbers that the file stores as integers: real = (stored - zero point) * scale."""

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
    """What every tensor met so far is: known at import (``constants``) or computed at run time (``exprs``).

    ``otherwise`` converts nodes of operators that have no converter of ours. ``subgraph`` gives the module of a graph
    inside of a node, and what is known of its tensors.
    ``stored`` are those of ``exprs`` whose value is known all the same; ``quantisation`` says what integers mean.
    """

    graph: Graph
    block: Any
    budget: Budget
    otherwise: Converter
    subgraph: Callable[[Graph], tuple[Any, Context]]
    constants: dict[str, Array] = field(default_factory=dict)
    exprs: dict[str, Expr] = field(default_factory=dict)
    stored: dict[str, StoredReal] = field(default_factory=dict)
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
        """What another operator gives for these inputs: the converter that a node of it would have."""
        names = []
        for expr in inputs:
            names.append(f"(inner {len(self.exprs)})" if expr is not None else "")
            if expr is not None:
                self.exprs[names[-1]] = self.normal(expr)
        proto = onnx_package().helper.make_node(op, names, ["(result)"], **attributes)
        return expressions(self, Node(-1, op, "", "", tuple(names), ("(result)",), attributes, proto))

    def normal(self, expr: Expr) -> Expr:
        """The expression with its type worked out."""
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
    """The outputs of a node: by a converter of ours, or by what the context has for all others."""
    converter = CONVERTERS.find(node.full_name, node) or context.otherwise
    return as_list(converter(context, node))
