"""Holds a TIR function against the tensors that it is given, before it becomes C: types, extents, every index.

An index that intervals do not prove is computed for all values of its loop variables. If it leaves its buffer, TVM's
lowering is wrong, and the operator is refused; what cannot be computed is guarded (:mod:`uaccel.tvm_api.bounds`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.model import TensorInfo
from uaccel.tvm_api import tirx
from uaccel.tvm_api.bounds import Walk, guarded, is_branch
from uaccel.tvm_api.tir import buffer_dtype, dtype_of, walk

MOST: Final = 1 << 22  # Combinations of loop variables for which an index is computed.


def checked(func: Any, tensors: Sequence[TensorInfo]) -> Any:
    """The function with guards where something is not proven; ModelError where it does not fit its tensors."""
    for parameter, info in zip(func.params, tensors, strict=True):
        kind = parameter.ty
        if not isinstance(kind, tirx.BufferType):
            raise ModelError("it needs parameters that are only known at run time")
        given = TensorInfo(tuple(int(extent) for extent in kind.shape), buffer_dtype(parameter))
        need((given.elements, given.dtype) == (info.elements, info.dtype), f"its code takes {given} for {info}")
    faults: list[str] = []  # TVM passes no error of Python's through a walk
    walk(func.body, tirx.BufferStore, lambda store: faults.extend(_wrong_type(store)))
    made = guarded(func, partial(_is_inside, faults))
    if faults:
        raise ModelError(faults[0])
    return made


def _wrong_type(store: Any) -> list[str]:
    given, wanted = dtype_of(store.value), buffer_dtype(store.buffer)
    return [] if given == wanted else [f"its code stores {given} into a tensor of {wanted}"]


def _is_inside(faults: list[str], buffer: Any, index: Any, extent: int, place: Walk) -> bool:
    """Whether an index lies inside wherever it counts; False where that is unknown, and a fault where it does not."""
    conditions = [condition for condition in place.conditions if _computable(condition, place)]
    if not _computable(index, place):
        return False
    ranges = {variable: place.ranges[variable] for variable in _variables([index, *conditions], place)}
    if math.prod(high + 1 - low for low, high in ranges.values()) > MOST:
        return False
    grids = np.meshgrid(*(np.arange(low, high + 1) for low, high in ranges.values()), indexing="ij", sparse=True)
    known = dict(zip(ranges, grids, strict=True))
    found, *counts = np.broadcast_arrays(*(value(expr, known, place) for expr in (index, *conditions)))
    outside = (found < 0) | (found >= extent)
    for count in counts:
        outside = outside & count.astype(bool)
    if not outside.any():
        return True
    if len(conditions) == len(place.conditions):
        faults.append(f"its code touches element {int(found[outside][0])} of the {extent} of {buffer.name}")
    return False


def _variables(exprs: Sequence[Any], place: Walk) -> list[Any]:
    """The variables that expressions are computed from, those behind names too."""
    found: dict[Any, None] = {}

    def visit(variable: Any) -> None:
        if variable in place.bound:
            walk(place.bound[variable], tirx.Var, visit)
        else:
            found[variable] = None

    for expr in exprs:
        walk(expr, tirx.Var, visit)
    return list(found)


def _computable(expr: Any, place: Walk) -> bool:
    if place.depends(expr):
        return False
    inside = {
        variable: np.asarray(place.ranges[variable][0])
        for variable in _variables([expr], place)
        if variable in place.ranges
    }
    try:
        value(expr, inside, place)
    except KeyError:
        return False
    return True


_BINARY: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    tirx.Add: np.add, tirx.Sub: np.subtract, tirx.Mul: np.multiply, tirx.Min: np.minimum, tirx.Max: np.maximum,
    tirx.FloorDiv: np.floor_divide, tirx.FloorMod: np.mod, tirx.Mod: np.fmod,
    tirx.Div: lambda a, b: np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)),
    tirx.EQ: np.equal, tirx.NE: np.not_equal, tirx.LT: np.less, tirx.LE: np.less_equal, tirx.GT: np.greater,
    tirx.GE: np.greater_equal, tirx.And: np.logical_and, tirx.Or: np.logical_or,
}  # fmt: skip


def value(expr: Any, known: Mapping[Any, Any], place: Walk) -> Any:
    """What an expression is for known variables; KeyError for an expression that indices seldom have."""
    kind = type(expr)
    if kind is tirx.IntImm:
        return np.asarray(int(expr))
    if kind is tirx.Var:
        return known[expr] if expr in known else value(place.bound[expr], known, place)
    if kind is tirx.Cast:
        return value(expr.value, known, place).astype(dtype_of(expr))
    if kind is tirx.Not:
        return np.logical_not(value(expr.a, known, place))
    if kind is tirx.Select:
        return np.where(*(value(part, known, place) for part in (expr.condition, expr.true_value, expr.false_value)))
    if is_branch(expr):
        return np.where(*(value(part, known, place) for part in expr.args))
    if getattr(getattr(expr, "op", None), "name", "") == "prim.likely":
        return value(expr.args[0], known, place)
    return _BINARY[kind](value(expr.a, known, place), value(expr.b, known, place))
