"""Provides what the converters of all front ends share: registry, walk over a graph, coverage, rounding, recurrence."""

from __future__ import annotations

import abc
import contextlib
import importlib
import math
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from uaccel.errors import InternalError, ModelError, need
from uaccel.frontend.checks import ADVICE, Budget, first_line, unsupported
from uaccel.model import Array, Origin, TensorSpec, c_identifier, unique_names
from uaccel.ops.matmul import BlockAttrs, FullyConnectedBlocks
from uaccel.ops.operator import constant, get, info_of
from uaccel.ops.recurrent import GATES
from uaccel.tvm_api import TYPE_ERRORS, FunctionBlock, ModuleBuilder, main_bindings, relax
from uaccel.tvm_api.converters import TvmConversionError
from uaccel.tvm_api.extremes import plain

# The registry of a format's converters, which make Relax expressions of operators.

C = TypeVar("C", bound=Callable[..., Any])
Condition = Callable[[Any], bool]


def always(_node: Any) -> bool:
    """The condition of converters that take every node of their operator."""
    return True


def otherwise(_node: Any) -> bool:
    """The condition of converters that take what no other one of their operator takes."""
    return True


class Converters(Generic[C]):
    """Registers converters by the operator's full name.

    Every module of the package ``home`` may add to it; all are imported at the first look-up.
    """

    def __init__(self, home: str, when: Condition = always) -> None:
        self._home = home
        self._when = when
        self._table: dict[str, list[tuple[C, Condition]]] = {}
        self._complete = False

    def converts(self, *names: str, when: Condition | None = None) -> Callable[[C], C]:
        """Registers the converter of these operators, for those nodes where ``when`` holds.

        An operator may have several, each for other nodes.
        """
        takes = when or self._when

        def add(function: C) -> C:
            for name in names:
                known = self._table.setdefault(name, [])
                if any(other in (takes, always) or takes is always for _, other in known):
                    raise InternalError(f"{self._home} has two converters of {name}")
                known.append((function, takes))
            return function

        return add

    def find(self, name: str, node: Any) -> C | None:
        known = sorted(self._all().get(name, ()), key=lambda entry: entry[1] is otherwise)
        return next((function for function, takes in known if takes(node)), None)

    @property
    def names(self) -> frozenset[str]:
        """All operators with a converter, even one that takes only some nodes."""
        return frozenset(self._all())

    def _all(self) -> dict[str, list[tuple[C, Condition]]]:
        if not self._complete:
            self._complete = True
            for module in pkgutil.iter_modules(importlib.import_module(self._home).__path__, f"{self._home}."):
                importlib.import_module(module.name)
        return self._table


# The walk over a model's graph. One error lists all nodes that cannot be converted.

N = TypeVar("N")


