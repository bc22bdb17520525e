"""What the converters of single operators are given, and how they are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_type
from uaccel.frontend.converters import Converters
from uaccel.frontend.torch.program import DTYPES, info_of_value
from uaccel.model import Array, Quantisation
from uaccel.ops.base import constant

Expr = Any


@dataclass
class Context:
    """What is known so far. ``values`` holds PyTorch tensors for constants, Relax expressions for all else.

    ``quantised``: what the integers of a node stand for, where the program says so.
    """

    torch: Any
    block: Any = None
    values: dict[Any, Any] = field(default_factory=dict)
    quantised: dict[Any, Quantisation] = field(default_factory=dict)

    def expr(self, node: Any) -> Expr:
        """The node's value as an operand."""
        value = self.values[node]
        return constant(self.array(node)) if self.is_constant(node) else value

    def is_constant(self, node: Any) -> bool:
        return isinstance(self.values.get(node), self.torch.Tensor)

    def array(self, node: Any) -> Array:
        """A constant's value."""
        value = self.values[node]
        need(isinstance(value, self.torch.Tensor), f'operand "{node.name}" must be a constant, and is computed')
        info = info_of_value(value)
        need_type(info.dtype, DTYPES, f'constant "{node.name}"')
        dense = value.detach()
        return np.ascontiguousarray((dense.to_dense() if dense.layout != self.torch.strided else dense).numpy())

    def emit(self, expr: Expr) -> Expr:
        """Bound under a name that nobody sees: the walk names what a node computes."""
        return self.block.emit(expr, "lv")


Converter = Callable[[Context, Any], Expr]
CONVERTERS: Final[Converters[Converter]] = Converters("uaccel.frontend.torch")
"""By ``namespace.operator.overload``."""
converts = CONVERTERS.converts


def arguments(node: Any) -> Mapping[str, Any]:
    """By their names in the operator's schema, with its defaults."""
    declared = node.target._schema.arguments
    given = {entry.name: value for entry, value in zip(declared, node.args, strict=False)}
    defaults = {entry.name: entry.default_value for entry in declared if entry.has_default_value()}
    return defaults | given | dict(node.kwargs)
