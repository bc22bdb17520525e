"""One C function from steps: parameters, constants, places in scratch memory, body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.cprinter.expression import Scope, Storage
from uaccel.cprinter.legalise import Place, Step, Steps
from uaccel.cprinter.names import LIBRARY_FUNCTIONS, Names
from uaccel.cprinter.reduce import nodes
from uaccel.cprinter.schedule import tidy
from uaccel.cprinter.scratch import LARGEST_LOCAL, Demand, place
from uaccel.cprinter.statement import StatementPrinter, data_source, flatten, tidied
from uaccel.ctext.layout import INDENT, UNBROKEN, filled
from uaccel.ctext.literals import literal
from uaccel.ctext.types import c_type
from uaccel.errors import ModelError
from uaccel.model import TensorInfo
from uaccel.tvm_api import tirx
from uaccel.tvm_api.tir import TensorLoad, buffer_dtype, lower_blocks, with_plain_buffers

HEADERS = {
    "math.h": rf"\b(?:{'|'.join(sorted(LIBRARY_FUNCTIONS))}|INFINITY|NAN)\b",
    "stdbool.h": r"\b(?:bool|true|false)\b",
    "stdint.h": r"\bu?int\d+_t\b",
}


@dataclass(frozen=True)
class CFunction:
    """``source`` defines ``static void name(inputs, outputs[, scratch])`` and the helpers that it calls.

    Every input is a pointer to const, every output a pointer; ``scratch`` is ``uint8_t *``, aligned to 8 bytes, and
    a parameter only if ``scratch_bytes`` is not 0. An input that is not in ``used_inputs`` is there for the order
    alone and may be NULL. ``source`` includes nothing; ``headers`` are the standard headers it needs.
    """

    name: str
    source: str
    headers: tuple[str, ...]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    scratch_bytes: int
    used_inputs: tuple[int, ...]


@dataclass(frozen=True)
class LoweredStep:
    """Statements over flat buffers; ``places`` says what the parameters are."""

    statements: tuple[Any, ...]
    places: dict[Any, Place]


def lowered(step: Step) -> LoweredStep:
    func = lower_blocks(tidy(with_plain_buffers(step.func)))
    if len(func.params) != len(step.places):
        raise ModelError("it needs parameters that are only known at run time")
    return LoweredStep(tuple(flatten(func.body)), dict(zip(func.params, step.places, strict=True)))


def function_of(steps: Steps, name: str) -> CFunction:
    """The steps as one C function."""
    printer = StatementPrinter(Scope(), Names(frozenset(parameter_names(steps)) | {name}))
    for index, array in enumerate(steps.constants):
        dtype, elements = str(array.dtype), array.ravel().tolist()
        values = ", ".join(literal(element, dtype) for element in elements)
        printer.line(f"static const {c_type(dtype)} constant{index}[{len(elements)}] = {{{values}}};")
    parts = [lowered(step) for step in steps.steps]
    offsets, scratch_bytes = place(demands(parts, steps.temporaries))
    places = temporaries(printer, steps.temporaries, offsets)
    for number, part in enumerate(parts):
        printer.scope.storage = {
            parameter: places.get(where) or parameter_storage(steps, where) for parameter, where in part.places.items()
        }
        allocate(printer, number, part, offsets)
        printer.sequence(part.statements)
    return assemble(steps, name, printer, scratch_bytes)


def parameter_names(steps: Steps) -> Iterator[str]:
    yield from (f"in{i}" for i in range(len(steps.inputs)))
    yield from (f"out{i}" for i in range(len(steps.outputs)))
    yield from (f"constant{i}" for i in range(len(steps.constants)))
    yield "scratch"


def parameter_storage(steps: Steps, where: Place) -> Storage:
    kind, index = where
    if kind == "constant":
        return Storage(f"constant{index}", str(steps.constants[index].dtype))
    info = (steps.inputs if kind == "in" else steps.outputs)[index]
    return Storage(f"{kind}{index}", info.dtype)


def demands(parts: Sequence[LoweredStep], temporary: Sequence[TensorInfo]) -> list[Demand]:
    """What lives in scratch memory: tensors between steps, and allocations that are too large for the stack."""
    sizes: dict[Any, int] = {("temporary", i): info.size for i, info in enumerate(temporary)}
    uses: dict[Any, list[int]] = {}
    time = 0
    for number, part in enumerate(parts):
        roots: dict[Any, Any] = dict(part.places)
        for statement in part.statements:
            time += 1
            for buffer in allocated(statement):
                roots[buffer] = (number, buffer)
                if buffer_size(buffer) > LARGEST_LOCAL:
                    sizes[number, buffer] = buffer_size(buffer)
            for declaration in nodes(statement, tirx.DeclBuffer):
                roots[declaration.buffer] = roots.get(data_source(declaration))
            for buffer in touched(statement):
                uses.setdefault(roots.get(buffer), []).append(time)
    return [Demand(key, size, min(uses[key]), max(uses[key])) for key, size in sizes.items() if key in uses]


def allocated(statement: Any) -> list[Any]:
    return [allocation.buffer for allocation in nodes(statement, tirx.AllocBuffer)]


def buffer_size(buffer: Any) -> int:
    extents = buffer.ty.shape
    if not all(isinstance(extent, tirx.IntImm) for extent in extents):
        raise ModelError(f"the size of its intermediate tensor {buffer.name} is only known at run time")
    return TensorInfo(tuple(map(int, extents)), buffer_dtype(buffer)).size


def touched(statement: Any) -> Iterator[Any]:
    """The buffers whose elements a statement reads or writes, or whose address it takes."""
    yield from (load.source for load in nodes(statement, TensorLoad))
    yield from (store.buffer for store in nodes(statement, tirx.BufferStore))
    if not isinstance(statement, tirx.DeclBuffer):
        yield from (data_source(declaration) for declaration in nodes(statement, tirx.DeclBuffer))


def pointer(printer: StatementPrinter, wanted: str, dtype: str, offset: int) -> Storage:
    """Declares where in scratch memory a buffer lies."""
    name, kind = printer.names.fresh(wanted), c_type(dtype)
    start = f"(scratch + {offset})" if offset else "scratch"
    printer.line(f"{kind} *{name} = ({kind} *)(void *){start};")
    return Storage(name, dtype)


def temporaries(
    printer: StatementPrinter, infos: Sequence[TensorInfo], offsets: dict[Any, int]
) -> dict[Place, Storage]:
    places: list[Place] = [("temporary", index) for index in range(len(infos))]
    return {
        where: pointer(printer, f"temporary{where[1]}", infos[where[1]].dtype, offsets[where])
        for where in places
        if where in offsets
    }


def allocate(printer: StatementPrinter, number: int, part: LoweredStep, offsets: dict[Any, int]) -> None:
    """Declares the buffers of a step that lie in scratch memory."""
    for statement in part.statements:
        for buffer in allocated(statement):
            if (number, buffer) in offsets:
                storage = pointer(printer, buffer.name, buffer_dtype(buffer), offsets[number, buffer])
                printer.scope.storage[buffer] = storage


def assemble(steps: Steps, name: str, printer: StatementPrinter, scratch_bytes: int) -> CFunction:
    lines = tidied(printer.lines)
    body = "\n".join(lines)
    parameters = [f"const {c_type(info.dtype)} *in{i}" for i, info in enumerate(steps.inputs)]
    parameters += [f"{c_type(info.dtype)} *out{i}" for i, info in enumerate(steps.outputs)]
    parameters += ["uint8_t *scratch"] if scratch_bytes else []
    unused = [p for p in (p.rsplit("*", 1)[1] for p in parameters) if not re.search(rf"\b{p}\b", body)]
    lines = [f"{INDENT}(void){parameter};" for parameter in unused] + lines
    head = f"static void {name}({', '.join(p.replace(' ', UNBROKEN) for p in parameters)})"
    text = "\n".join(filled(line) for line in (head, "{", *lines, "}")) + "\n"
    source = printer.scope.helpers.define(text) + text
    headers = tuple(header for header, pattern in HEADERS.items() if re.search(pattern, source))
    used = tuple(i for i in range(len(steps.inputs)) if f"in{i}" not in unused)
    return CFunction(name, source, headers, steps.inputs, steps.outputs, scratch_bytes, used)
