"""Makes arithmetic of TIR defined for all operands, as the printed C has it, before LLVM compiles a function.

LLVM leaves open what a float beyond the range of an integer becomes, and a division by zero ends the process; TVM lets
NaN be unequal to nothing, and has no comparison of truths. The helpers of :mod:`uaccel.lower.tir.value` say what C
computes instead; this is the same for the host.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from tvm import tirx
from tvm_ffi.structural import structural_mutate

from uaccel.tvm_api.bounds import dtype_of, limits, whole_number

_WIDE: Final = {"uint32": "int64", "int64": "int64", "uint64": "uint64"}  # Others go through int32 and keep low bits.
_DIVISIONS: Final = (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod)
_COMPARISONS: Final = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)


def defined(func: Any) -> Any:
    """The function, or one that converts, divides, shifts and compares so."""
    callbacks = [(tirx.Cast, _conversion), *((kind, _division) for kind in _DIVISIONS)]
    callbacks += [(tirx.LShift, _shift), (tirx.RShift, _shift), *((kind, _comparison) for kind in _COMPARISONS)]
    body = structural_mutate(func.body, callbacks)
    return func if body.same_as(func.body) else func.with_body(body)


def _conversion(node: Any, mutator: Any) -> Any:
    node = mutator.default_mutate(node)
    dtype, source = dtype_of(node), dtype_of(node.value)
    if not source.startswith("float") or not whole_number(node) or dtype == "bool" or _within(node.value, dtype):
        return node
    wide = _WIDE.get(dtype, "int32")
    converted = tirx.call_llvm_pure_intrin(wide, f"llvm.fpto{'u' if wide[0] == 'u' else 's'}i.sat", node.value)
    return converted if wide == dtype else tirx.Cast(dtype, converted)


def _within(value: Any, dtype: str) -> bool:
    """Whether the outermost operations keep a float between constants of the type's range, NaN too."""
    if not isinstance(value, tirx.Max | tirx.Min) or not isinstance(value.a, tirx.Max | tirx.Min):
        return False
    ends = [part.b for part in (value, value.a)]
    if type(value) is type(value.a) or not all(isinstance(end, tirx.FloatImm) for end in ends):
        return False
    low, high = limits(dtype)
    return all(low <= float(end) <= high - (0 if np.dtype(dtype).itemsize < 4 else high // 2) for end in ends)


def _division(node: Any, mutator: Any) -> Any:
    """x / 0 is 0 and the least number / -1 wraps around; the remainders are 0."""
    node = mutator.default_mutate(node)
    kind, dtype = type(node), dtype_of(node)
    if not whole_number(node) or (isinstance(node.b, tirx.IntImm) and int(node.b) not in (0, -1)):
        return node
    a, b, zero = node.a, node.b, tirx.const(0, dtype)
    special, result = tirx.EQ(b, zero), zero
    if dtype.startswith("int"):
        special = tirx.Or(special, tirx.EQ(b, tirx.const(-1, dtype)))
        least = tirx.const(limits(dtype)[0], dtype)
        negative = tirx.Select(tirx.EQ(a, least), least, zero - a)
        result = zero if kind in (tirx.FloorMod, tirx.Mod) else tirx.Select(tirx.EQ(b, zero), zero, negative)
    return tirx.if_then_else(special, result, kind(a, b))  # a branch: a selection would divide in any case


def _shift(node: Any, mutator: Any) -> Any:
    """Distances count modulo the width, which is 32 bits at least."""
    node = mutator.default_mutate(node)
    dtype = dtype_of(node)
    if isinstance(node.b, tirx.IntImm):
        return node
    wide = dtype if dtype.endswith(("32", "64")) else "int32" if dtype.startswith("int") else "uint32"
    value, distance = (part if dtype == wide else tirx.Cast(wide, part) for part in (node.a, node.b))
    made = type(node)(value, tirx.bitwise_and(distance, tirx.const(int(wide[-2:]) - 1, wide)))
    return made if wide == dtype else tirx.Cast(dtype, made)


def _comparison(node: Any, mutator: Any) -> Any:
    """NaN is unequal to everything, where TVM's simplifier makes ``!=`` of a negated ``==``. Truths are bytes."""
    node = mutator.default_mutate(node)
    kind, dtype = type(node), dtype_of(node.a)
    if dtype == "bool":
        return kind(tirx.Cast("uint8", node.a), tirx.Cast("uint8", node.b))
    if kind is tirx.NE and dtype.startswith("float"):
        return tirx.Or(node, tirx.Or(tirx.isnan(node.a), tirx.isnan(node.b)))
    return node
