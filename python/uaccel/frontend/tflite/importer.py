"""Imports TFLite files: walks the graph and its subgraphs with uaccel's converters, or else TVM's.

Operators on uint8 become int8 here; IF and WHILE import other subgraphs of the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel import model
from uaccel.errors import ModelError, need
from uaccel.frontend.checks import ADVICE, NO_CONVERTER, SHAPE_OF_DATA, Budget, need_elements, need_size, need_type
from uaccel.frontend.converters import Walk, always, as_list, by_tvm, parameters_of
from uaccel.frontend.tflite.checks import need_constant
from uaccel.frontend.tflite.conv import pool_attrs
from uaccel.frontend.tflite.converter import (
    CONVERTERS,
    WIDE_WEIGHTS,
    Context,
    Expr,
    Several,
    Update,
    constant_value,
    converts,
)
from uaccel.frontend.tflite.floats import IN_FLOAT
from uaccel.frontend.tflite.metadata import described
from uaccel.frontend.tflite.quantized import rescaled
from uaccel.frontend.tflite.reader import DTYPES, Operator, Tensor, TfliteGraph, read
from uaccel.frontend.tflite.shapes import with_input_shapes
from uaccel.frontend.tflite.state import VARIABLE_OPERATORS, find_variables
from uaccel.ops import exact
from uaccel.ops.binary import KINDS
from uaccel.ops.control import IF, WHILE, If, While, control_attrs
from uaccel.ops.operator import constant, get, has_static_shape, info_of, infos_of
from uaccel.ops.pool import UnsignedAveragePool2d
from uaccel.tvm_api import is_constant, relax
from uaccel.tvm_api.converters import TfliteConverter

# TVM's own TFLite converter, called for one operator at a time, for operators without options.
#
# It is what a run is verified with as well, so what it misreads nothing would show: it may take only what rows of
# ``tests/support/models/tflite_campaign.py`` hold against the runtimes.

HELD: Final = (*(f"UNSORTED_SEGMENT_{name}" for name in ("MAX", "MIN", "PROD", "SUM")), "SEGMENT_SUM", "RANGE")
DATA_SHAPED: Final = ("WHERE", "UNIQUE")

OR_INT8 = ", or quantise the model to int8"
VELA = "CUSTOM:ethos-u"
USE_THE_ORIGINAL = "Vela compiled this file for an Ethos-U; give the .tflite file that Vela was given"
CUSTOM = "CUSTOM:"
NO_CUSTOM = (
    "the file names this custom operator and does not say what it computes; convert the model without custom operators"
)


def convert(graph: TfliteGraph, operator: Operator, context: Context, block: Any) -> list[Expr]:
    """Converts an operator by TVM; a refusal is a ModelError with TVM's words."""
    converter = TfliteConverter(graph.file, graph.subgraph, block.builder)
    need(operator.name != VELA, USE_THE_ORIGINAL)
    advice = ADVICE if any(tensor.quantisation is not None for tensor in graph.tensors) else ADVICE + OR_INT8
    need(operator.name not in DATA_SHAPED, f"{SHAPE_OF_DATA}; {ADVICE}")
    need(not operator.name.startswith(CUSTOM), NO_CUSTOM)
    need(operator.name in HELD and converter.knows(operator.name), f"{NO_CONVERTER}; {advice}")
    for tensor in operator.inputs:
        need(tensor is None or tensor.info.dtype != "bool", "no runtime computes it of bool; give it numbers")
        if tensor is not None and (tensor.data is None or tensor.bits < 8 or tensor.index in context.exprs):
            converter.define(tensor.index, context.expr(tensor))
    with by_tvm(advice):
        return converter.convert(operator.name, operator.table, len(operator.outputs))


# Operators on uint8, as TensorFlow quantised before 2019, become int8 with all stored numbers and zero points 128 less.
#
# The differences from zero points are the same, so the results are LiteRT's, 128 less. Weights lose their zero point
# here, since convolutions have none for weights; where int8 does not hold what is left, they are int16.

WEIGHTED: Final = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
# On int8 these give what they give on uint8, 128 less, and comparisons of scales below 1 give the same.
COMPUTING: Final = (
    *WEIGHTED,
    *("ADD", "SUB", "MUL", "DIV", "MAX_POOL_2D", "MEAN", "SUM", "SOFTMAX", "RELU", "RELU6", "LEAKY_RELU"),
)
# So do these, which have converters for uint8 as well: they become int8 if an input already is.
MOVING: Final = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "PAD", "CONCATENATION")
MIDDLE: Final = 128
LARGEST: Final = 127  # The largest weight, its zero point taken off, that stays int8.


