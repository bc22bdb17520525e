"""Lowers a partitioned Relax module to a program: each binding becomes a layer.

A layer has a kernel of an integer operator, a layout kernel, an accelerator's calls, C of control flow, or C from
TVM's own lowering (:mod:`uaccel.lower.tir`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from uaccel import model as models
from uaccel import tvm_api
from uaccel.errors import InternalError, ModelError
from uaccel.kernels import Choice, Work
from uaccel.kernels.choice import ANY_CPU, Selection
from uaccel.kernels.cpu_costs import picked
from uaccel.lower.accelerator_layer import Known, after_lowering, engine_step, on_cpu
from uaccel.lower.placement import Placement, Storing, place
from uaccel.lower.program import Applied, Engine, Layer, Program, Value, check_parameters, view_roots
from uaccel.lower.tir.function import compile_call
from uaccel.model import ImportedModel, Origin, TensorInfo, TensorSpec
from uaccel.ops.control import IF, PARTS, Control, ControlAttrs, parts_of, signature_of
from uaccel.ops.kernel import Constant, Definition, Input, Kernel, KernelCall, Output, Scratch
from uaccel.ops.layout import by_rows, layout_kernels
from uaccel.ops.operator import (
    IntegerOperator,
    Operand,
    Site,
    infos_of,
    macs_of,
    operand_arguments,
    operator_of,
    short_name,
    type_info,
)
from uaccel.partition import Partitioned, Wishes, partition
from uaccel.partition.passes.simplify import simplify
from uaccel.partition.regions import part_name
from uaccel.tvm_api import relax
from uaccel.util.c_text import C_TYPES
from uaccel.util.text import CPU, named

# Control flow as a layer: C of ``if`` and ``while`` that calls the layers of its functions.
#
# The tensors of a function lie in the layer's scratch memory, planned as a program's are. Only one function runs at a
# time, so they all share it. Its inputs are copied in, and its outputs are copied out.

HEADERS = ("string.h", "stdbool.h", "stdint.h")
Lower = Callable[[ImportedModel, str], Program]


@dataclass(frozen=True)
class ControlStep:
    """Holds the C function of control flow, the kernel that calls it, and the layers that it calls."""

    kernel: Kernel
    definition: Definition
    inner: tuple[Layer, ...]


def control_step(
    attrs: ControlAttrs, operands: Sequence[Operand], outputs: Sequence[TensorInfo], symbol: str, lower: Lower
) -> ControlStep:
    """Lowers control flow. ``symbol``: the C function's name. ``lower`` gives the program of a function."""
    names, modules = [f"{symbol}_{part}" for part in PARTS[attrs.kind]], parts_of(attrs)
    if attrs.kind == IF:
        modules, operands = _holding_constants(modules, operands)
    first, second = (
        _part(lower(_model(module, name), name), name) for module, name in zip(modules, names, strict=True)
    )
    sizes = [operand.info.size for operand in operands]
    body = _choice(first, second, sizes) if attrs.kind == IF else _loop(first, second, sizes)
    parameters = [f"const void *in{i}" for i in range(len(operands))]
    parameters += [f"void *out{i}" for i in range(len(outputs))]
    head = f"static void {symbol}({', '.join([*parameters, 'uint8_t *scratch'])})"
    source = "\n".join([head, "{", *(f"    {line}" for line in body), "}", ""])
    arguments = operand_arguments(operands, [f"constant{i}" for i in range(len(operands))])
    arguments += [*(Output(i) for i in range(len(outputs))), Scratch()]
    kernel = Kernel(
        "control",
        (KernelCall(symbol, "", "", {}, tuple(arguments)),),
        scratch=max(8, first.placement.arena, second.placement.arena),
    )
    return ControlStep(kernel, Definition(symbol, source, HEADERS), (*first.layers, *second.layers))


def _holding_constants(
    modules: tuple[Any, Any], operands: Sequence[Operand]
) -> tuple[tuple[Any, Any], Sequence[Operand]]:
    """Puts the constants that a choice is given into its functions, where they fold and fuse as any others do."""
    condition, *given = operands
    known = {place: one.constant for place, one in enumerate(given) if one.constant is not None}
    first, second = (tvm_api.with_constants(module, known) for module in modules)
    return (first, second), [condition, *(one for one in given if one.constant is None)]


