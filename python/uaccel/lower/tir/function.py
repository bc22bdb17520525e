"""Compiles an operator that has no kernel to a plain C function.

TVM legalises the operator to TIR functions. These are tidied, lowered to loops and written as C; :func:`compile_call`
is the entry.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from uaccel.errors import ModelError, need
from uaccel.lower.tir.checked import checked
from uaccel.lower.tir.expression import LIBRARY_FUNCTIONS, RUN_TIME_ONLY, Names, Scope, Storage, one_line
from uaccel.lower.tir.statement import StatementPrinter, data_source, flatten, nodes, tidied
from uaccel.memory import Block, plan
from uaccel.model import TensorInfo
from uaccel.tvm_api import (
    Op,
    is_call,
    is_constant,
    is_tuple,
    is_tuple_get_item,
    is_var,
    main_bindings,
    main_result,
    relax,
    tir,
    tirx,
)
from uaccel.tvm_api.extremes import TvmRefusalError
from uaccel.util.c_text import INDENT, UNBROKEN, c_type, filled, literal
from uaccel.util.text import round_up

# An operator call as steps: TIR functions over the call's tensors, intermediate tensors and constants.

Place = tuple[str, int]  # Which tensor: ("in", i), ("out", i), ("temporary", i) or ("constant", i).


@dataclass(frozen=True)
class TirStep:
    """Holds a TIR function, and the tensor that stands for each of its parameters."""

    func: Any
    places: tuple[Place, ...]


@dataclass(frozen=True)
class TirSteps:
    """Holds the TIR functions that compute an operator call, in order, with all tensors that they use."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    steps: tuple[TirStep, ...]
    temporaries: tuple[TensorInfo, ...] = ()
    constants: tuple[Any, ...] = ()


def operator_name(call: Any) -> str:
    return str(call.op.name) if isinstance(call.op, Op) else one_line(call.op)


def tensor_info(kind: Any) -> TensorInfo:
    """A tensor type as plain data, if its shape is static and C has its element type."""
    if not isinstance(kind, relax.TensorType):
        raise ModelError("it computes something that is no tensor")
    shape = kind.shape
    if shape is None or not all(isinstance(extent, tirx.IntImm) for extent in shape):
        raise ModelError(f"the shape of {one_line(kind)} is only known at run time")
    dtype = str(kind.dtype.dtype)
    c_type(dtype)
    return TensorInfo(tuple(int(extent) for extent in shape), dtype)


def tensor_infos(kind: Any) -> list[TensorInfo]:
    """The tensors of a type, tuples flattened."""
    if isinstance(kind, relax.TupleType):
        return [info for part in kind.fields for info in tensor_infos(part)]
    return [tensor_info(kind)]