def is_legacy(context: Context, operator: Operator) -> bool:
    """Whether an operator on uint8 is handled here. A concatenation that rescales is not: it rounds differently."""
    tensors = [tensor for tensor in (*operator.inputs, *operator.outputs) if tensor and tensor.info.dtype == "uint8"]
    grids = {(tensor.quantisation.scales, tensor.quantisation.zero_points) for tensor in tensors if tensor.quantisation}
    whole = all(tensor.quantisation and not tensor.quantisation.per_channel for tensor in tensors)
    within = any(~tensor.index in context.exprs for tensor in tensors)
    compares = operator.name in KINDS and all(max(scales, default=1.0) < 1 for scales, _ in grids)
    known = compares or operator.name in (*COMPUTING, "AVERAGE_POOL_2D") or (operator.name in MOVING and within)
    alike = operator.name != "CONCATENATION" or len(grids) == 1
    mixed = any(tensor and tensor.info.dtype in ("int8", "int16") for tensor in operator.inputs)
    gives = {tensor.info.dtype for tensor in operator.outputs} == {"bool" if compares else "uint8"}
    return known and bool(tensors) and whole and alike and not mixed and gives


def signed(operator: Operator) -> Operator:
    """The same operator on int8."""
    inputs = [tensor and _signed(tensor) for tensor in operator.inputs]
    if operator.name in WEIGHTED:
        inputs[1] = _weights(operator.required_input(1))
    return replace(operator, inputs=tuple(inputs), outputs=tuple(map(_signed, operator.outputs)))


def was_unsigned(tensor: Tensor) -> bool:
    """Whether the tensor is the int8 form of a uint8 tensor: such have negative indices (see ``_signed``)."""
    return tensor.index < 0


def _signed(tensor: Tensor) -> Tensor:
    """The int8 form of a uint8 tensor; its index is ~index, which is negative and so no other tensor's."""
    if tensor.info.dtype != "uint8":
        return tensor
    grid = tensor.required_quantisation
    points = tuple(point - MIDDLE for point in grid.zero_points)
    return replace(
        tensor,
        index=~tensor.index,
        info=model.TensorInfo(tensor.info.shape, "int8"),
        quantisation=model.Quantisation(grid.scales, points, grid.axis),
        data=None if tensor.data is None else (tensor.data ^ MIDDLE).view(np.int8),
    )


def _weights(tensor: Tensor) -> Tensor:
    need(tensor.info.dtype == "uint8", f'weights "{tensor.name}" are {tensor.info.dtype}, wanted uint8')
    values = need_constant(tensor, "weights").astype(np.int16) - np.int16(tensor.zero_point)
    fits = int(np.abs(values).max(initial=0)) <= LARGEST
    dtype, bits = ("int8", 8) if fits else ("int16", WIDE_WEIGHTS)
    grid = model.Quantisation(tensor.required_quantisation.scales, (0,), 0)
    info = model.TensorInfo(tensor.info.shape, dtype)
    return replace(tensor, index=~tensor.index, info=info, quantisation=grid, data=values.astype(dtype), bits=bits)


def average_pool(context: Context, operator: Operator) -> Expr:
    """Converts a mean of windows, which stays uint8: the reference rounds halves up, on int8 away from zero."""
    return get(UnsignedAveragePool2d)(context.expr(operator.required_input(0)), attrs=pool_attrs(operator))


# The import: a TFLite file becomes a Relax module of integer operators, and of float operators by TVM.

NOT_EXACT = "its quantised form has no integer operator here"
FLOAT_NOTE = "its quantised form has no exact integer operator here and is computed in float"


