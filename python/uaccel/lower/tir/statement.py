"""Writes statements and reductions of TIR as C."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from uaccel.errors import ModelError
from uaccel.lower.tir.expression import ExpressionPrinter, Names, Scope, Storage, one_line, supported
from uaccel.lower.tir.value import PROMOTED, CValue, cast, name_of, retyped
from uaccel.tvm_api import structural_equal, tirx
from uaccel.tvm_api.tir import Call, TensorLoad, buffer_dtype, dtype_of, walk
from uaccel.util.c_text import FLOATS, INDENT, c_type, fits, limits

# Reductions: elements of a buffer that a loop accumulates into are held in variables meanwhile.
#
# A compiler cannot do this by itself, since it must assume that the inputs overlap the output.


@dataclass(frozen=True)
class Accumulation:
    """Describes a reduction: ``start`` initialises the element, and ``updates`` are the loop's stores to it.

    Each update comes with the number of times that it runs at most.
    """

    start: Any
    updates: tuple[tuple[Any, float], ...]

    @property
    def buffer(self) -> Any:
        return self.start.buffer


def is_start(statement: Any) -> bool:
    """Whether a statement is a store that reads no tensor, and so may change places with others like it."""
    return isinstance(statement, tirx.BufferStore) and not nodes(statement.value, TensorLoad)


def nodes(root: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    walk(root, kind, found.append)
    return found


def accumulations(starts: Sequence[Any], loop: Any, scope: Scope) -> list[Accumulation]:
    """The reductions among ``starts``: the loop updates the element, and touches no other of that buffer."""
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


# TIR statements as C statements.


class StatementPrinter:
    """Writes the lines of one function body. ``addends`` has the bounds of what each store adds to its element."""

    def __init__(self, scope: Scope, names: Names) -> None:
        self.scope = scope
        self.names = names
        self.express = ExpressionPrinter(scope)
        self.lines: list[str] = []
        self.depth = 1
        self.addends: dict[Any, tuple[float, float]] = {}

    def line(self, text: str) -> None:
        self.lines.append(INDENT * self.depth + text)

    @contextmanager
    def braces(self, head: str) -> Iterator[None]:
        """Writes ``head {`` ... ``}``; names that are declared inside and not used are removed."""
        self.line(f"{head} {{" if head else "{")
        start = len(self.lines)
        self.depth += 1
        with self.names.block():
            yield
        self.depth -= 1
        self.lines[start:] = tidied(self.lines[start:])
        self.line("}")

    def __call__(self, statement: Any) -> None:
        self.sequence(flatten(statement))

    def sequence(self, statements: Iterable[Any]) -> None:
        """Statements in order; stores that start a reduction go together with its loop."""
        starts: list[Any] = []
        for statement in statements:
            if is_start(statement):
                starts.append(statement)
                continue
            if isinstance(statement, tirx.For):
                self.reduction(starts, statement)
            else:
                self.each([*starts, statement])
            starts = []
        self.each(starts)

    def each(self, statements: Sequence[Any]) -> None:
        for statement in statements:
            self.single(statement)

    def single(self, statement: Any) -> None:
        method = _PRINTERS.get(type(statement))
        if method is None:
            raise ModelError(
                f"no C for a {type(statement).__name__} statement of the intermediate code: {one_line(statement)}"
            )
        method(self, statement)

    def reduction(self, starts: Sequence[Any], loop: Any) -> None:
        """Writes a loop that keeps in variables what it accumulates into fixed elements."""
        found = accumulations(starts, loop, self.scope)
        self.each([start for start in starts if not any(start is a.start for a in found)])
        outer = [self.scope.storage[a.buffer] for a in found]
        targets = [self.express.element(a.buffer, a.start.indices).text for a in found]
        for accumulation in found:
            self.start(accumulation)
        self.accumulate(found, loop)
        for accumulation, place, target in zip(found, outer, targets, strict=True):
            if not place.scalar:
                self.line(f"{target} = {self.scope.storage[accumulation.buffer].name};")
            self.scope.storage[accumulation.buffer] = place

    def start(self, accumulation: Accumulation) -> None:
        """Declares a variable with the start value, unless the buffer is a variable already."""
        place = self.scope.storage[accumulation.buffer]
        if place.scalar:
            self.single(accumulation.start)
            return
        start = self.express(accumulation.start.value)
        name = self.names.fresh("acc")
        self.line(f"{c_type(place.dtype)} {name} = {self.assigned(start, place.dtype)};")
        self.scope.storage[accumulation.buffer] = Storage(name, place.dtype, scalar=True)

    def accumulate(self, found: Sequence[Accumulation], loop: Any) -> None:
        """Writes the loop, and writes it anew if it turns out that a sum of integers cannot overflow. The first time
        shows the bounds of the addends. With the bounds of the sum, additions need no unsigned casts."""
        mark = len(self.lines)
        self.single(loop)
        bounded = False
        for accumulation in found:
            place = self.scope.storage[accumulation.buffer]
            bounds = self.sum_bounds(accumulation)
            if place.dtype not in FLOATS and fits(*bounds, place.dtype):
                self.scope.storage[accumulation.buffer] = replace(place, low=bounds[0], high=bounds[1])
                bounded = True
        if bounded:
            del self.lines[mark:]
            self.single(loop)

    def sum_bounds(self, accumulation: Accumulation) -> tuple[float, float]:
        """The bounds of the accumulated element at any time; infinite unless all updates are sums. An update runs
        ``count`` times at most, and may run less often: so a positive addend raises only the upper bound, and a
        negative one lowers only the lower bound."""
        start = self.express(accumulation.start.value)
        low, high = start.low, start.high
        for store, count in accumulation.updates:
            least, most = self.addends.get(store, (-math.inf, math.inf))
            low += least * count if least < 0 else 0
            high += most * count if most > 0 else 0
        return low, high

    def assigned(self, value: CValue, dtype: str) -> str:
        """The text on the right of an assignment to ``dtype``."""
        safe = value.dtype == dtype or value.literal or dtype == "bool"
        if not safe and not value.is_float and dtype not in FLOATS:
            safe = fits(*limits(value.dtype), dtype)
        return value.text if safe else cast(value, dtype).text

    def shared(self, value: CValue) -> CValue:
        """The value with names for the calls that occur in it more than once."""
        for call in sorted(self.express.calls.values(), key=lambda call: -len(call.text)):
            pattern = rf"(?<!\w){re.escape(call.text)}"
            if len(re.findall(pattern, value.text)) > 1:
                name = self.names.fresh("common")
                self.line(f"const {c_type(call.dtype)} {name} = {call.text};")
                value = replace(value, text=re.sub(pattern, name, value.text))
        return value

    def store(self, statement: Any) -> None:
        target = self.express.element(statement.buffer, statement.indices)
        self.express.calls.clear()
        value = self.shared(self.express(statement.value))
        term = addend(statement)
        if term is not None:
            bounds = self.express(term)
            self.addends[statement] = bounds.low, bounds.high
        prefix = f"{target.text} + "
        if term is not None and value.dtype == target.dtype and value.text.startswith(prefix):
            self.line(f"{target.text} += {value.text.removeprefix(prefix)};")
        else:
            self.line(f"{target.text} = {self.assigned(value, target.dtype)};")

    def loop(self, statement: Any) -> None:
        if statement.kind == tirx.ForKind.THREAD_BINDING or statement.thread_binding is not None:
            raise ModelError("no C for a loop over device threads: schedule the function for a processor")
        first, count = self.express(statement.min), self.express(statement.extent)
        step = 1 if statement.step is None else int(statement.step)
        last = first.high + max(count.high - 1, 0)
        dtype = "int32" if fits(first.low, last + step, "int32") else dtype_of(statement.loop_var)
        with self.names.block():
            name = self.names.fresh(statement.loop_var.name)
            self.scope.variables[statement.loop_var] = name_of(name, dtype, first.low, last)
            end = f"{first.text} + {count.text}" if not first.literal or first.low != 0 else count.text
            if first.literal and count.literal:
                end = str(int(first.low + count.low))
            advance = f"++{name}" if step == 1 else f"{name} += {step}"
            head = f"for ({c_type(dtype)} {name} = {self.assigned(first, dtype)}; {name} < {end}; {advance})"
            with self.braces(head):
                self(statement.body)

    def branch(self, statement: Any) -> None:
        condition = self.express(statement.condition)
        if condition.literal:
            chosen = statement.then_case if condition.low else statement.else_case
            if chosen is not None:
                self(chosen)
            return
        with self.braces(f"if ({condition.text})"):
            self(statement.then_case)
        if statement.else_case is not None:
            self.lines.pop()
            with self.braces("} else"):
                self(statement.else_case)

    def while_loop(self, statement: Any) -> None:
        with self.braces(f"while ({self.express(statement.condition).text})"):
            self(statement.body)

    def bind(self, statement: Any) -> None:
        """A name for a value; constants and other names need none."""
        value = self.express(statement.value)
        if value.literal or re.fullmatch(r"\w+", value.text):
            self.scope.variables[statement.var] = value
            return
        dtype = "int32" if value.dtype in PROMOTED and value.dtype != "bool" else supported(value.dtype)
        name = self.names.fresh(statement.var.name)
        self.line(f"const {c_type(dtype)} {name} = {value.text};")
        self.scope.variables[statement.var] = retyped(name_of(name, dtype), value.low, value.high)

    def allocation(self, statement: Any) -> None:
        """A small array where it is used, a variable if it has one element; large ones have a place already."""
        buffer = statement.buffer
        if buffer in self.scope.storage:
            return
        dtype = supported(buffer_dtype(buffer))
        name, count = self.names.fresh(buffer.name), int(buffer.ty.shape[0])
        self.scope.storage[buffer] = Storage(name, dtype, scalar=count == 1)
        self.line(f"{c_type(dtype)} {name}{'' if count == 1 else f'[{count}]'};")

    def alias(self, statement: Any) -> None:
        self.scope.storage[statement.buffer] = aliased(statement, self.scope)

    def evaluate(self, statement: Any) -> None:
        if not isinstance(statement.value, tirx.IntImm):
            self.line(f"{self.express(statement.value).text};")


_PRINTERS: dict[type, Callable[[StatementPrinter, Any], None]] = {
    tirx.BufferStore: StatementPrinter.store,
    tirx.For: StatementPrinter.loop,
    tirx.IfThenElse: StatementPrinter.branch,
    tirx.While: StatementPrinter.while_loop,
    tirx.Bind: StatementPrinter.bind,
    tirx.AllocBuffer: StatementPrinter.allocation,
    tirx.DeclBuffer: StatementPrinter.alias,
    tirx.Evaluate: StatementPrinter.evaluate,
    tirx.AttrStmt: lambda printer, statement: printer(statement.body),
    tirx.AssertStmt: lambda printer, statement: None,
    tirx.Break: lambda printer, statement: printer.line("break;"),
    tirx.Continue: lambda printer, statement: printer.line("continue;"),
}


def flatten(statement: Any) -> Iterator[Any]:
    """The statements of nested sequences."""
    if isinstance(statement, tirx.SeqStmt):
        for part in statement.seq:
            yield from flatten(part)
    else:
        yield statement


def data_source(declaration: Any) -> Any:
    """The buffer or the pointer parameter that a declared buffer views."""
    data = declaration.data
    return data.args[0] if isinstance(data, Call) and data.op.name == "tirx.buffer_data" else data


def aliased(declaration: Any, scope: Scope) -> Storage:
    """The storage of a buffer that is declared as a view of another one."""
    buffer = declaration.buffer
    storage = scope.storage.get(data_source(declaration))
    if storage is None or storage.dtype != buffer_dtype(buffer) or not has_offset(buffer, 0):
        raise ModelError(f"no C for buffer {buffer.name}: it views another buffer with an offset or another type")
    return storage


def has_offset(buffer: Any, offset: int) -> bool:
    return isinstance(buffer.ty.elem_offset, tirx.IntImm) and int(buffer.ty.elem_offset) == offset


_DECLARATION = re.compile(r"^( *)(?:const )?\w+ \*?(\w+)(?:\[\d+\])?(?: = .*)?;$")
_BARE_DECLARATION = re.compile(r"^ *\w+ (\w+)(?:\[\d+\])?;$")


def tidied(lines: list[str]) -> list[str]:
    """The lines of a block without declarations of what it does not use, and with values in those it has."""
    return without_unused(with_initialisers(without_unused(lines)))


def without_unused(lines: list[str]) -> list[str]:
    """The lines without declarations of what is not used, or only set; repeated, since a removed line may have been the
    last to use a name."""
    for number, line in enumerate(lines):
        match = _DECLARATION.match(line)
        if match and not re.search(rf"\b{match[2]}\b", "\n".join(lines[number + 1 :])):
            return without_unused(lines[:number] + lines[number + 1 :])
        if match and not match[0].count("["):
            rest = lines[number + 1 :]
            using = [other for other in rest if re.search(rf"\b{match[2]}\b", other)]
            if all(re.match(rf"^ *{match[2]} = [-\w]+;$", other) and other.count(match[2]) == 1 for other in using):
                return without_unused(lines[:number] + [other for other in rest if other not in using])
    return lines


def with_initialisers(lines: list[str]) -> list[str]:
    """``int x; x = 1;`` as ``int x = 1;``, where only declarations and such assignments stand in between."""
    pending: dict[str, int] = {}
    result: list[str | None] = []
    for line in lines:
        bare = _BARE_DECLARATION.match(line)
        assigned = re.match(r"^ *(\w+) = .*;$", line)
        if bare and not line.lstrip().startswith(("break", "continue")):
            pending[bare[1]] = len(result)
        elif assigned and assigned[1] in pending:
            declaration = result[pending[assigned[1]]]
            assert declaration is not None
            result[pending.pop(assigned[1])] = None
            line = declaration.rstrip(";") + line[line.index(" = ") :]
        elif not _DECLARATION.match(line):
            pending.clear()
        result.append(line)
    return [line for line in result if line is not None]