@dataclass(frozen=True)
class _Part:
    """Holds a lowered function of the model; its layers have names that no other layer has."""

    program: Program
    placement: Placement
    layers: tuple[Layer, ...]

    def calls(self) -> list[str]:
        return [f"{self._call(layer)};" for layer in self.layers if not layer.is_view]

    def _call(self, layer: Layer) -> str:
        arguments = [self.at(value) for value in (*layer.inputs, *layer.outputs)]
        if layer.kernel.scratch:
            arguments.append(_memory(self.placement.scratch[layer.index].offset))
        return f"layer_{layer.name}({', '.join(arguments)})"

    def at(self, value: Value) -> str:
        return _memory(self.placement.places[value.name].offset)


def _memory(offset: int) -> str:
    return f"(void *)(scratch + {offset})" if offset else "(void *)scratch"


def _part(program: Program, prefix: str) -> _Part:
    layers = tuple(replace(layer, name=f"{prefix}_{layer.name}") for layer in program.layers)
    return _Part(program, place(program, workspace_io=True), layers)


def _model(module: Any, name: str) -> ImportedModel:
    taken, given = signature_of(module)
    parameters = [parameter.name for parameter in module["main"].params]
    inputs = tuple(TensorSpec(n, info) for n, info in zip(models.unique_names(parameters), taken, strict=True))
    outputs = tuple(TensorSpec(f"result_{i}", info) for i, info in enumerate(given))
    return ImportedModel(name, "relax", "", module, models.Signature(inputs, outputs), {}, {})


def _copies(targets: Sequence[str], sources: Sequence[str], sizes: Sequence[int]) -> list[str]:
    return [f"memcpy({to}, {of}, {size});" for to, of, size in zip(targets, sources, sizes, strict=True)]


def _run(part: _Part, sources: Sequence[str], sizes: Sequence[int]) -> list[str]:
    return [*_copies([part.at(value) for value in part.program.inputs], sources, sizes), *part.calls()]


def _given(part: _Part) -> list[str]:
    """Copies of the results into the layer's outputs."""
    values = part.program.outputs
    targets = [f"out{i}" for i in range(len(values))]
    return _copies(targets, [part.at(value) for value in values], [value.info.size for value in values])


def _choice(then: _Part, otherwise: _Part, sizes: Sequence[int]) -> list[str]:
    sources = [f"in{i + 1}" for i in range(len(sizes) - 1)]
    blocks = [[*_run(part, sources, sizes[1:]), *_given(part)] for part in (then, otherwise)]
    return [
        "if (*(const uint8_t *)in0 != 0) {",
        *(f"    {line}" for line in blocks[0]),
        "} else {",
        *(f"    {line}" for line in blocks[1]),
        "}",
    ]


def _loop(condition: _Part, body: _Part, sizes: Sequence[int]) -> list[str]:
    """The C of a loop: its state lies in the layer's outputs from one turn to the next."""
    state = [f"out{i}" for i in range(len(sizes))]
    return [
        *_copies(state, [f"in{i}" for i in range(len(sizes))], sizes),
        "for (;;) {",
        *(f"    {line}" for line in _run(condition, state, sizes)),
        f"    if (*(const uint8_t *){condition.at(condition.program.outputs[0])} == 0) {{",
        "        return;",
        "    }",
        *(f"    {line}" for line in [*_run(body, state, sizes), *_given(body)]),
        "}",
    ]


# Operators without a kernel: TVM lowers them to TIR, and its C becomes part of the generated source.

# Copies its first operand, element by element, and then writes to the copy (tvm_api/places.py): a cache stays in place.
CHANGING: Final = ("relax.scatter_elements", "relax.scatter_nd")
# Copy states to the results behind the first, and then read and write these alone; the number of the first state.
CARRYING: Final = {"uaccel.recurrent": 1, "uaccel.hybrid_cells": 3}


def fallback_layer(call: Any, operands: tuple[Operand, ...], symbol: str) -> tuple[Kernel, Definition]:
    """The kernel that calls the generated function ``symbol``, and that function."""
    function = compile_call(call, symbol)
    arguments = operand_arguments(operands, [f"constant{index}" for index in range(len(operands))])
    arguments.extend(Output(index) for index in range(len(function.outputs)))
    if function.scratch_bytes:
        arguments.append(Scratch())
    kernel_call = KernelCall(symbol, "", "", {}, tuple(arguments))
    kernel = Kernel("tir", (kernel_call,), scratch=function.scratch_bytes)
    if call.op.name in CHANGING and operands[0].constant is None:
        kernel = replace(kernel, inplace=(0,), updates=((0, 0),))
    if call.op.name in CARRYING:
        states = range(CARRYING[call.op.name], CARRYING[call.op.name] + len(function.outputs) - 1)
        computed = [number for number, operand in enumerate(operands) if operand.constant is None]
        updates = [(1 + at, computed.index(state)) for at, state in enumerate(states) if state in computed]
        kernel = replace(kernel, updates=tuple(updates))
    return kernel, Definition(symbol, function.source, function.headers)


