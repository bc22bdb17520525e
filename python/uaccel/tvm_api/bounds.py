"""Keeps every access of a TIR function inside its buffer, whatever the data.

An index that depends on data and is not proven to lie inside takes the nearest place. That is the rule for reads and
writes alike. Both the C that is printed and what the host executes go through :func:`guarded`, so that they agree on
wrong indices, too. Analysis finds these indices, not a list of operators: a new one needs nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from tvm import s_tir, sym, tirx
from tvm.ir import Call, Range, TensorLoad, TensorRegion
from tvm_ffi.structural import structural_mutate, structural_walk

INDEX: Final = "int64"  # Indices that depend on data are computed in it.
FURTHEST: Final = 1 << 31  # Places count at most as far: products with extents and strides then fit into 64 bits.
_ANY: Final = (1 << 63) - 1  # What TVM gives as the end of an interval of which it knows nothing.
_SUMS: Final = (tirx.Add, tirx.Sub, tirx.Mul)
_ARITHMETIC: Final = (*_SUMS, tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod, tirx.Min, tirx.Max)

# Decides about an index without data that bounds do not prove: buffer, index, extent, where. True where it is safe.
Told = Callable[[Any, Any, int, "Walk"], bool]


def guarded(func: Any, static: Told = lambda *_: True) -> Any:
    """The function, or one with guards where data could lead outside of a buffer; ``static`` decides about other
    indices."""
    body = Walk(static).mutated(func.body)
    return func if body.same_as(func.body) else func.with_body(body)


def limits(dtype: str) -> tuple[int, int]:
    if dtype == "bool":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def dtype_of(expr: Any) -> str:
    return str(expr.ty.dtype)


def is_branch(node: Any) -> bool:
    return isinstance(node, Call) and getattr(node.op, "name", "") == "prim.if_then_else"


class Walk:
    """Goes through statements. It knows the ranges of loop variables and the conditions that hold at each place."""

    def __init__(self, static: Told) -> None:
        self.analyzer = sym.Analyzer()
        self.static = static
        self.dependent: set[Any] = set()  # Variables whose values depend on data.
        self.bound: dict[Any, Any] = {}  # Variables that stand for expressions without data.
        self.ranges: dict[Any, tuple[int, int]] = {}  # Loop variables, first and last.
        self.conditions: list[Any] = []
        self.callbacks = [
            (tirx.For, self.loop),
            (s_tir.SBlock, self.block),
            (TensorRegion, self.region),
            (tirx.IfThenElse, self.branch),
            (tirx.Bind, self.bind),
            (tirx.Let, self.bind),
            (tirx.Select, self.select),
            (Call, self.call),
            (TensorLoad, self.load),
            (tirx.BufferStore, self.store),
        ]

    def mutated(self, body: Any) -> Any:
        return structural_mutate(body, self.callbacks)

    def depends(self, expr: Any) -> bool:
        found: list[Any] = []
        seen = [(TensorLoad, found.append), (tirx.Var, lambda v: found.append(v) if v in self.dependent else None)]
        structural_walk(expr, seen)
        return bool(found)

    def interval(self, expr: Any) -> tuple[int, int]:
        bound = self.analyzer.const_int_bound(expr)
        return bound.min_value, bound.max_value

    # Variables.

    def ranged(self, variable: Any, low: int, high: int, dependent: bool) -> None:
        dtype = dtype_of(variable)
        least, most = limits(dtype)
        if dependent:
            self.dependent.add(variable)
        if max(least, 1 - _ANY) <= low <= high < min(most, _ANY):
            self.ranges[variable] = low, high
            self.analyzer.bind(variable, Range(tirx.const(low, dtype), tirx.const(high + 1, dtype)), True)

    def loop(self, node: Any, mutator: Any) -> Any:
        first, last = self.interval(node.min), self.interval(node.min + node.extent - 1)
        dependent = self.depends(node.min) or self.depends(node.extent)
        self.ranged(node.loop_var, first[0], last[1], dependent)
        if isinstance(node.min, tirx.IntImm) and isinstance(node.extent, tirx.IntImm):
            return mutator.default_mutate(node)
        self.conditions.append(tirx.And(node.loop_var >= node.min, node.loop_var < node.min + node.extent))
        result = mutator.default_mutate(node)
        self.conditions.pop()
        return result

    def block(self, node: Any, mutator: Any) -> Any:
        for variable in node.iter_vars:
            domain = variable.dom
            first, last = self.interval(domain.min), self.interval(domain.min + domain.extent - 1)
            self.ranged(variable.var, first[0], last[1], self.depends(domain.extent))
        return mutator.default_mutate(node)

    def region(self, node: Any, mutator: Any) -> Any:
        """What a block is said to touch: all along an axis where data says where."""
        ranges = [
            Range(tirx.const(0, INDEX), extent) if self.depends(part.min) else part
            for part, extent in zip(node.region, node.source.ty.shape, strict=True)
        ]
        same = all(new.same_as(old) for new, old in zip(ranges, node.region, strict=True))
        return node if same else tirx.BufferRegion(node.source, ranges)

    def bind(self, node: Any, mutator: Any) -> Any:
        """A name for a value. One of data is known by its bounds alone: what is loaded may change."""
        if dtype_of(node.var).startswith(("int", "uint")):
            if self.depends(node.value):
                bounds = self.interval(node.value) if self.exact(node.value) else limits(dtype_of(node.var))
                self.ranged(node.var, *bounds, dependent=True)
            else:
                self.bound[node.var] = node.value
                self.analyzer.bind(node.var, node.value, True)
        return mutator.default_mutate(node)

    # Conditions.

    def under(self, condition: Any, node: Any, mutator: Any) -> Any:
        """A node that counts only where a condition holds."""
        self.conditions.append(condition)
        with self.analyzer.constraint_scope(condition):
            result = mutator.mutate(node)
        self.conditions.pop()
        return result

    def branch(self, node: Any, mutator: Any) -> Any:
        """A condition on data that the branches may change is not relied on."""
        parts = [part for part in (node.then_case, node.else_case) if part is not None]
        if self.depends(node.condition) and any(self.writes_what_it_reads(node.condition, part) for part in parts):
            return mutator.default_mutate(node)
        return self.chosen(node, ("condition", "then_case", "else_case"), mutator)

    def writes_what_it_reads(self, condition: Any, part: Any) -> bool:
        read, written = [], []
        structural_walk(condition, (TensorLoad, lambda load: read.append(load.source)))
        structural_walk(part, (tirx.BufferStore, lambda store: written.append(store.buffer)))
        return any(one.same_as(other) for one in read for other in written)

    def select(self, node: Any, mutator: Any) -> Any:
        """C evaluates one side alone, and so does the host, for which TVM makes branches of unsafe selections."""
        return self.chosen(node, ("condition", "true_value", "false_value"), mutator)

    def chosen(self, node: Any, names: Sequence[str], mutator: Any) -> Any:
        parts = [getattr(node, name) for name in names]
        return self.rebuilt(node, parts, self.sides(parts, mutator), lambda new: type(node)(*new))

    def call(self, node: Any, mutator: Any) -> Any:
        if not is_branch(node):
            return mutator.default_mutate(node)
        parts = list(node.args)
        return self.rebuilt(node, parts, self.sides(parts, mutator), lambda new: tirx.if_then_else(*new))

    def sides(self, parts: Sequence[Any], mutator: Any) -> list[Any]:
        condition, chosen, otherwise = parts
        new = [mutator.mutate(condition), self.under(condition, chosen, mutator)]
        return [*new, None if otherwise is None else self.under(tirx.Not(condition), otherwise, mutator)]

    @staticmethod
    def rebuilt(node: Any, old: Sequence[Any], new: Sequence[Any], make: Callable[[Sequence[Any]], Any]) -> Any:
        same = all(one is other or one.same_as(other) for one, other in zip(new, old, strict=True))
        return node if same else make(new)

    # Accesses.

    def load(self, node: Any, mutator: Any) -> Any:
        indices = self.indices(node.source, node.indices, mutator)
        return self.rebuilt(node, node.indices, indices, lambda new: tirx.BufferLoad(node.source, new))

    def store(self, node: Any, mutator: Any) -> Any:
        indices, value = self.indices(node.buffer, node.indices, mutator), mutator.mutate(node.value)
        old, new = [node.value, *node.indices], [value, *indices]
        return self.rebuilt(node, old, new, lambda _: tirx.BufferStore(node.buffer, value, indices))

    def indices(self, buffer: Any, indices: Any, mutator: Any) -> list[Any]:
        return [
            self.index(buffer, mutator.mutate(index), extent)
            for index, extent in zip(indices, buffer.ty.shape, strict=True)
        ]

    def index(self, buffer: Any, index: Any, size: Any) -> Any:
        """The index, or the nearest place. Where TVM leaves an extent open, the function is never compiled."""
        extent = int(size) if isinstance(size, tirx.IntImm) else 0
        if not extent or (isinstance(index, tirx.IntImm) and 0 <= int(index) < extent):
            return index
        if not self.depends(index):
            safe = self.inside(index, extent) or self.static(buffer, index, extent, self)
            return index if safe else self.nearest(index, extent)
        exact = index if self.exact(index) else self.widened(index)
        return index if exact is index and self.inside(index, extent) else self.nearest(exact, extent)

    def inside(self, index: Any, extent: int) -> bool:
        low, high = self.interval(index)
        if low >= 0 and high < extent:
            return True
        return bool(self.analyzer.can_prove(tirx.And(index >= 0, index < extent)))

    def nearest(self, index: Any, extent: int) -> Any:
        dtype = dtype_of(index)
        low, high = self.interval(index)
        if high >= extent:
            index = tirx.Min(index, tirx.const(extent - 1, dtype))
        return tirx.Max(index, tirx.const(0, dtype)) if low < 0 else index

    # Arithmetic that cannot overflow. Neither C nor LLVM says what an overflow of signed numbers gives.

    def exact(self, expr: Any) -> bool:
        """Whether all of an index's arithmetic fits into the types that it has, and no conversion changes a value."""
        if isinstance(expr, (tirx.Select, Call)):
            return self.exact_sides(expr)
        if isinstance(expr, tirx.Cast) and whole_number(expr.value):
            least, most = limits(dtype_of(expr))
            low, high = self.clipped(expr.value)
            return least <= low and high <= most and self.exact(expr.value)
        if not isinstance(expr, _ARITHMETIC):
            return True
        if not (self.exact(expr.a) and self.exact(expr.b)):
            return False
        if not isinstance(expr, _SUMS):
            return True
        least, most = limits(dtype_of(expr))
        return all(least <= end <= most for end in ends(expr, self.clipped(expr.a), self.clipped(expr.b)))

    def exact_sides(self, expr: Any) -> bool:
        if isinstance(expr, Call) and not is_branch(expr):
            return True
        condition, chosen, otherwise = expr.args if is_branch(expr) else _sides_of(expr)
        with self.analyzer.constraint_scope(condition):
            first = self.exact(chosen)
        with self.analyzer.constraint_scope(tirx.Not(condition)):
            return first and self.exact(otherwise)

    def clipped(self, expr: Any) -> tuple[int, int]:
        """The interval, within the limits of the type: TVM's ends at 63 bits mean any number."""
        (low, high), (least, most) = self.interval(expr), limits(dtype_of(expr))
        return max(low, least) if low > -_ANY else least, min(high, most) if high < _ANY else most

    def widened(self, expr: Any) -> Any:
        """The same index in 64 bits. A number that is loaded counts as :data:`FURTHEST` at most, which is as wrong."""
        if isinstance(expr, tirx.IntImm):
            return tirx.const(int(expr), INDEX)
        if isinstance(expr, _ARITHMETIC):
            return type(expr)(self.widened(expr.a), self.widened(expr.b))
        if isinstance(expr, tirx.Select):
            return tirx.Select(expr.condition, self.widened(expr.true_value), self.widened(expr.false_value))
        if is_branch(expr):
            condition, chosen, otherwise = expr.args
            return tirx.if_then_else(condition, self.widened(chosen), self.widened(otherwise))
        if isinstance(expr, tirx.Cast) and dtype_of(expr) in ("int32", "int64") and whole_number(expr.value):
            return self.widened(expr.value)
        return self.bounded(expr)

    def bounded(self, expr: Any) -> Any:
        dtype, (low, high) = dtype_of(expr), self.interval(expr)
        if high > FURTHEST:
            expr = tirx.Min(expr, tirx.const(FURTHEST, dtype))
        if low < -FURTHEST and dtype.startswith("int"):
            expr = tirx.Max(expr, tirx.const(-FURTHEST, dtype))
        return expr if dtype == INDEX else tirx.Cast(INDEX, expr)


def _sides_of(select: Any) -> tuple[Any, Any, Any]:
    return select.condition, select.true_value, select.false_value


def ends(expr: Any, one: tuple[int, int], other: tuple[int, int]) -> tuple[int, ...]:
    """The least and the greatest results of a sum, a difference or a product."""
    if isinstance(expr, tirx.Add):
        return one[0] + other[0], one[1] + other[1]
    if isinstance(expr, tirx.Sub):
        return one[0] - other[1], one[1] - other[0]
    return tuple(a * b for a in one for b in other)


def whole_number(expr: Any) -> bool:
    return dtype_of(expr).startswith(("int", "uint", "bool"))