class TirArguments:
    """Replaces a call's tensors by fresh variables; constants stay, so that TVM can specialise."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.infos: list[TensorInfo] = []
        self.variables: list[Any] = []
        self.places: dict[Any, Place] = {}
        self.replaced = [self._replace(argument) for argument in arguments]

    def _replace(self, argument: Any) -> Any:
        if is_tuple(argument):
            return relax.Tuple([self._replace(part) for part in argument.fields])
        if is_var(argument) and isinstance(argument.ty, relax.TupleType):
            return relax.Tuple([self._tensor(part) for part in argument.ty.fields])
        if is_constant(argument):
            self.infos.append(tensor_info(argument.ty))
            self.places.setdefault(argument, ("in", len(self.infos) - 1))
            return argument
        return (
            self._tensor(argument.ty) if is_var(argument) and not isinstance(argument.ty, relax.ShapeType) else argument
        )

    def _tensor(self, kind: Any) -> Any:
        info = tensor_info(kind)
        variable = relax.Var(f"in{len(self.infos)}", relax.TensorType(info.shape, info.dtype))
        self.places[variable] = ("in", len(self.infos))
        self.infos.append(info)
        self.variables.append(variable)
        return variable


@dataclass
class Reader:
    """Reads the bindings of a legalised function; tensors are named by places, tuples are lists of them."""

    module: Any
    known: dict[Any, Any]
    steps: list[TirStep] = field(default_factory=list)
    temporaries: list[TensorInfo] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def read(self) -> Any:
        for variable, expression in main_bindings(self.module)[1]:
            self.known[variable] = self.value(expression)
        return self.value(main_result(self.module))

    def value(self, expression: Any) -> Any:
        if is_tuple(expression):
            return [self.value(part) for part in expression.fields]
        if is_tuple_get_item(expression):
            return self.value(expression.tuple_value)[expression.index]
        if expression in self.known:
            return self.known[expression]
        if is_constant(expression):
            self.constants.append(expression.value.numpy())
            return ("constant", len(self.constants) - 1)
        return self.call(expression)

    def call(self, expression: Any) -> Any:
        if not is_call(expression) or operator_name(expression) != "relax.call_tir" or len(expression.args) != 2:
            raise ModelError(RUN_TIME_ONLY)
        sources = [self.value(argument) for argument in expression.args[1].fields]
        kinds = expression.ty_args[0]
        results = []
        for info in tensor_infos(kinds):
            self.temporaries.append(info)
            results.append(("temporary", len(self.temporaries) - 1))
        self.steps.append(TirStep(self.module[expression.args[0]], (*sources, *results)))
        return results if isinstance(kinds, relax.TupleType) else results[0]


def flattened(result: Any) -> Iterator[Place]:
    if isinstance(result, list):
        for part in result:
            yield from flattened(part)
    else:
        yield result


def within_bounds(call: Any) -> Any:
    """The call; if it gathers elements, indices are clipped to the nearest valid one rather than trusted."""
    if operator_name(call) != "relax.take" or call.attrs.mode != "fast":
        return call
    return relax.op.take(*call.args, axis=call.attrs.axis, mode="clip")


def steps_of(call: Any) -> TirSteps:
    """The TIR functions that compute an operator call."""
    call = within_bounds(call)
    arguments = TirArguments(call.args)
    module = tir.legalise(relax.Call(call.op, arguments.replaced, call.attrs, call.ty_args), arguments.variables)
    parameters = dict(zip(main_bindings(module)[0], arguments.variables, strict=True))
    known = dict(arguments.places) | {new: arguments.places[old] for new, old in parameters.items()}
    reader = Reader(module, known)
    outputs = list(flattened(reader.read()))
    infos = tensor_infos(module["main"].ret_ty)
    if isinstance(getattr(call, "ty", None), (relax.TensorType, relax.TupleType)):
        require_types(infos, tensor_infos(call.ty))
    return with_outputs(reader, tuple(arguments.infos), tuple(infos), outputs)


def require_types(given: Sequence[TensorInfo], wanted: Sequence[TensorInfo]) -> None:
    """Refuses results of other types than the model's tensors have, which lie where a function of TVM's writes.

    TVM's type rules and its lowering are separate code, and do not always agree: the mean of int32 is int32 by the one
    and int64 by the other, and would be written over what lies behind its tensor.
    """
    for one, other in zip(given, wanted, strict=True):
        if (one.dtype, one.elements) != (other.dtype, other.elements):
            raise ModelError(f"TVM computes {one}, where the model has {other}")


def with_outputs(
    reader: Reader, inputs: tuple[TensorInfo, ...], infos: tuple[TensorInfo, ...], outputs: Sequence[Place]
) -> TirSteps:
    """The steps with temporaries replaced by the outputs that they are; an output given twice or an input is copied."""
    renamed: dict[Place, Place] = {}
    copies = []
    for index, (place, info) in enumerate(zip(outputs, infos, strict=True)):
        if place[0] == "temporary" and place not in renamed:
            renamed[place] = ("out", index)
        else:
            copies.append(
                TirStep(tir.copying_function(info.shape, info.dtype), (renamed.get(place, place), ("out", index)))
            )
    steps = [TirStep(step.func, tuple(renamed.get(place, place) for place in step.places)) for step in reader.steps]
    return TirSteps(inputs, infos, (*steps, *copies), tuple(reader.temporaries), tuple(reader.constants))


# Tidies blocks before they become loops.
#
# Elementwise steps merge, which saves their intermediate tensors, and reductions split into start and update, which
# saves the test for the first round. Blocks that the scheduler refuses stay: the function means the same either way.

_SPATIAL = tirx.IterVar.DataPar


def tidy(func: Any) -> Any:
    """The same function with fewer intermediate tensors and no test in the loops of its reductions."""
    state = tir.schedule(func)
    try:
        blocks = state.get_child_blocks(state.get_sblock("root"))
    except tir.ScheduleError:
        return func
    kept = [block for block in blocks if not (worth_inlining(state, block) and attempt(state.compute_inline, block))]
    for block in kept:
        merge_with_consumer(state, block)
    for block in kept:
        loop = first_reduction_loop(state, block)
        if loop is not None:
            attempt(state.decompose_reduction, block, loop)
    return state.mod["main"]


def attempt(primitive: Callable[..., object], *arguments: Any) -> bool:
    """Applies a primitive of the scheduler; the result is whether it agreed."""
    try:
        primitive(*arguments)
    except tir.ScheduleError:
        return False
    return True


def is_elementwise(block: Any) -> bool:
    return block.init is None and all(var.iter_type == _SPATIAL for var in block.iter_vars)


def extent(block: Any) -> int:
    return math.prod(int(var.dom.extent) for var in block.iter_vars)


def worth_inlining(state: Any, reference: Any) -> bool:
    """Whether computing an element where it is read costs no more than keeping it. Copies always pay, unless their
    divisions would come into a reduction's loop. Others need a single consumer with no more elements, which reads them
    twice at most, or once if they call a function."""
    block = state.get(reference)
    consumers = [state.get(consumer) for consumer in state.get_consumers(reference)]
    if not consumers or not is_elementwise(block):
        return False
    divides = nodes(block.body, tirx.FloorDiv) or nodes(block.body, tirx.FloorMod)
    if is_copy(block) and (not divides or all(is_elementwise(consumer) for consumer in consumers)):
        return True
    written = [region.source for region in block.writes]
    reads = [load for load in nodes(consumers[0].body, tir.TensorLoad) if any(load.source.same_as(w) for w in written)]
    few = len(reads) <= (1 if nodes(block.body, tir.Call) else 2)
    return len(consumers) == 1 and few and extent(consumers[0]) <= extent(block)


def is_copy(block: Any) -> bool:
    """Whether a block only moves or converts the elements of one tensor."""
    value = block.body.value if isinstance(block.body, tirx.BufferStore) else None
    while isinstance(value, tirx.Cast):
        value = value.value
    return isinstance(value, tir.TensorLoad)


def merge_with_consumer(state: Any, reference: Any) -> None:
    """Finishes each element of a reduction where it is reduced, so that no tensor of sums is kept."""
    block, consumers = state.get(reference), state.get_consumers(reference)
    if first_reduction_loop(state, reference) is None or len(consumers) != 1:
        return
    consumer = state.get(consumers[0])
    shape = [int(var.dom.extent) for var in block.iter_vars if var.iter_type == _SPATIAL]
    same = shape == [int(var.dom.extent) for var in consumer.iter_vars]
    if shape and same and is_elementwise(consumer):
        attempt(state.reverse_compute_at, consumers[0], state.get_loops(reference)[len(shape) - 1])


def first_reduction_loop(state: Any, reference: Any) -> Any | None:
    """The outermost loop over a reduced axis, if the block has one loop an axis, the reduced ones innermost."""
    block, loops = state.get(reference), state.get_loops(reference)
    if block.init is None or len(loops) != len(block.iter_vars):
        return None
    kinds = [var.iter_type == _SPATIAL for var in block.iter_vars]
    spatial = sum(kinds)
    return loops[spatial] if all(kinds[:spatial]) and spatial < len(loops) else None


# Places for intermediate buffers: offsets into the scratch memory, planned by :mod:`uaccel.memory`.

ALIGNMENT = 8
LARGEST_LOCAL = 64  # Bytes up to which a buffer may live on the stack.


@dataclass(frozen=True)
class Demand:
    """Describes a buffer that is live from statement ``first`` to statement ``last``."""

    key: Any
    size: int
    first: int
    last: int


def place(demands: Sequence[Demand]) -> tuple[dict[Any, int], int]:
    """The offset of each key, and the bytes needed."""
    blocks = [Block(str(number), d.size, d.first, d.last, ALIGNMENT) for number, d in enumerate(demands)]
    planned = plan(blocks)
    offsets = {demand.key: planned.offsets[block.name] for demand, block in zip(demands, blocks, strict=True)}
    return offsets, round_up(planned.size, ALIGNMENT)


# One C function from steps: parameters, constants, places in scratch memory, body.

HEADERS = {
    "math.h": rf"\b(?:{'|'.join(sorted(LIBRARY_FUNCTIONS))}|INFINITY|NAN)\b",
    "stdbool.h": r"\b(?:bool|true|false)\b",
    "stdint.h": r"\bu?int\d+_t\b",
}


@dataclass(frozen=True)
class CFunction:
    """Holds a C function: ``source`` defines ``static void name(inputs, outputs[, scratch])`` and its helpers.

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
    """Holds statements over flat buffers, and the tensor that stands for each parameter."""

    statements: tuple[Any, ...]
    places: dict[Any, Place]


