"""What the operators of ``main`` do with channels, the last axis of their tensors: mix them, or keep them apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array
from uaccel.ops.base import Channels, Elementwise, IntegerOperator, info_of, operator_of
from uaccel.ops.traits import FLOATS, RESHAPE, elementwise_of, name_of
from uaccel.tvm_api import is_constant, is_operator_call, is_var, main_bindings

Mask: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Weighted:
    """A convolution or fully connected layer of known weights: it alone can make fewer channels than it reads."""

    var: Any
    source: Any
    operator: IntegerOperator[Any]
    attrs: Any
    weights: Array
    bias: Array
    multiplier: Array
    shift: Array

    @property
    def mixes(self) -> bool:
        """Whether every output channel reads every input channel; else each reads its own."""
        return self.operator.channels is Channels.MIXED

    @property
    def bordered(self) -> bool:
        """Whether some windows see zero points around the input."""
        return any(getattr(self.attrs, "padding", ()))

    @cached_property
    def taps(self) -> Integers:
        """The weights as (output channel, tap, input channel); as (tap, channel) where channels do not mix."""
        wide = self.weights.astype(np.int64)
        outputs, inputs = self.weights.shape[0], self.weights.shape[-1]
        return wide.reshape(outputs, -1, inputs) if self.mixes else wide.reshape(-1, inputs)


@dataclass(frozen=True, eq=False)
class Linked:
    """An operator whose output channel c depends on channel c of its sources and on no other."""

    var: Any
    sources: tuple[Any, ...]
    call: Any

    @property
    def is_reshape(self) -> bool:
        return name_of(self.call) == RESHAPE


Step: TypeAlias = Weighted | Linked
Steps: TypeAlias = dict[Any, Step]
"""By variable, in order of execution."""


def steps_of(module: Any) -> Steps:
    """Those bindings of ``main`` that treat channels in a way that is known here."""
    found = ((var, _step_of(var, expr)) for var, expr in main_bindings(module)[1])
    return {var: step for var, step in found if step is not None}


def _step_of(var: Any, expr: Any) -> Step | None:
    """What a binding does with channels; None for what reads them in a way of its own."""
    if not is_operator_call(expr):
        return None
    operator = operator_of(expr)
    if operator is not None and operator.channels is not None and operator.weighted:
        return _weighted(var, expr, operator)
    if name_of(expr) == RESHAPE or (operator is not None and operator.channels is Channels.APART):
        source = expr.args[0]
        return Linked(var, (source,), expr) if is_var(source) and channels_of(source) == channels_of(var) else None
    return _elementwise(var, expr) if operator is not None and operator.elementwise else None


def _weighted(var: Any, call: Any, operator: IntegerOperator[Any]) -> Weighted | None:
    source, *constants = call.args
    if not is_var(source) or not all(is_constant(arg) for arg in constants):
        return None
    step = Weighted(var, source, operator, operator.attrs_of(call), *(arg.value.numpy() for arg in constants))
    plain = getattr(step.attrs, "groups", 1) == 1 if step.mixes else step.weights.shape[-1] == channels_of(source)
    return step if plain else None


def _elementwise(var: Any, call: Any) -> Linked | None:
    """One tensor and tables, or tensors of one shape: a broadcast one has other channels; nothing of floats."""
    sources = tuple(arg for arg in call.args if is_var(arg))
    tables = [arg for arg in call.args[1:] if is_constant(arg)] if elementwise_of(call) is Elementwise.FIRST else []
    complete = bool(sources) and len(sources) + len(tables) == len(call.args)
    result = info_of(var)
    infos = (result, *map(info_of, sources))
    alike = all(info.shape == result.shape and info.dtype not in FLOATS for info in infos)
    return Linked(var, sources, call) if complete and result.shape and alike else None


def channels_of(value: Any) -> int:
    """The extent of the last axis; 1 for a tensor of no dimensions."""
    return info_of(value).shape[-1] if info_of(value).shape else 1


def sources_of(step: Step) -> tuple[Any, ...]:
    return (step.source,) if isinstance(step, Weighted) else step.sources
