"""A float model with its quantisation steps, as the front ends give it, to be asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from uaccel.islands.held import HELD, Grid, grid_of
from uaccel.islands.known import KnownIntegers, along_axis
from uaccel.model import Array, Origin, Shape
from uaccel.ops.base import info_of
from uaccel.ops.traits import DEQUANTIZE, PERMUTE, QUANTIZE, RESHAPING, name_of, permuted_axes
from uaccel.tvm_api import bindings_of, is_call, is_constant, is_var, plain_attributes


@dataclass
class Graph:
    """``definitions`` has every variable that is bound, in order; ``sources`` is what ``table.py`` found."""

    parameters: list[Any]
    definitions: dict[Any, Any]
    result: Any
    origins: Mapping[str, Origin]
    sources: dict[Any, Any] = field(default_factory=dict)
    _known: dict[Any, KnownIntegers | Array | None] = field(default_factory=dict)

    def call(self, expr: Any, *names: str) -> Any | None:
        """The call that a variable is bound to, if it is one of these operators."""
        bound = self.definitions.get(expr) if is_var(expr) else None
        return bound if bound is not None and is_call(bound) and name_of(bound) in names else None

    def name(self, expr: Any) -> str:
        """The operator that gives a variable's value; empty for anything else."""
        bound = self.definitions.get(expr) if is_var(expr) else None
        return name_of(bound) if bound is not None and is_call(bound) else ""

    def grid(self, call: Any) -> Grid | None:
        """What a call of quantize or dequantize states; None for scales along an axis, or types that are not held."""
        scale, zero = (self.value(arg) for arg in call.args[1:3])
        declared = info_of(call if name_of(call) == QUANTIZE else call.args[0]).dtype
        if scale is None or zero is None or scale.size != 1 or zero.size != 1 or declared not in HELD:
            return None
        return grid_of(float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0]), declared)

    def value(self, expr: Any) -> Array | None:
        """The value of what depends on constants alone, as far as it can be told."""
        known = self._find(expr)
        return known.values if isinstance(known, KnownIntegers) else known

    def integers(self, expr: Any) -> KnownIntegers | None:
        """The integers of a quantised constant, whatever axes were changed since."""
        known = self._find(expr)
        return known if isinstance(known, KnownIntegers) else None

    def _find(self, expr: Any) -> KnownIntegers | Array | None:
        if is_constant(expr):
            return np.asarray(expr.value.numpy())
        if not is_var(expr):
            return None
        if expr not in self._known:
            bound = self.definitions.get(expr)
            self._known[expr] = self._computed(bound) if bound is not None and is_call(bound) else None
        return self._known[expr]

    def _computed(self, call: Any) -> KnownIntegers | Array | None:
        name = name_of(call)
        if name == DEQUANTIZE:
            return self._dequantised(call)
        if name == QUANTIZE:
            return self._quantised(call)
        if name not in (PERMUTE, *RESHAPING) or not call.args:
            return None
        known = self._find(call.args[0])
        if known is None:
            return None
        if isinstance(known, KnownIntegers):
            return _moved_integers(name, call, known)
        return _moved(name, call, known)

    def _dequantised(self, call: Any) -> KnownIntegers | None:
        data, scale, zero = (self.value(arg) for arg in call.args)
        if data is None or scale is None or zero is None:
            return None
        axis = int(call.attrs.axis)
        parts = (along_axis(part, axis, data.ndim) for part in (scale.astype(np.float32), zero.astype(np.int64)))
        return KnownIntegers(data, *parts)

    def _quantised(self, call: Any) -> Array | None:
        data, scale, zero = (self.value(arg) for arg in call.args)
        if data is None or scale is None or zero is None:
            return None
        axis, dtype = int(call.attrs.axis), info_of(call).dtype
        steps = data.astype(np.float32) / along_axis(scale.astype(np.float32), axis, data.ndim)
        limits = np.iinfo(dtype)
        shifted = np.rint(steps) + along_axis(zero.astype(np.int64), axis, data.ndim)
        return np.asarray(np.clip(shifted, limits.min, limits.max).astype(dtype))


def _moved(name: str, call: Any, value: Array) -> Array:
    if name == PERMUTE:
        return value.transpose(permuted_axes(call))
    return value.reshape(shape_of(call))


def _moved_integers(name: str, call: Any, known: KnownIntegers) -> KnownIntegers:
    if name == PERMUTE:
        axes = permuted_axes(call)
        return known.each(lambda part: part.transpose(axes))
    return known.reshaped(shape_of(call))


def read(module: Any, origins: Mapping[str, Origin]) -> Graph:
    parameters, bindings, result = bindings_of(module["main"])
    return Graph(parameters, dict(bindings), result, origins)


def shape_of(expr: Any) -> Shape:
    return info_of(expr).shape


def attributes(call: Any) -> SimpleNamespace:
    return plain_attributes(call)
