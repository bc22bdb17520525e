"""TIR statements as C statements."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from uaccel.errors import ModelError
from uaccel.lower.tir_c_expr import ExpressionPrinter, Scope, Storage, one_line, supported
from uaccel.lower.tir_c_names import Names
from uaccel.lower.tir_c_reduce import Accumulation, accumulations, increment
from uaccel.lower.tir_c_value import PROMOTED, Value, c_type, cast, fits, limits, name_of, retyped
from uaccel.tvm_api import buffer_dtype, dtype_of, tirx

INDENT = "    "
WIDTH = 110


class StatementPrinter:
    """Collects the lines of one function body."""

    def __init__(self, scope: Scope, names: Names) -> None:
        self.scope = scope
        self.names = names
        self.express = ExpressionPrinter(scope)
        self.lines: list[str] = []
        self.depth = 1

    def line(self, text: str) -> None:
        indent = INDENT * self.depth
        self.lines.extend(
            textwrap.wrap(
                text, WIDTH, initial_indent=indent, subsequent_indent=indent + 2 * INDENT,
                break_long_words=False, break_on_hyphens=False,
            )
        )  # fmt: skip

    @contextmanager
    def braces(self, head: str) -> Iterator[None]:
        """``head {`` ... ``}``; what is declared inside and not used goes."""
        self.line(f"{head} {{" if head else "{")
        start = len(self.lines)
        self.depth += 1
        with self.names.block():
            yield
        self.depth -= 1
        self.lines[start:] = without_unused(self.lines[start:])
        self.line("}")

    def __call__(self, statement: Any) -> None:
        self.sequence(flatten(statement))

    def sequence(self, statements: Sequence[Any]) -> None:
        """Statements in order; stores that start a reduction go together with its loop."""
        position = 0
        while position < len(statements):
            stores = 0
            while isinstance(statements[min(position + stores, len(statements) - 1)], tirx.BufferStore):
                stores += 1
                if position + stores >= len(statements):
                    break
            end = position + stores
            if stores and end < len(statements) and isinstance(statements[end], tirx.For):
                self.reduction(statements[position:end], statements[end])
                position = end + 1
            else:
                self.single(statements[position])
                position += 1

    def single(self, statement: Any) -> None:
        method = _PRINTERS.get(type(statement))
        if method is None:
            raise ModelError(f"no C for a {type(statement).__name__} statement of the intermediate code: {one_line(statement)}")
        method(self, statement)

    def reduction(self, stores: Sequence[Any], loop: Any) -> None:
        """Keep in variables what the loop accumulates into fixed elements."""
        found = accumulations(stores, loop, self.scope)
        for store in stores:
            if not any(store is a.start for a in found):
                self.single(store)
        if not found:
            self.single(loop)
            return
        saved = {a.buffer: self.scope.storage[a.buffer] for a in found}
        targets = [self.express.element(a.buffer, a.start.indices).text for a in found]
        for a in found:
            self.declare_accumulator(a)
        self.accumulate(found, loop)
        for a, target in zip(found, targets, strict=True):
            result = self.scope.storage[a.buffer]
            self.scope.storage[a.buffer] = saved[a.buffer]
            self.line(f"{target} = {result.name};")

    def declare_accumulator(self, accumulation: Accumulation) -> None:
        outer = self.scope.storage[accumulation.buffer]
        start = self.express(accumulation.start.value)
        name = self.names.fresh(accumulation.name)
        self.line(f"{c_type(outer.dtype)} {name} = {self.assigned(start, outer.dtype)};")
        self.scope.storage[accumulation.buffer] = Storage(name, outer.dtype, scalar=True)

    def accumulate(self, found: Sequence[Accumulation], loop: Any) -> None:
        """The loop; twice if the first time shows sums small enough to need no wrapping."""
        mark = len(self.lines)
        for a in found:
            a.forget()
        self.observed = found
        self.single(loop)
        narrowed = False
        for a in found:
            storage = self.scope.storage[a.buffer]
            bounds = a.bounds(self.express(a.start.value))
            if bounds is not None and storage.dtype not in ("float32", "float64") and fits(*bounds, storage.dtype):
                self.scope.storage[a.buffer] = replace(storage, low=bounds[0], high=bounds[1])
                narrowed = True
        if narrowed:
            del self.lines[mark:]
            self.single(loop)

    def assigned(self, value: Value, dtype: str) -> str:
        """The text on the right of an assignment to ``dtype``."""
        safe = value.dtype == dtype or value.literal or dtype == "bool"
        if not safe and not value.is_float and dtype not in ("float32", "float64"):
            safe = fits(*limits(value.dtype), dtype)
        return value.text if safe else cast(value, dtype).text

    def store(self, statement: Any) -> None:
        target = self.express.element(statement.buffer, statement.indices)
        value = self.express(statement.value)
        addend = increment(statement)
        prefix = f"{target.text} + "
        if addend is not None and value.dtype == target.dtype and value.text.startswith(prefix):
            self.line(f"{target.text} += {value.text.removeprefix(prefix)};")
            return
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