# Relax bindings, in order, become layers: an integer operator's kernel, a layout kernel, or TVM's own C.

Count = Callable[[int, int], None]


def lower(
    partitioned: Partitioned,
    name: str,
    *,
    cpu_fallback: bool = False,
    selection: Selection = ANY_CPU,
    known: Known | None = None,
    count: Count = lambda done, total: None,
) -> Program:
    """Lowers a module; with ``cpu_fallback`` the CPU computes what an accelerator fails at. ``known``: what
    accelerators' regions became in other partitions of the model; new ones are added. ``count`` is called with the
    number of bindings done, since accelerators may search long for the way to compute a region."""
    lowering = _Lowering(partitioned, name, cpu_fallback, selection, {} if known is None else known)
    return after_lowering(lowering.program(count), partitioned.accelerators)


@dataclass
class _Step:
    """Holds what one binding becomes, before it has a place in the list of layers."""

    op: str
    kernel: Kernel
    reason: str
    macs: int = 0
    definition: Definition | None = None
    choice: Choice | None = None
    applied: Applied | None = None
    inner: tuple[Layer, ...] = ()


class _Lowering:
    """Lowers one module. ``env`` has the value, array or tuple that each Relax variable stands for."""

    def __init__(
        self, partitioned: Partitioned, name: str, cpu_fallback: bool, selection: Selection, known: Known
    ) -> None:
        self.partitioned = partitioned
        self.model = partitioned.model
        self.reasons = {decision.layer: decision.reason for decision in partitioned.decisions}
        self.cpu_cycles = {decision.layer: decision.cpu_cycles for decision in partitioned.decisions}
        self.name = name
        self.cpu_fallback = cpu_fallback
        self.selection = selection
        self.known = known
        self.env: dict[Any, Any] = {}
        self.fields: dict[tuple[Any, int], str] = {}
        self.layers: list[Layer] = []
        self.value_names = models.UniqueNames()
        self.layer_names = models.UniqueNames()
        self.names_of_model = {b: self.layer_names.take(name) for b, name in partitioned.layer_names.items()}

    def program(self, told: Count) -> Program:
        parameters, bindings = tvm_api.main_bindings(self.model.module)
        given = tuple(self._value(var.name, type_info(var.ty)) for var in parameters)
        self.env.update(zip(parameters, given, strict=True))
        count = len(self.model.signature.inputs)
        inputs, befores = given[:count], given[count:]
        self.fields = tvm_api.field_names(bindings)
        for done, (var, expr) in enumerate(bindings):
            told(done, len(bindings))
            self.env[var] = self._bind(var, expr)
        result = self._resolve(tvm_api.main_result(self.model.module))
        results = result if isinstance(result, tuple) else (result,)
        count = len(self.model.signature.outputs)
        outputs = self._own_outputs(given, results[:count])
        storing = Storing(self.layers, befores, outputs, partial(self._copy, why="it lasts until the next inference"))
        state = storing.values(self.model.state, results[count:]) if befores else ()
        layers, favour, cpu = tuple(self.layers), self.selection.favour, self.selection.target.cpu
        return Program(self.name, self.model, inputs, outputs, layers, self._engines(), state, favour, cpu)

    def _engines(self) -> tuple[Engine, ...]:
        """The accelerators that compute something."""
        used = {layer.engine for layer in self.layers}
        return tuple(
            Engine(
                a.name,
                a.camel_case,
                tuple(a.headers),
                tuple(a.files.items()),
                a.tolerance,
                a.hooks,
                a.has_device,
                a.device_build.text,
                a.alignment,
            )
            for a in self.partitioned.accelerators
            if a.name in used
        )

    def _value(self, name: str, info: TensorInfo) -> Value:
        if info.dtype not in C_TYPES:
            raise ModelError(
                f'tensor "{name}" ({info}) cannot be in C: C99 has no type {info.dtype}; convert the model to float32'
            )
        unique = self.value_names.take(models.c_identifier(name))
        spec = self.model.tensors.get(name)
        quantisation = spec.quantisation if spec else None
        return Value(unique, TensorSpec(spec.name if spec else name, info, quantisation))

    def _resolve(self, expr: Any) -> Any:
        if tvm_api.is_var(expr):
            return self.env[expr]
        if tvm_api.is_constant(expr):
            return np.asarray(expr.value.numpy())
        if tvm_api.is_tuple(expr):
            return tuple(self._resolve(field) for field in expr.fields)
        if tvm_api.is_tuple_get_item(expr):
            return self._resolve(expr.tuple_value)[int(expr.index)]
        raise InternalError(f"unexpected Relax expression {type(expr).__name__} in a normalised module")

    def _bind(self, var: Any, expr: Any) -> Any:
        if not tvm_api.is_call(expr):
            return self._resolve(expr)
        name = var.name
        arguments = flatten([self._resolve(arg) for arg in expr.args if is_tensor_argument(arg)])
        operands = tuple(as_operand(argument) for argument in arguments)
        single, infos = not tvm_api.is_tuple_type(expr), infos_of(expr)
        layer_name = self._layer_name(name, expr)
        names = [name] if single else [self.fields.get((var, i), f"{name}_{i}") for i in range(len(infos))]
        outputs = tuple(self._value(name, info) for name, info in zip(names, infos, strict=True))
        inputs = tuple(a for a in arguments if isinstance(a, Value))
        if tvm_api.is_region_call(expr):
            self._append_engine(layer_name, self.model.origins.get(name), expr.op, inputs, outputs)
        else:
            try:
                step = choose(expr, operands, infos, f"{self.name}_{layer_name}", self.selection)
            except ModelError as error:
                raise ModelError(f'layer "{layer_name}": {error}') from error
            origin = self.model.origins.get(name, Origin(-1, step.op, name))
            self._append_cpu(layer_name, origin, step, inputs, outputs)
        return outputs[0] if single else outputs

    def _append_engine(
        self, name: str, origin: Origin | None, function: Any, inputs: tuple[Value, ...], outputs: tuple[Value, ...]
    ) -> None:
        call = self.partitioned.calls[function.name_hint]
        step = engine_step(call, self.partitioned.origins, self.reasons, self.selection.selector, self.known)
        otherwise: tuple[Kernel | None, Definition | None] = (None, None)
        if self.cpu_fallback:
            kernel_of = partial(_kernel_of, self.selection)
            otherwise = on_cpu(self.model.module[function], kernel_of, f"{self.name}_{name}_on_cpu")
        cpu_cycles = sum(self.cpu_cycles.get(covered.name, 0.0) for covered in step.covers)
        macs = sum(covered.macs for covered in step.covers)
        made = _Step(step.op, step.kernel, step.reason, macs, step.lowered.source, step.choice)
        layer = self._layer(name, origin or Origin(-1, step.op, name), made, inputs, outputs)
        layer = replace(
            layer,
            engine=call.accelerator.name,
            covers=step.covers,
            otherwise=otherwise[0],
            otherwise_definition=otherwise[1],
            cycles=call.cost if step.lowered.cycles is None else step.lowered.cycles,
            cpu_cycles=cpu_cycles,
            tiles=tuple(step.lowered.tiles),
            **named(step.lowered, "artefacts", "labels", "instructions", "moved", "moved_by"),
        )
        self.layers.append(layer)

    def _layer_name(self, name: str, call: Any) -> str:
        """The model's name of a layer; a layer that partitioning added is named by its operator and its origin."""
        if name in self.names_of_model:
            return self.names_of_model[name]
        origin = self.model.origins.get(name)
        return self.layer_names.take(models.c_identifier(name) if origin is None else part_name(call, origin.index))

    def _append_cpu(
        self, name: str, origin: Origin, step: _Step, inputs: tuple[Value, ...], outputs: tuple[Value, ...]
    ) -> None:
        layer = self._layer(name, origin, step, inputs, outputs)
        refused = self.reasons.get(name, "") if self.partitioned.accelerators else ""
        self.layers.append(replace(layer, reason=f"{layer.reason}; {refused}", refused=refused) if refused else layer)

    def _layer(
        self, name: str, origin: Origin, step: _Step, inputs: tuple[Value, ...], outputs: tuple[Value, ...]
    ) -> Layer:
        index = len(self.layers)
        return Layer(index=index, name=name, engine=CPU, origin=origin, inputs=inputs, outputs=outputs, **vars(step))

    def _own_outputs(self, inputs: tuple[Value, ...], results: Sequence[Any]) -> tuple[Value, ...]:
        """The outputs, each with bytes of its own: an input, a constant, or a view of another output is copied."""
        owners = {value.name for value in inputs}
        roots = view_roots(self.layers)
        values = []
        for spec, result in zip(self.model.signature.outputs, results, strict=True):
            if not isinstance(result, Value) or roots.get(result.name, result.name) in owners:
                result = self._copy(spec, result)
            owners.add(roots.get(result.name, result.name))
            values.append(result)
        return tuple(values)

    def _copy(self, spec: TensorSpec, source: Any, why: str = "an output needs memory of its own") -> Value:
        name = f"copy_{models.c_identifier(spec.name)}"
        target = Value(self._value(name, spec.info).name, spec)
        is_value = isinstance(source, Value)
        argument = Input(0) if is_value else Constant("data", np.asarray(source))
        call = KernelCall(
            "uaccel_copy", "uaccel_layout.h", "uaccel_copy", {"bytes": spec.info.size}, (argument, Output(0))
        )
        step = _Step("copy", Kernel("portable", (call,)), why)
        origin = Origin(-1, "copy", spec.name)
        self._append_cpu(self.layer_names.take(target.name), origin, step, (source,) if is_value else (), (target,))
        return target