def import_tflite(path: Path, input_shapes: Mapping[str, model.Shape]) -> model.ImportedModel:
    """Reads, checks and converts a TFLite file."""
    budget = Budget(path)
    graph, data = read(path, budget)
    digest = hashlib.sha256(data).hexdigest()
    graph, data, numbers = with_input_shapes(graph, data, path, input_shapes, budget)
    _check_tensors(graph, path)
    walk = _Import(path=path, budget=budget, graph=graph, context=Context(budget, numbers=numbers))
    module = walk.module(walk.parameters(), graph.operators)
    told = described(graph, data, _specs(graph.inputs), _specs(graph.outputs))
    return model.ImportedModel(
        name=path.stem,
        source_format="tflite",
        digest=digest,
        module=module,
        signature=model.Signature(told.inputs, told.outputs),
        tensors=walk.tensors,
        origins=walk.origins,
        warnings=(*walk.warnings, *told.warnings),
        file=model.ModelFile(path.suffix.lower(), data),
        state=_state_specs(walk.context),
    )


def _specs(tensors: tuple[Tensor, ...]) -> tuple[model.TensorSpec, ...]:
    """Inputs or outputs with unique names, even where a file lists a tensor twice: files are named after them."""
    names = model.unique_names(tensor.name for tensor in tensors)
    return tuple(replace(tensor.spec, name=name) for tensor, name in zip(tensors, names, strict=True))


def _state_specs(context: Context) -> tuple[model.StateSpec, ...]:
    """The states in the order of the parameters, with unique names."""
    variables = list(context.variables.values())
    names = model.unique_names(variable.spec.name for variable in variables)
    return tuple(
        model.StateSpec(replace(v.spec, name=name), v.initial) for v, name in zip(variables, names, strict=True)
    )


def _check_tensors(graph: TfliteGraph, path: Path) -> None:
    for tensor in graph.inputs:
        need_type(tensor.info.dtype, DTYPES.values(), f'{path}: input "{tensor.name}"')
    values = {tensor.index for tensor in graph.inputs}
    values |= {tensor.index for operator in graph.operators for tensor in operator.outputs}
    for tensor in graph.tensors:
        what = f'{path}: tensor "{tensor.name}"'
        if any(extent < 0 for extent in tensor.info.shape):
            _refuse_dynamic(path, tensor, tensor.info.shape)
        if tensor.index in values:
            need_elements(tensor.info, what)
        if tensor.info.dtype in DTYPES.values():
            need_size(tensor.info, what)


def _refuse_dynamic(path: Path, tensor: Tensor, shape: model.Shape) -> None:
    """Refuses a free extent; only a free batch (axis 0) is read, with the file's size, as TFLite Micro does."""
    extents = ",".join("?" if extent < 0 else str(extent) for extent in shape)
    raise ModelError(
        f'{path}: tensor "{tensor.name}" has the dynamic shape [{extents}]; firmware needs every extent fixed: '
        "set the input shape before converting the model to TFLite"
    )


