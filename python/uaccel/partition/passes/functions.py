"""Makes one table of what depends on one tensor of 8 bits, however many layers compute it: ``x * sigmoid(x)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from uaccel import tvm_api
from uaccel.model import Array
from uaccel.ops import lookup
from uaccel.ops.operator import Elementwise, constant, get, info_of, operator_of
from uaccel.tvm_api import Emit, is_constant, is_operator_call, is_var
from uaccel.tvm_api.executor import computed

Calls = Mapping[Any, Any]  # The bindings of ``main``, by variable.
Roots = Mapping[Any, Any]  # The one tensor that a variable is a function of.


@dataclass(frozen=True)
class FoldFunctions:
    """Folds functions of one tensor into tables. Afterwards no layer joins two functions of one tensor of 8 bits."""

    name: str = "fold_functions"

    def __call__(self, module: Any) -> Any:
        calls = dict(tvm_api.main_bindings(module)[1])
        roots = _roots(calls)
        folded = _folded(calls, roots)
        if not folded:
            return module
        tables = _tables(calls, roots, folded)
        made: dict[Any, Any] = {}

        def write(emit: Emit, var: Any, expr: Any) -> Any:
            if var in tables:
                root = made.get(roots[var], roots[var])
                named = lookup.LookupAttrs("_".join(dict.fromkeys(_names(var, calls, roots))))
                expr = get(lookup.Lookup)(root, constant(tables[var]), attrs=named)
            made[var] = emit(expr, var.name)
            return made[var]

        return tvm_api.rewrite_main(module, write)


def _roots(calls: Calls) -> Roots:
    found: dict[Any, Any] = {}
    for var, expr in calls.items():
        root = _root_of(var, expr, found)
        if root is not None:
            found[var] = root
    return found


def _root_of(var: Any, expr: Any, known: Roots) -> Any:
    """The tensor that an integer operator's result is a function of, element by element; None where there is not one,
    or where the tensor is too small to repay a table."""
    operator = operator_of(expr) if is_operator_call(expr) else None
    if operator is None or operator.elementwise is None or hasattr(var.ty, "fields"):
        return None
    given, info = _given(expr), info_of(var)
    constants = [arg for arg in expr.args if is_constant(arg)]
    alike = all(info_of(arg).shape == info.shape and info_of(arg).dtype in lookup.BYTES for arg in given)
    single = operator.elementwise is Elementwise.FIRST or all(prod(arg.value.shape) == 1 for arg in constants)
    complete = bool(given) and len(given) + len(constants) == len(expr.args)
    if not (complete and alike and single and info.dtype in lookup.BYTES and lookup.worth_a_table(info.elements)):
        return None
    roots = list(dict.fromkeys(known.get(arg, arg) for arg in given))
    return roots[0] if len(roots) == 1 else None


def _given(expr: Any) -> list[Any]:
    return [arg for arg in expr.args if is_var(arg)]


def _folded(calls: Calls, roots: Roots) -> list[Any]:
    """The variables to look up: what joins several functions, and a function of such a value or of a table."""
    folded: dict[Any, None] = {}
    for var in roots:
        source, *others = _given(calls[var])
        tabled = source in folded or (source in roots and isinstance(operator_of(calls[source]), lookup.Lookup))
        if others or tabled:
            folded[var] = None
    return list(folded)


def _inside(var: Any, calls: Calls, roots: Roots) -> list[Any]:
    """What a variable is computed by from its root, in the order of execution."""
    needed, todo = {var}, [var]
    while todo:
        more = {arg for arg in _given(calls[todo.pop()]) if arg in roots} - needed
        needed |= more
        todo += more
    return [one for one in roots if one in needed]


def _names(var: Any, calls: Calls, roots: Roots) -> list[str]:
    found = ((operator_of(calls[one]), calls[one]) for one in _inside(var, calls, roots))
    return [
        operator.attrs_of(call).function if isinstance(operator, lookup.Lookup) else operator.name
        for operator, call in found
        if operator is not None
    ]


def _tables(calls: Calls, roots: Roots, folded: list[Any]) -> dict[Any, Array]:
    """Executes the layers themselves on all numbers that a tensor of 8 bits can hold."""
    needed = {one for var in folded for one in _inside(var, calls, roots)}
    values: dict[Any, Any] = {}
    for var in needed:
        dtype = info_of(roots[var]).dtype
        values.setdefault(roots[var], constant(lookup.stored_values(dtype).astype(dtype)))
    made = computed({var: tvm_api.relax_substitute(calls[var], values) for var in roots if var in needed})
    return {var: made[var].reshape(-1) for var in folded}