@dataclass(kw_only=True)
class Walk(abc.ABC, Generic[N]):
    """Converts one model's nodes in order and collects problems.

    A node that cannot be converted gets stand-ins for its results, so that later nodes are checked as well. ``tensors``
    and ``origins`` go by the names of variables. ``warnings`` do not end the import.
    """

    # What converters and type rules raise where a node does not fit.
    refusals: ClassVar[tuple[type[Exception], ...]] = (ModelError, *TYPE_ERRORS)

    path: Path
    budget: Budget | None = None
    tensors: dict[str, TensorSpec] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    block: FunctionBlock = field(init=False)

    @abc.abstractmethod
    def convert(self, node: N) -> None:
        """Makes expressions of a node and binds them."""

    @abc.abstractmethod
    def where(self, node: N) -> str:
        """The node's name in errors."""

    @abc.abstractmethod
    def stand_in(self, node: N) -> None:
        """Gives a failed node results of the declared types."""

    @abc.abstractmethod
    def results(self) -> Sequence[Any]:
        """The values that the module returns."""

    def begin(self) -> None:
        """Runs before the first node, once the block is open."""

    def check(self, module: Any) -> None:
        """Notes problems of the whole module."""

    def module(self, parameters: Sequence[Any], nodes: Iterable[N]) -> Any:
        """Walks all nodes and returns the module; raises one error with all problems."""
        builder = ModuleBuilder()
        with builder.function(list(parameters)) as self.block:
            self.begin()
            for node in nodes:
                self._visit(node)
            results = [] if self.problems else self.results()
            self.block.finish(results[0] if len(results) == 1 else relax.Tuple(list(results)))
        self._attribute_intermediates(builder.module)
        self.check(builder.module)
        if self.problems:
            raise unsupported(self.path, self.problems)
        return builder.module

    def _visit(self, node: N) -> None:
        if self.budget is not None:
            self.budget.time()
        try:
            self.convert(node)
        except self.refusals as error:
            reason = str(error) if isinstance(error, ModelError) else plain(first_line(error))
            self.problems.append(f"{self.where(node)}: {reason}")
            self.stand_in(node)

    def bind(self, expr: Any, name: str, origin: Origin, spec: TensorSpec) -> Any:
        """Binds a node's result to a variable, with its origin and type."""
        var = self.block.emit(expr, name)
        self.tensors[var.name] = spec
        self.origins[var.name] = origin
        return var

    def _attribute_intermediates(self, module: Any) -> None:
        """Gives bindings without an origin that of the next named one: a node's helpers come before its result."""
        origin = None
        for var, _ in reversed(main_bindings(module)[1]):
            origin = self.origins.get(var.name, origin)
            if origin is not None:
                self.origins.setdefault(var.name, origin)


def parameters_of(specs: Sequence[TensorSpec]) -> list[Any]:
    """Makes a variable for each input, with unique names that are C identifiers."""
    names = unique_names(c_identifier(spec.name) for spec in specs)
    return [
        relax.Var(name, relax.TensorType(spec.info.shape, spec.info.dtype))
        for name, spec in zip(names, specs, strict=True)
    ]


def as_list(result: Any) -> list[Any]:
    """The result of a converter, one expression or several, as a list."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


@contextlib.contextmanager
def by_tvm(advice: str = ADVICE) -> Iterator[None]:
    """Turns refusals of TVM's own converter into a ModelError with TVM's words."""
    try:
        yield
    except TvmConversionError as error:
        raise ModelError(f"{error}; {advice}") from error


# Coverage: what becomes of each operator, the rows of docs/reference/coverage.md that scripts/coverage.py writes.


@dataclass(frozen=True)
class Coverage:
    """Says in a few words how an operator is compiled; ``note`` says in Markdown what is refused of it and why."""

    operator: str
    how: str
    note: str = ""


EXACT = "CPU kernel"
FALLBACK = "TIR fallback"
FOLDED = "known at import"
REFUSED = "refused"


def table(rows: list[Coverage]) -> str:
    """The rows as a Markdown table, sorted by operator."""
    lines = ["| operator | how | notes |", "|---|---|---|"]
    for row in sorted(rows, key=lambda row: row.operator.lower()):
        lines.append(f"| `{row.operator}` | {row.how} | {row.note} |")
    return "\n".join(lines)


# Weights that are small integers, with a scale for each block.


@dataclass(frozen=True, eq=False)
class StoredBlocks:
    """Holds a matrix of ``size`` integers of int8 for each scale and zero point along an axis; ``bits`` hold each."""

    stored: Array
    scale: Array
    zero_point: Array
    axis: int
    size: int
    bits: int

    @property
    def value(self) -> Array:
        """The real numbers."""
        extent = self.stored.shape[self.axis]
        scale, point = (np.repeat(part, self.size, self.axis) for part in (self.scale, self.zero_point))
        scale, point = (part.take(range(extent), self.axis) for part in (scale, point))
        return np.asarray((self.stored.astype(np.int64) - point).astype(scale.dtype) * scale)

    def product(self, source: Any, shape: Sequence[int], bias: Any | None) -> Any:
        """Multiplies the rows of a float tensor of this shape by the matrix's rows, whose blocks lie along axis 1."""
        units, depth = self.stored.shape
        terms = constant(np.zeros(units, np.float32)) if bias is None else bias
        arrays = map(constant, (self.stored, self.scale, self.zero_point))
        attrs = BlockAttrs(self.size, 4 if self.bits <= 4 else 8)
        rows = relax.op.reshape(source, (math.prod(shape[:-1]), depth))
        return relax.op.reshape(get(FullyConnectedBlocks)(rows, *arrays, terms, attrs=attrs), (*shape[:-1], units))


