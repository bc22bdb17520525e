"""Defines what converters of PyTorch operators are given, how they are registered, and what is refused before them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_elements, need_size, need_type
from uaccel.frontend.converters import Converters, StoredBlocks
from uaccel.frontend.torch.program import DTYPES, EVAL, MEASURING, info_of_value, name_of, namespace_of
from uaccel.model import Array, Quantisation
from uaccel.ops.operator import constant

# Context and registration of the converters of single operators.

Expr = Any


@dataclass
class Context:
    """Holds what is known so far. ``values`` has PyTorch tensors for constants, Relax expressions for all else.

    ``quantised`` says what the integers of a node stand for, where the program does. ``blocks`` has dequantised
    constants with a scale for each block.
    """

    torch: Any
    block: Any = None
    values: dict[Any, Any] = field(default_factory=dict)
    quantised: dict[Any, Quantisation] = field(default_factory=dict)
    blocks: dict[Any, StoredBlocks] = field(default_factory=dict)

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
        """Bind an expression to a variable with a provisional name: the walk renames the one of the node's result."""
        return self.block.emit(expr, "lv")


Converter = Callable[[Context, Any], Expr]
CONVERTERS: Final[Converters[Converter]] = Converters("uaccel.frontend.torch")  # By ``namespace.operator.overload``.
converts = CONVERTERS.converts


def arguments(node: Any) -> Mapping[str, Any]:
    """A node's arguments by their names in the operator's schema, with its defaults."""
    declared = node.target._schema.arguments
    given = {entry.name: value for entry, value in zip(declared, node.args, strict=False)}
    defaults = {entry.name: entry.default_value for entry in declared if entry.has_default_value()}
    return defaults | given | dict(node.kwargs)


# Refusals: operators and arguments for which TVM's converter would silently compute something else.


def check_operator(node: Any, *, ours: bool) -> None:
    """Refuse what is no computation of fixed shape. ``ours``: whether a converter of ours takes the operator."""
    operator = name_of(node.target)
    need(namespace_of(node.target) != "higher_order", "control flow cannot be compiled; export without it")
    need(
        ours or not operator.startswith(MEASURING),
        "it finds scales at run time (dynamic quantisation), other than one for a whole tensor; quantise with a static "
        "scheme",
    )
    random = any(tag.name == "nondeterministic_seeded" for tag in getattr(node.target, "tags", ()))
    need(not random or ours, f"it draws random numbers; {EVAL}")
    values = node.meta.get("val")
    for value in values if isinstance(values, (list, tuple)) else [values]:
        if value is not None:
            _check_value(value, one_of_several=value is not values)


def _check_value(value: Any, *, one_of_several: bool) -> None:
    need(hasattr(value, "shape"), "it makes a number, not a tensor, at run time; firmware needs it fixed")
    check_extents(value, "its result")
    info = info_of_value(value)
    need_type(info.dtype, DTYPES, "its result")
    if not one_of_several:
        need_elements(info, "its result")
    need_size(info, "its result")


def check_extents(value: Any, what: str) -> None:
    """Refuse a tensor whose extents depend on data."""
    extents = ",".join(map(str, value.shape))
    fits = all(isinstance(extent, int) for extent in value.shape)
    need(fits, f"{what} has the shape [{extents}], which depends on data; firmware needs every extent fixed")


def check_arguments(node: Any) -> None:
    """Refuse arguments that TVM's converter ignores."""
    operator, given = name_of(node.target), arguments(node)
    divisor = given.get("divisor_override")
    need(divisor is None, f"divisor_override={divisor} is not supported; scale the result of a plain average pool")
    need("_aa." not in operator, "anti-aliasing is not supported; resize with antialias=False")
    if "upsample" in operator and given.get("scale_factors"):
        before, after = given["input"].meta["val"].shape[2:], node.meta["val"].shape[2:]
        factors = given["scale_factors"]
        even = all(new == old * factor for new, old, factor in zip(after, before, factors, strict=True))
        need(even, f"scale_factor {factors} does not divide {list(after)} evenly; give the size {list(after)} instead")