@dataclass(kw_only=True)
class _Import(Walk[Operator]):
    """The walk over one subgraph."""

    graph: TfliteGraph
    context: Context

    def __post_init__(self) -> None:
        self.context.subgraph = self._subgraph

    def _subgraph(self, number: int) -> Any:
        """Imports another subgraph, which may have no variables; its problems are reported with its number."""
        graph = self.graph.other(number)
        inside = Context(self.context.budget, inside=(*self.context.inside, number))
        walk = _Import(path=self.path, budget=self.budget, graph=graph, context=inside)
        _check_tensors(graph, self.path)
        parameters = walk.parameters()
        need(not inside.variables, f"its subgraph {number} has variables, which only the main graph can have")
        need(len(graph.outputs) > 0, f"its subgraph {number} has no outputs")
        try:
            module = walk.module(parameters, graph.operators)
        except ModelError as error:
            problems = [f"in subgraph {number}, {problem}" for problem in walk.problems]
            raise ModelError("; ".join(problems) or str(error)) from error
        self.warnings += [f"in subgraph {number}, {warning}" for warning in walk.warnings]
        return module

    def parameters(self) -> list[Any]:
        """Makes the parameters of ``main``: the inputs, then the variables."""
        graph, context = self.graph, self.context
        context.variables = find_variables(graph, context.budget)
        specs = [tensor.spec for tensor in graph.inputs]
        specs += [variable.spec for variable in context.variables.values()]
        parameters = parameters_of(specs)
        self.tensors.update({var.name: spec for var, spec in zip(parameters, specs, strict=True)})
        context.exprs.update(zip((tensor.index for tensor in graph.inputs), parameters, strict=False))
        for variable, var in zip(context.variables.values(), parameters[len(graph.inputs) :], strict=True):
            variable.expr = var
        return parameters

    def begin(self) -> None:
        self.context.emit = self.block.emit

    def results(self) -> list[Any]:
        after = [variable.expr for variable in self.context.variables.values()]
        return [*(self.context.expr(tensor) for tensor in self.graph.outputs), *after]

    def where(self, operator: Operator) -> str:
        output = operator.outputs[0].name if operator.outputs else "no output"
        return f'operator {operator.index} {operator.name} ("{output}")'

    def stand_in(self, operator: Operator) -> None:
        for tensor in operator.outputs:
            dtype = tensor.info.dtype if tensor.info.dtype in DTYPES.values() else "int8"
            self.context.exprs[tensor.index] = self.block.stand_in(tensor.info.shape, dtype)

    def convert(self, operator: Operator) -> None:
        if operator.name in VARIABLE_OPERATORS:
            VARIABLE_OPERATORS[operator.name](self.context, self.graph, operator)
            return
        _check_operator(operator)
        if all(tensor is None or constant_value(self.context, tensor) is not None for tensor in operator.inputs):
            self.context.budget.bytes(sum(tensor.info.size for tensor in operator.outputs))
        if is_legacy(self.context, operator):
            self._legacy(operator)
            return
        result = self._result(operator)
        if isinstance(result, Update):
            self._update(operator, result)
            return
        exprs = self._each(operator, result.call) if isinstance(result, Several) else as_list(result)
        need(len(exprs) == len(operator.outputs), f"it has {len(operator.outputs)} outputs, wanted {len(exprs)}")
        bound = [
            expr if is_constant(expr) else self._bound(operator, tensor, expr, str(i) if len(exprs) > 1 else "")
            for i, (expr, tensor) in enumerate(zip(exprs, operator.outputs, strict=True))
        ]
        for var, tensor in zip(bound, operator.outputs, strict=True):
            _check_declared(tensor, var)
            number = self.context.numbers.get(tensor.index)
            self.context.exprs[tensor.index] = var if number is None else constant(number.astype(tensor.info.dtype))

    def _legacy(self, operator: Operator) -> None:
        """Converts an operator on uint8 in its int8 form, and binds its result in both types.

        Inputs that have no int8 form yet get one by subtracting 128. A form that nobody reads is dropped later.
        """
        (output,) = operator.outputs
        if operator.name == "AVERAGE_POOL_2D":
            var = self._bound(operator, output, average_pool(self.context, operator))
            _check_declared(output, var)
            self.context.exprs[output.index] = var
            return
        inner = signed(operator)
        for given, tensor in zip(operator.inputs, inner.inputs, strict=True):
            if given and tensor and tensor.data is None and tensor.index not in self.context.exprs:
                expr = rescaled(self.context, given, tensor, *exact.limits("int8"))
                self.context.exprs[tensor.index] = self.block.emit(expr, f"signed_{given.index}")
        (within,) = inner.outputs
        var = self._bound(inner, within, self._result(inner))
        _check_declared(within, var)
        self.context.exprs[within.index] = var
        if within is output:  # A comparison gives truths.
            return
        again = rescaled(self.context, within, output, *exact.limits("uint8"))
        self.context.exprs[output.index] = self._bound(operator, output, again, "unsigned")

    def _each(self, operator: Operator, call: Expr) -> list[Expr]:
        """Binds a call of several outputs and gives its fields."""
        whole = self.block.emit(call, model.layer_name(operator.name, operator.index))
        given = len(infos_of(whole))
        need(given == len(operator.outputs), f"it has {len(operator.outputs)} outputs, wanted {given}")
        self.origins[whole.name] = model.Origin(operator.index, operator.name, operator.outputs[0].name)
        return [relax.TupleGetItem(whole, number) for number in range(len(operator.outputs))]

    def _bound(self, operator: Operator, tensor: Tensor, expr: Expr, part: str = "") -> Any:
        layer = model.layer_name(operator.name, operator.index)
        name = f"{layer}_{part}" if part else layer
        return self.bind(expr, name, model.Origin(operator.index, operator.name, tensor.name), tensor.spec)

    def _update(self, operator: Operator, update: Update) -> None:
        """Binds a call that changes variables, with its outputs and the new values."""
        outputs = operator.outputs
        keys = [each.index if isinstance(each, Tensor) else each for each in update.variables]
        if outputs[0].index in keys:
            self.context.variables[outputs[0].index].expr = self._bound(operator, outputs[0], update.call)
            return
        layer = model.layer_name(operator.name, operator.index)
        whole = self.block.emit(update.call, layer)
        self.origins[whole.name] = model.Origin(operator.index, operator.name, outputs[0].name)
        for number, tensor in enumerate(outputs):
            var = self._part(whole, number, f"output_{number}" if number else "output", tensor.spec)
            _check_declared(tensor, var)
            self.context.exprs[tensor.index] = var
        for number, key in enumerate(keys, len(outputs)):
            variable = self.context.variables[key]
            variable.expr = self._part(whole, number, model.c_identifier(variable.spec.name), variable.spec)
            same = info_of(variable.expr) == variable.spec.info
            need(same, f'"{variable.spec.name}" is {variable.spec.info}, and becomes {info_of(variable.expr)}')

    def _part(self, whole: Any, number: int, name: str, spec: model.TensorSpec) -> Any:
        """Binds one field of a call's result."""
        var = self.block.emit(relax.TupleGetItem(whole, number), f"{whole.name}_{name}")
        self.tensors[var.name] = spec
        self.origins[var.name] = self.origins[whole.name]
        return var

    def _result(self, operator: Operator) -> Any:
        converter = CONVERTERS.find(operator.name, operator)
        if converter is not None:
            self.context.in_float = False
            result = converter(self.context, operator)
            if self.context.in_float:
                need(operator.name in IN_FLOAT, f"{NOT_EXACT}; {ADVICE}")
                self.warnings.append(f"{self.where(operator)}: {FLOAT_NOTE}")
            return result
        given = [tensor for tensor in operator.inputs if tensor is not None]
        for tensor in given:
            if tensor.index in self.context.variables:
                raise ModelError(f'its variable tensor "{tensor.name}" can be kept by int8 and int16 operators alone')
        if any(_is_quantised(tensor) for tensor in (*given, *operator.outputs)):
            self.warnings.append(f"{self.where(operator)}: {FLOAT_NOTE}")
        return convert(self.graph, operator, self.context, self.block)