def lowered(step: TirStep, tensors: Sequence[TensorInfo]) -> LoweredStep:
    func = tir.lower_blocks(tidy(tir.with_plain_buffers(step.func)))
    need(len(func.params) == len(step.places), "it needs parameters that are only known at run time")
    func = checked(func, tensors)
    return LoweredStep(tuple(flatten(func.body)), dict(zip(func.params, step.places, strict=True)))


def function_of(steps: TirSteps, name: str) -> CFunction:
    """The steps as one C function."""
    printer = StatementPrinter(Scope(), Names(frozenset(parameter_names(steps)) | {name}))
    for index, array in enumerate(steps.constants):
        dtype, elements = str(array.dtype), array.ravel().tolist()
        values = ", ".join(literal(element, dtype) for element in elements)
        printer.line(f"static const {c_type(dtype)} constant{index}[{len(elements)}] = {{{values}}};")
    parts = [lowered(step, [tensor_at(steps, where) for where in step.places]) for step in steps.steps]
    offsets, scratch_bytes = place(demands(parts, steps.temporaries))
    places = temporaries(printer, steps.temporaries, offsets)
    for number, part in enumerate(parts):
        printer.scope.storage = {
            parameter: places.get(where) or parameter_storage(steps, where) for parameter, where in part.places.items()
        }
        allocate(printer, number, part, offsets)
        printer.sequence(part.statements)
    return assemble(steps, name, printer, scratch_bytes)


