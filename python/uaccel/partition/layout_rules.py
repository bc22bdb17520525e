"""Operators that do the same work whatever order the axes come in, and how each is said for another order.

A layout is the order in which a tensor's axes lie: ``np.transpose(value, layout)`` is what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from uaccel.ops.base import REGISTRY, constant, get
from uaccel.ops.broadcast import BinaryOperator
from uaccel.ops.requantize_sums import RequantizeSums
from uaccel.tvm_api import is_constant, is_var, relax

Layout = tuple[int, ...]

ELEMENTWISE = frozenset(
    f"relax.{name}"
    for name in (
        *("abs", "acos", "acosh", "asin", "asinh", "astype", "atan", "atanh", "bitwise_not", "ceil", "clip", "cos"),
        *("cosh", "erf", "exp", "floor", "isfinite", "isinf", "isnan", "log", "logical_not", "negative", "round"),
        *("rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc"),
        *("nn.gelu", "nn.gelu_tanh", "nn.leakyrelu", "nn.relu", "nn.selu", "nn.silu", "nn.softplus"),
        *("add", "atan2", "divide", "floor_divide", "floor_mod", "log_add_exp", "maximum", "minimum", "mod"),
        *("multiply", "power", "subtract", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
        *("equal", "greater", "greater_equal", "less", "less_equal", "not_equal"),
        *("logical_and", "logical_or", "logical_xor", "where"),
    )
)
"""Relax's own: every element of the result depends on one of each argument, which broadcast."""

FIRST_ARGUMENT = frozenset(
    f"uaccel.{name}"
    for name in ("lookup", "requantize", "two_slopes", "quantize", "dequantize", "logistic16", "tanh16")
)
"""Ours with one input: every element of the result depends on one of it. What other arguments there are is tables."""

MOST_AXES = 6  # what operators that broadcast take in any order


def compose(first: Sequence[int], then: Sequence[int]) -> Layout:
    """The layout of a tensor that lies as ``first`` says, once its axes are permuted by ``then``."""
    return tuple(first[axis] for axis in then)


def inverse(layout: Sequence[int]) -> Layout:
    return tuple(layout.index(axis) for axis in range(len(layout)))


def identity(rank: int) -> Layout:
    return tuple(range(rank))


@dataclass(frozen=True)
class Rule:
    """``carried`` are the arguments that have the result's axes; ``rebuilt`` gives the call for them in a layout."""

    carried: Callable[[Any], tuple[int, ...]]
    rebuilt: Callable[[Any, list[Any], Layout], Any]


def rule_of(call: Any) -> Rule | None:
    """How the call is said for another order of axes, None where the order matters to it."""
    name = getattr(call.op, "name", "")
    if name in ELEMENTWISE or isinstance(REGISTRY.get(name), BinaryOperator):
        return Rule(_tensors, _same_call)
    if name in FIRST_ARGUMENT:
        return Rule(_first, _same_call)
    if name == "relax.nn.pad" and call.attrs.pad_mode == "constant":
        return Rule(_first, _pad)
    if name == get(RequantizeSums).full_name:
        return Rule(_first, _requantize_sums)
    return None


def _tensors(call: Any) -> tuple[int, ...]:
    return tuple(i for i, arg in enumerate(call.args) if is_var(arg) or is_constant(arg))


def _first(_call: Any) -> tuple[int, ...]:
    return (0,)


def _same_call(call: Any, args: list[Any], _layout: Layout) -> Any:
    return relax.Call(call.op, args, call.attrs, call.ty_args)


def _pad(call: Any, args: list[Any], layout: Layout) -> Any:
    widths = [int(width) for width in call.attrs.pad_width]
    moved = [width for axis in layout for width in widths[2 * axis : 2 * axis + 2]]
    return relax.op.nn.pad(args[0], moved, call.attrs.pad_mode, float(call.attrs.pad_value))


def _requantize_sums(call: Any, args: list[Any], layout: Layout) -> Any:
    operator = get(RequantizeSums)
    attrs = operator.attrs_of(call)
    return operator(*args, attrs=replace(attrs, axis=layout.index(attrs.axis)))


def constant_in(value: Any, layout: Layout) -> Any:
    """A constant operand for a result in a layout; it may lack leading axes, as broadcasting allows."""
    array = np.asarray(value.value.numpy())
    if array.size == 1:
        return value
    full = array.reshape((1,) * (len(layout) - array.ndim) + array.shape)
    return constant(full.transpose(layout))
