"""Operators that do the same work whatever order the axes come in, and how each is said for another order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from uaccel.ops.axes import Layout
from uaccel.ops.base import Elementwise, constant, operator_of
from uaccel.ops.traits import elementwise_of, moved_widths, pads_with_number
from uaccel.tvm_api import is_constant, is_var, relax

MOST_AXES = 6  # what operators that broadcast take in any order


@dataclass(frozen=True)
class Rule:
    """``carried`` are the arguments that have the result's axes; ``rebuilt`` gives the call for them in a layout."""

    carried: Callable[[Any], tuple[int, ...]]
    rebuilt: Callable[[Any, list[Any], Layout], Any]


def rule_of(call: Any) -> Rule | None:
    """How the call is said for another order of axes, None where the order matters to it."""
    elementwise, operator = elementwise_of(call), operator_of(call)
    if elementwise is not None:
        return Rule(_tensors if elementwise is Elementwise.EACH else _first, _same_call)
    if pads_with_number(call):
        return Rule(_first, _pad)
    return Rule(_first, _with_axis) if operator is not None and operator.channel_axis else None


def _tensors(call: Any) -> tuple[int, ...]:
    return tuple(i for i, arg in enumerate(call.args) if is_var(arg) or is_constant(arg))


def _first(_call: Any) -> tuple[int, ...]:
    return (0,)


def _same_call(call: Any, args: list[Any], _layout: Layout) -> Any:
    return relax.Call(call.op, args, call.attrs, call.ty_args)


def _pad(call: Any, args: list[Any], layout: Layout) -> Any:
    return relax.op.nn.pad(args[0], moved_widths(call, layout), call.attrs.pad_mode, float(call.attrs.pad_value))


def _with_axis(call: Any, args: list[Any], layout: Layout) -> Any:
    operator = operator_of(call)
    assert operator is not None
    attrs: Any = operator.attrs_of(call)
    axis = layout.index(getattr(attrs, operator.channel_axis))
    return operator(*args, attrs=replace(attrs, **{operator.channel_axis: axis}))


def constant_in(value: Any, layout: Layout) -> Any:
    """A constant operand for a result in a layout; it may lack leading axes, as broadcasting allows."""
    array = np.asarray(value.value.numpy())
    if array.size == 1:
        return value
    full = array.reshape((1,) * (len(layout) - array.ndim) + array.shape)
    return constant(full.transpose(layout))