def parameter_names(steps: TirSteps) -> Iterator[str]:
    yield from (f"in{i}" for i in range(len(steps.inputs)))
    yield from (f"out{i}" for i in range(len(steps.outputs)))
    yield from (f"constant{i}" for i in range(len(steps.constants)))
    yield "scratch"


def tensor_at(steps: TirSteps, where: Place) -> TensorInfo:
    kind, index = where
    if kind == "constant":
        array = steps.constants[index]
        return TensorInfo(tuple(array.shape), str(array.dtype))
    return {"in": steps.inputs, "out": steps.outputs, "temporary": steps.temporaries}[kind][index]


def parameter_storage(steps: TirSteps, where: Place) -> Storage:
    return Storage(f"{where[0]}{where[1]}", tensor_at(steps, where).dtype)


def demands(parts: Sequence[LoweredStep], temporary: Sequence[TensorInfo]) -> list[Demand]:
    """The buffers in scratch memory: tensors between steps, and allocations that are too large for the stack."""
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
    return TensorInfo(tuple(map(int, extents)), tir.buffer_dtype(buffer)).size


def touched(statement: Any) -> Iterator[Any]:
    """The buffers whose elements a statement reads or writes, or whose address it takes."""
    yield from (load.source for load in nodes(statement, tir.TensorLoad))
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
                storage = pointer(printer, buffer.name, tir.buffer_dtype(buffer), offsets[number, buffer])
                printer.scope.storage[buffer] = storage


def assemble(steps: TirSteps, name: str, printer: StatementPrinter, scratch_bytes: int) -> CFunction:
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


# The fallback for every operator: whatever TVM can legalise becomes a plain C99 function.
#
# TVM's own printer of C is not used: it writes float constants with seven digits, leaves out the conversions that C
# needs to compute as TIR does, and keeps intermediate tensors on the stack. This one is exact, causes no warnings, has
# no undefined behaviour in its integer arithmetic and reads like C.


def compile_call(call: relax.Call, name: str) -> CFunction:
    """A Relax operator call as a C function called ``name``.

    Its tensors, those in tuples included, become parameters in their order; constants too, although the function
    rarely reads scalar ones, since their values go into the code.
    """
    what = f"{operator_name(call)} of {', '.join(describe(a) for a in tensors(call.args)) or 'nothing'}"
    with reported(what, "replace the operator in the model, or give it to an accelerator"):
        return function_of(steps_of(call), name)


@contextmanager
def reported(what: str, advice: str) -> Iterator[None]:
    """Reports a refusal inside as one line: what could not become C, why, and what to do."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{what} has no plain C: {error}; {advice}") from error
    except TvmRefusalError as error:
        reason = one_line(error, 200)
        raise ModelError(f"{what} has no plain C: {reason}; {advice}") from error


def tensors(arguments: Iterable[Any]) -> Iterator[Any]:
    """The arguments that are data, tuples flattened."""
    for argument in arguments:
        if is_tuple(argument):
            yield from tensors(argument.fields)
        elif isinstance(getattr(argument, "ty", None), (relax.TensorType, relax.TupleType)):
            yield argument


def describe(tensor: Any) -> str:
    """Type and shape of a tensor, whatever it is."""
    kind = getattr(tensor, "ty", None)
    if not isinstance(kind, relax.TensorType):
        return one_line(tensor)
    shape = (
        "?"
        if kind.shape is None
        else ",".join(str(int(e)) if isinstance(e, tirx.IntImm) else str(e) for e in kind.shape)
    )
    return f"{kind.dtype.dtype if kind.dtype is not None else 'unknown type'} [{shape}]"