def _check_operator(operator: Operator) -> None:
    """Checks what every converter relies on: outputs, and known types."""
    need(len(operator.outputs) > 0, "it has no outputs; nothing to compute")
    for tensor in (*operator.inputs, *operator.outputs):
        if tensor is not None:
            need_type(tensor.info.dtype, DTYPES.values(), f'tensor "{tensor.name}"')


def _check_declared(tensor: Tensor, var: Expr) -> None:
    """Refuses a result that differs from the output's declared type and shape, by which callers allocate memory."""
    need(has_static_shape(var), SHAPE_OF_DATA)
    computed = info_of(var)
    same = computed.dtype == tensor.info.dtype and computed.shape == tensor.info.shape
    need(same, f'the file declares "{tensor.name}" as {tensor.info}, the operator computes {computed}')


def _is_quantised(tensor: Tensor) -> bool:
    return tensor.quantisation is not None and tensor.info.dtype in ("int8", "uint8", "int16")


# IF and WHILE: operators that run other subgraphs of the file.

DEEPEST = 8  # Subgraphs within each other.


@converts("IF", when=always)
def if_(context: Context, operator: Operator) -> Expr | Several:
    options = operator.options
    numbers = (options.ThenSubgraphIndex(), options.ElseSubgraphIndex())
    return _control(context, operator, IF, numbers)


@converts("WHILE", when=always)
def while_(context: Context, operator: Operator) -> Expr | Several:
    options = operator.options
    numbers = (options.CondSubgraphIndex(), options.BodySubgraphIndex())
    return _control(context, operator, WHILE, numbers)


def _control(context: Context, operator: Operator, kind: str, numbers: tuple[int, int]) -> Expr | Several:
    need(len(context.inside) < DEEPEST, f"subgraphs lie more than {DEEPEST} deep in each other")
    for number in numbers:
        need(number not in context.inside, f"its subgraph {number} runs itself")
    tensors = [context.expr(operator.required_input(i)) for i in range(len(operator.inputs))]
    need(len(tensors) > 0, "it has no inputs; wanted a condition, or what its loop changes")
    call = get(If if kind == IF else While)(*tensors, attrs=control_attrs(kind, *map(context.subgraph, numbers)))
    return call if len(operator.outputs) == 1 else Several(call)