def is_tensor_argument(expr: Any) -> bool:
    """Whether an argument is data: shapes, numbers and other compile-time arguments of operators are not."""
    return is_tensor_type(expr.ty)


def is_tensor_type(ty: Any) -> bool:
    """Whether a type is a tensor, or a tuple of nothing but tensors."""
    fields = getattr(ty, "fields", None)
    return isinstance(ty, relax.TensorType) if fields is None else all(is_tensor_type(field) for field in fields)


def flatten(values: Sequence[Any]) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        flat.extend(flatten(value) if isinstance(value, tuple) else [value])
    return flat


def as_operand(argument: Any) -> Operand:
    if isinstance(argument, Value):
        return Operand(argument.info)
    return Operand(TensorInfo(tuple(argument.shape), str(argument.dtype)), argument)


def choose(
    call: Any,
    operands: tuple[Operand, ...],
    outputs: tuple[TensorInfo, ...],
    symbol: str,
    selection: Selection = ANY_CPU,
) -> _Step:
    """The step of a call: the kernel that is picked or, where none fits, C from TVM's own lowering."""
    operator = operator_of(call)
    if isinstance(operator, Control):
        attrs = operator.attrs_of(call)
        made = control_step(attrs, operands, outputs, symbol, partial(_lowered, selection))
        return _Step(attrs.kind, made.kernel, f"C of {attrs.kind}", 0, made.definition, inner=made.inner)
    if operator is not None:
        return _integer_step(operator, call, operands, outputs, symbol, selection)
    op = call.op.name.removeprefix("relax.")
    kernels = layout_kernels(call, operands, outputs)
    if kernels:
        rows = by_rows(call, operands, outputs[0])
        applied = None if rows is None or kernels[0].view else Applied(*rows)
        return _Step(op, check_parameters(kernels[0]), describe(kernels[0]), applied=applied)
    return _fallback_step(op, call, operands, symbol, macs_of(call, Site(None, operands, outputs)))


