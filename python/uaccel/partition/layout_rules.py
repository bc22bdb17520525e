"""Operators that do the same work whatever order the axes come in, and how each is said for another order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from uaccel.ops.axes import Layout
from uaccel.ops.base import Elementwise, constant, operator_of
from uaccel.ops.traits import PAD, elementwise_of, moved_widths, name_of
from uaccel.tvm_api import is_constant, is_tuple, is_var, relax

SLICE: Final = "relax.strided_slice"
MOST_AXES = 6  # what operators that broadcast take in any order


@dataclass(frozen=True)
class Rule:
    """``carried`` are the arguments that have the result's axes, or are tuples of such; ``rebuilt`` gives the call for
    them in a layout."""

    carried: Callable[[Any], tuple[int, ...]]
    rebuilt: Callable[[Any, list[Any], Layout], Any]


def rule_of(call: Any) -> Rule | None:
    """How the call is said for another order of axes, None where the order matters to it."""
    elementwise, operator = elementwise_of(call), operator_of(call)
    if elementwise is not None:
        return Rule(_tensors if elementwise is Elementwise.EACH else _first, _same_call)
    if name_of(call) == PAD:
        return Rule(_first, _pad)
    if operator is not None:
        return Rule(_first, _with_axis) if operator.channel_axis else None
    rebuilt = _ALONG_AXES.get(name_of(call))
    return Rule(_first, rebuilt) if rebuilt is not None and _keeps_axes(call) else None


def _keeps_axes(call: Any) -> bool:
    """Whether a sum or the like leaves its axes, with one element each, and the places of a slice are known."""
    known = name_of(call) != SLICE or all(map(is_tuple, call.args[1:]))
    return known and bool(getattr(call.attrs, "keepdims", True))


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


def _concat(call: Any, args: list[Any], layout: Layout) -> Any:
    return relax.op.concat(args[0], _moved(call.attrs.axis or 0, layout))


def _slice(call: Any, args: list[Any], layout: Layout) -> Any:
    axes = [_moved(axis, layout) for axis in args[1].fields]
    return relax.op.strided_slice(args[0], axes, *args[2:], assume_inbound=bool(call.attrs.assume_inbound))


def _softmax(call: Any, args: list[Any], layout: Layout) -> Any:
    return relax.op.nn.softmax(args[0], _moved(call.attrs.axis, layout))


def _prelu(call: Any, args: list[Any], layout: Layout) -> Any:
    return relax.op.nn.prelu(*args, axis=_moved(call.attrs.axis, layout))


def _reduced(call: Any, args: list[Any], layout: Layout) -> Any:
    """Over the same axes, in the order in which the model names them."""
    given = call.attrs.axis
    axes = range(len(layout)) if given is None else given
    make = getattr(relax.op, name_of(call).removeprefix("relax."))
    return make(args[0], [_moved(axis, layout) for axis in axes], keepdims=True)


def _group_norm(call: Any, args: list[Any], layout: Layout) -> Any:
    attrs = call.attrs
    axes = [_moved(axis, layout) for axis in attrs.axes]
    axis = _moved(attrs.channel_axis, layout)
    return relax.op.nn.group_norm(*args, int(attrs.num_groups), axis, axes, float(attrs.epsilon))


def _moved(axis: Any, layout: Layout) -> int:
    return layout.index(int(axis) % len(layout))


_ALONG_AXES: Final[Mapping[str, Callable[[Any, list[Any], Layout], Any]]] = {
    "relax.concat": _concat,
    SLICE: _slice,
    "relax.nn.softmax": _softmax,
    "relax.nn.prelu": _prelu,
    "relax.nn.group_norm": _group_norm,
    **dict.fromkeys((f"relax.{name}" for name in ("max", "mean", "min", "sum")), _reduced),
}
"""Operators of Relax that name axes."""


def constant_in(value: Any, layout: Layout) -> Any:
    """A constant operand for a result in a layout; it may lack leading axes, as broadcasting allows."""
    array = np.asarray(value.value.numpy())
    if array.size == 1:
        return value
    full = array.reshape((1,) * (len(layout) - array.ndim) + array.shape)
    return constant(full.transpose(layout))