# Rounding half to even from floor and comparisons, independent of what a library's rounding function does.

Expr = Any


def half_even(emit: Callable[[Expr], Expr], data: Expr) -> Expr:
    """Rounds half to even; ``emit`` binds an expression to a variable of its own.

    The result is floor(value), plus 1 if the rest exceeds one half, or equals it and floor(value) is odd.
    """
    value = emit(data)

    def number(given: float) -> Expr:
        return constant(np.asarray(given, info_of(value).dtype))

    below = emit(relax.op.floor(value))
    rest = emit(relax.op.subtract(value, below))
    half = emit(relax.op.multiply(below, number(0.5)))
    odd = relax.op.not_equal(relax.op.floor(half), half)
    middle = relax.op.logical_and(relax.op.equal(rest, number(0.5)), odd)
    up = relax.op.logical_or(relax.op.greater(rest, number(0.5)), middle)
    return relax.op.where(up, relax.op.add(below, number(1.0)), below)


# Recurrent layers: weights and biases of ONNX and PyTorch in the order of the operator ``recurrent``.

MOST = 127  # The largest int8 weight, its zero point taken off; the smallest is -128.


@dataclass(frozen=True, eq=False)
class Matrix:
    """Holds a weight matrix with a row for each unit of each gate; integer weights have a scale for each row."""

    values: Array
    scales: Array | None = None

    @property
    def real(self) -> Array:
        return self.values if self.scales is None else self.values.astype(np.float32) * self.scales[:, None]


def of_integers(stored: Array, scale: Array, zero_point: Array) -> Matrix:
    """A matrix of quantised weights, with one scale and zero point or one for each row; float where int8 overflows."""
    scales = np.broadcast_to(scale.reshape(-1), len(stored)).astype(np.float32)
    zeros = np.broadcast_to(zero_point.reshape(-1), len(stored)).astype(np.int64)
    values = stored.astype(np.int64) - zeros[:, None]
    if np.abs(values).max(initial=0) <= MOST + 1 and values.max(initial=0) <= MOST:
        return Matrix(values.astype(np.int8), scales)
    return Matrix(Matrix(values, scales).real.astype(np.float32))


@dataclass(frozen=True)
class Gates:
    """Reorders the gates of a format. ``order[i]`` is the format's position of gate i of ``recurrent``.

    ``reset_after`` is the GRU whose reset gate is applied after the recurrent product and its bias.
    """

    cell: str
    units: int
    order: tuple[int, ...]
    reset_after: bool = False

    def parameters(self, matrices: Sequence[Matrix], biases: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """The operands of ``recurrent``: weights and bias, and scales if all weights are integers."""
        rows = len(self.order) * self.units
        for values in (*(matrix.values for matrix in matrices), *biases):
            fits = len(values) == rows
            need(fits, f"weights or a bias have {len(values)} rows, wanted {rows} for {self.units} units")
        whole = all(matrix.scales is not None for matrix in matrices)
        weights = [self._ordered(matrix.values if whole else matrix.real) for matrix in matrices]
        scales = [self._ordered(matrix.scales).reshape(-1) for matrix in matrices if matrix.scales is not None]
        return [*weights, self._bias(*map(self._ordered, biases))], [np.concatenate(scales)] if whole else []

    def _ordered(self, value: Array) -> Array:
        apart = value.reshape(GATES[self.cell], self.units, *value.shape[1:])
        return np.ascontiguousarray(apart[list(self.order)])

    def _bias(self, given: Array, kept: Array) -> Array:
        """Adds both biases; with ``reset_after`` gate 2 keeps its recurrent bias apart: the reset gate scales it."""
        if not self.reset_after:
            return given + kept
        before = kept.copy()
        before[2] = 0
        return np.concatenate([given + before, kept[2:]])
