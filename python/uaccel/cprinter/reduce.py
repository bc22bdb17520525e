"""Reductions: elements of a buffer that a loop accumulates into, so that a variable can hold them meanwhile.

A compiler cannot do this by itself, since for all it knows the inputs overlap the output.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.cprinter.expression import Scope
from uaccel.tvm_api import structural_equal, tirx
from uaccel.tvm_api.tir import TensorLoad, walk


@dataclass(frozen=True)
class Accumulation:
    """``start`` initialises the element; ``updates`` are the stores to it in the loop, with how often each runs."""

    start: Any
    updates: tuple[tuple[Any, float], ...]

    @property
    def buffer(self) -> Any:
        return self.start.buffer


def is_start(statement: Any) -> bool:
    """A store that reads nothing: it commutes with its like."""
    return isinstance(statement, tirx.BufferStore) and not nodes(statement.value, TensorLoad)


def nodes(root: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    walk(root, kind, found.append)
    return found


def accumulations(starts: Sequence[Any], loop: Any, scope: Scope) -> list[Accumulation]:
    """Those of ``starts`` whose element the loop updates, touching no other element of that buffer."""
    if nodes(loop, tirx.DeclBuffer):
        return []
    accesses = [(load.source, load.indices) for load in nodes(loop, TensorLoad)]
    accesses += [(store.buffer, store.indices) for store in nodes(loop, tirx.BufferStore)]
    updates = list(executions(loop))
    found = []
    for start in starts:
        place = scope.storage[start.buffer]
        touched = [access for access in accesses if scope.storage.get(access[0]) is place]
        alone = sum(scope.storage[other.buffer] is place for other in starts) == 1
        own = tuple((store, count) for store, count in updates if scope.storage.get(store.buffer) is place)
        same = all(b.same_as(start.buffer) and structural_equal(i, start.indices) for b, i in touched)
        if own and same and alone:
            found.append(Accumulation(start, own))
    return found


def executions(statement: Any, count: float = 1) -> Iterator[tuple[Any, float]]:
    """Every store in ``statement`` with the number of times it runs at most."""
    if isinstance(statement, tirx.BufferStore):
        yield statement, count
    elif isinstance(statement, tirx.For):
        known = isinstance(statement.extent, tirx.IntImm)
        yield from executions(statement.body, count * int(statement.extent) if known else math.inf)
    elif isinstance(statement, tirx.SeqStmt):
        for part in statement.seq:
            yield from executions(part, count)
    elif isinstance(statement, tirx.IfThenElse):
        yield from executions(statement.then_case, count)
        if statement.else_case is not None:
            yield from executions(statement.else_case, count)
    elif isinstance(statement, (tirx.AttrStmt, tirx.While)):
        yield from executions(statement.body, count if isinstance(statement, tirx.AttrStmt) else math.inf)


def addend(store: Any) -> Any | None:
    """``e`` where the store is ``element = element + e``."""
    value = store.value
    if not isinstance(value, tirx.Add) or not isinstance(value.a, TensorLoad):
        return None
    same = value.a.source.same_as(store.buffer) and structural_equal(value.a.indices, store.indices)
    return value.b if same else None