def _lowered(selection: Selection, model: ImportedModel, name: str) -> Program:
    """The program of a function that control flow runs: the CPU computes it."""
    simple = replace(model, module=simplify(model.module))
    return lower(partition(simple, (), Wishes()), name, selection=selection)


def _kernel_of(
    selection: Selection, call: Any, operands: tuple[Operand, ...], symbol: str
) -> tuple[Kernel, Definition | None]:
    step = choose(call, operands, infos_of(call), symbol, selection)
    return step.kernel, step.definition


def _integer_step(
    operator: IntegerOperator[Any],
    call: Any,
    operands: tuple[Operand, ...],
    outputs: tuple[TensorInfo, ...],
    symbol: str,
    selection: Selection,
) -> _Step:
    site = Site(operator.attrs_of(call), operands, outputs)
    macs = operator.macs(site)
    found = picked(operator, site, Work(macs, site.output.elements), selection)
    if found is None:
        return _fallback_step(operator.name, call, operands, symbol, macs)
    kernel, choice = check_parameters(found[0]), found[1]
    why = f"; {choice.why}" if choice.why else ""
    applied = Applied(operator, site)
    return _Step(operator.name, kernel, describe(kernel) + why, macs, choice=choice, applied=applied)


def _fallback_step(op: str, call: Any, operands: tuple[Operand, ...], symbol: str, macs: int = 0) -> _Step:
    kernel, definition = fallback_layer(call, operands, symbol)
    return _Step(
        op, kernel, f"no CPU kernel for {short_name(call.op.name)}: C from its TIR (TIR fallback)", macs, definition
    )


def describe(kernel: Kernel) -> str:
    if kernel.view:
        return "no work: the same bytes under another shape"
    functions = list(dict.fromkeys(call.function for call in kernel.calls))
    return f"CPU kernel {', '.join(functions)} ({kernel.family})"
