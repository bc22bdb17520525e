"""The walk over a TFLite graph, its subgraphs, and what is left to TVM."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import ADVICE, NO_CONVERTER, SHAPE_OF_DATA, Budget, need_elements, need_size, need_type
from uaccel.frontend.converters import Walk, always, as_list, by_tvm, parameters_of
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
    need_constant,
)
from uaccel.frontend.tflite.quantized import rescaled
from uaccel.frontend.tflite.reader import DTYPES, Operator, Tensor, TfliteGraph, read, with_input_shapes
from uaccel.frontend.tflite.state import VARIABLE_OPERATORS, find_variables
from uaccel.model import (
    ImportedModel,
    ModelFile,
    Origin,
    Quantisation,
    Shape,
    Signature,
    StateSpec,
    TensorInfo,
    TensorSpec,
    c_identifier,
    layer_name,
    unique_names,
)
from uaccel.ops import exact
from uaccel.ops.control import If, Kind, While, control_attrs
from uaccel.ops.operator import get, has_static_shape, info_of
from uaccel.ops.pool import UnsignedAveragePool2d
from uaccel.tvm_api import is_constant, relax
from uaccel.tvm_api.converters import TfliteConverter

# TVM's own TFLite converter, one operator at a time: float operators, and what it lowers in float.

OR_INT8 = ", or quantise the model to int8"
VELA = "CUSTOM:ethos-u"
USE_THE_ORIGINAL = "Vela compiled this file for an Ethos-U; give the .tflite file that Vela was given"


def convert(graph: TfliteGraph, operator: Operator, context: Context, block: Any) -> list[Expr]:
    """The outputs' expressions; ModelError with TVM's own words where it refuses."""
    converter = TfliteConverter(graph.file, graph.subgraph, block.builder)
    need(operator.name != VELA, USE_THE_ORIGINAL)
    advice = ADVICE if any(tensor.quantisation is not None for tensor in graph.tensors) else ADVICE + OR_INT8
    need(converter.knows(operator.name), f"{NO_CONVERTER}; {advice}")
    for tensor in operator.inputs:
        if tensor is not None and (tensor.data is None or tensor.bits < 8 or tensor.index in context.exprs):
            converter.define(tensor.index, context.expr(tensor))
    with by_tvm(advice):
        return converter.convert(operator.name, operator.table, len(operator.outputs))


# Operators on uint8, as TensorFlow quantised before 2019: int8 with all numbers 128 less, exactly what LiteRT gives.
#
# Weights lose their zero point here. Where int8 does not hold what is left, they are int16.

WEIGHTED: Final = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
# They give on int8 what they give on uint8, 128 less.
COMPUTING: Final = (*WEIGHTED, "ADD", "MUL", "MAX_POOL_2D", "SOFTMAX", "RELU", "RELU6")
# So do these, but on uint8 as well: they follow what they are given.
MOVING: Final = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "PAD", "CONCATENATION")
MIDDLE: Final = 128
LARGEST: Final = 127  # Weight of int8, from its zero point.


def is_legacy(context: Context, operator: Operator) -> bool:
    """Whether it becomes int8, or is a mean of windows. A concatenation of other scales rounds in a way of its own."""
    tensors = [tensor for tensor in (*operator.inputs, *operator.outputs) if tensor and tensor.info.dtype == "uint8"]
    grids = {(tensor.quantisation.scales, tensor.quantisation.zero_points) for tensor in tensors if tensor.quantisation}
    whole = all(tensor.quantisation and not tensor.quantisation.per_channel for tensor in tensors)
    within = any(~tensor.index in context.exprs for tensor in tensors)
    known = operator.name in (*COMPUTING, "AVERAGE_POOL_2D") or (operator.name in MOVING and within)
    alike = operator.name != "CONCATENATION" or len(grids) == 1
    return known and whole and alike and bool(operator.outputs) and operator.outputs[0].info.dtype == "uint8"


def signed(operator: Operator) -> Operator:
    """The same on int8."""
    inputs = [tensor and _signed(tensor) for tensor in operator.inputs]
    if operator.name in WEIGHTED:
        inputs[1] = _weights(operator.required_input(1))
    return replace(operator, inputs=tuple(inputs), outputs=tuple(map(_signed, operator.outputs)))


def was_unsigned(tensor: Tensor) -> bool:
    return tensor.index < 0


def _signed(tensor: Tensor) -> Tensor:
    """Its number is below 0, and no other tensor's."""
    if tensor.info.dtype != "uint8":
        return tensor
    grid = tensor.required_quantisation
    points = tuple(point - MIDDLE for point in grid.zero_points)
    return replace(
        tensor,
        index=~tensor.index,
        info=TensorInfo(tensor.info.shape, "int8"),
        quantisation=Quantisation(grid.scales, points, grid.axis),
        data=None if tensor.data is None else (tensor.data ^ MIDDLE).view(np.int8),
    )


def _weights(tensor: Tensor) -> Tensor:
    need(tensor.info.dtype == "uint8", f'weights "{tensor.name}" are {tensor.info.dtype}, wanted uint8')
    values = need_constant(tensor, "weights").astype(np.int16) - np.int16(tensor.zero_point)
    fits = int(np.abs(values).max(initial=0)) <= LARGEST
    dtype, bits = ("int8", 8) if fits else ("int16", WIDE_WEIGHTS)
    grid = Quantisation(tensor.required_quantisation.scales, (0,), 0)
    info = TensorInfo(tensor.info.shape, dtype)
    return replace(tensor, index=~tensor.index, info=info, quantisation=grid, data=values.astype(dtype), bits=bits)


def average_pool(context: Context, operator: Operator) -> Expr:
    """Halves are rounded up, which of int8 is another rule: it stays uint8."""
    return get(UnsignedAveragePool2d)(context.expr(operator.required_input(0)), attrs=pool_attrs(operator))


# A TFLite file becomes a Relax module of integer operators, with TVM's converter for everything that is float.

FLOAT_NOTE = "its quantised form has no exact integer operator here and is computed in float"


def import_tflite(path: Path, input_shapes: Mapping[str, Shape]) -> ImportedModel:
    """Read, check and convert."""
    budget = Budget(path)
    graph, data = read(path, budget)
    digest = hashlib.sha256(data).hexdigest()
    if input_shapes:
        graph, data = with_input_shapes(graph, data, str(path), input_shapes, budget)
    _check_tensors(graph, path)
    walk = _Import(path=path, budget=budget, graph=graph, context=Context(budget))
    module = walk.module(walk.parameters(), graph.operators)
    return ImportedModel(
        name=path.stem,
        source_format="tflite",
        digest=digest,
        module=module,
        signature=Signature(_specs(graph.inputs), _specs(graph.outputs)),
        tensors=walk.tensors,
        origins=walk.origins,
        warnings=tuple(walk.warnings),
        file=ModelFile(path.suffix.lower(), data),
        state=_state_specs(walk.context),
    )


def _specs(tensors: tuple[Tensor, ...]) -> tuple[TensorSpec, ...]:
    """With names that differ, even where a file lists one tensor twice: reports and files go by them."""
    names = unique_names(tensor.name for tensor in tensors)
    return tuple(replace(tensor.spec, name=name) for tensor, name in zip(tensors, names, strict=True))


def _state_specs(context: Context) -> tuple[StateSpec, ...]:
    """In the order of the parameters, with names that differ."""
    variables = list(context.variables.values())
    names = unique_names(variable.spec.name for variable in variables)
    return tuple(StateSpec(replace(v.spec, name=name), v.initial) for v, name in zip(variables, names, strict=True))


def _check_tensors(graph: TfliteGraph, path: Path) -> None:
    for tensor in graph.inputs:
        need_type(tensor.info.dtype, DTYPES.values(), f'{path}: input "{tensor.name}"')
        if any(extent < 0 for extent in tensor.signature[1:]):
            _refuse_dynamic(path, tensor, tensor.signature)
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


def _refuse_dynamic(path: Path, tensor: Tensor, shape: Shape) -> None:
    """A free batch (axis 0) is taken at the size that the file gives, as TFLite Micro does; others are not."""
    extents = ",".join("?" if extent < 0 else str(extent) for extent in shape)
    raise ModelError(
        f'{path}: tensor "{tensor.name}" has the dynamic shape [{extents}]; firmware needs every extent fixed: '
        "set the input shape before converting the model to TFLite"
    )


@dataclass(kw_only=True)
class _Import(Walk[Operator]):
    graph: TfliteGraph
    context: Context

    def __post_init__(self) -> None:
        self.context.subgraph = self._subgraph

    def _subgraph(self, number: int) -> Any:
        """The module of another subgraph, which has no variables; its problems are told with its number."""
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
        """The inputs, and behind them what lasts from one inference to the next."""
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
            self.context.exprs[tensor.index] = var

    def _legacy(self, operator: Operator) -> None:
        """Bind what it gives as int8, and as uint8 for whoever needs that."""
        (output,) = operator.outputs
        if operator.name == "AVERAGE_POOL_2D":
            self.context.exprs[output.index] = self._bound(operator, output, average_pool(self.context, operator))
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
        again = rescaled(self.context, within, output, *exact.limits("uint8"))
        self.context.exprs[output.index] = self._bound(operator, output, again, "unsigned")

    def _each(self, operator: Operator, call: Expr) -> list[Expr]:
        """The fields of what a call gives."""
        whole = self.block.emit(call, layer_name(operator.name, operator.index))
        self.origins[whole.name] = Origin(operator.index, operator.name, operator.outputs[0].name)
        return [relax.TupleGetItem(whole, number) for number in range(len(operator.outputs))]

    def _bound(self, operator: Operator, tensor: Tensor, expr: Expr, part: str = "") -> Any:
        layer = layer_name(operator.name, operator.index)
        name = f"{layer}_{part}" if part else layer
        return self.bind(expr, name, Origin(operator.index, operator.name, tensor.name), tensor.spec)

    def _update(self, operator: Operator, update: Update) -> None:
        """Bind the call, its outputs, and what it makes of variables."""
        outputs = operator.outputs
        keys = [each.index if isinstance(each, Tensor) else each for each in update.variables]
        if outputs[0].index in keys:
            self.context.variables[outputs[0].index].expr = self._bound(operator, outputs[0], update.call)
            return
        layer = layer_name(operator.name, operator.index)
        whole = self.block.emit(update.call, layer)
        self.origins[whole.name] = Origin(operator.index, operator.name, outputs[0].name)
        for number, tensor in enumerate(outputs):
            var = self._part(whole, number, f"output_{number}" if number else "output", tensor.spec)
            _check_declared(tensor, var)
            self.context.exprs[tensor.index] = var
        for number, key in enumerate(keys, len(outputs)):
            variable = self.context.variables[key]
            variable.expr = self._part(whole, number, c_identifier(variable.spec.name), variable.spec)
            same = info_of(variable.expr) == variable.spec.info
            need(same, f'"{variable.spec.name}" is {variable.spec.info}, and becomes {info_of(variable.expr)}')

    def _part(self, whole: Any, number: int, name: str, spec: TensorSpec) -> Any:
        """A field of what a call gives, bound."""
        var = self.block.emit(relax.TupleGetItem(whole, number), f"{whole.name}_{name}")
        self.tensors[var.name] = spec
        self.origins[var.name] = self.origins[whole.name]
        return var

    def _result(self, operator: Operator) -> Any:
        converter = CONVERTERS.find(operator.name, operator)
        if converter is not None:
            return converter(self.context, operator)
        given = [tensor for tensor in operator.inputs if tensor is not None]
        for tensor in given:
            if tensor.index in self.context.variables:
                raise ModelError(f'its variable tensor "{tensor.name}" can be kept by int8 and int16 operators alone')
        if any(_is_quantised(tensor) for tensor in (*given, *operator.outputs)):
            self.warnings.append(f"{self.where(operator)}: {FLOAT_NOTE}")
        return convert(self.graph, operator, self.context, self.block)


def _check_operator(operator: Operator) -> None:
    """What every converter relies on."""
    need(len(operator.outputs) > 0, "it has no outputs; nothing to compute")
    for tensor in (*operator.inputs, *operator.outputs):
        if tensor is not None:
            need_type(tensor.info.dtype, DTYPES.values(), f'tensor "{tensor.name}"')


def _check_declared(tensor: Tensor, var: Expr) -> None:
    """The file's word on an output is what callers allocate, so it must be what the operator computes."""
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
    return _control(context, operator, Kind.IF, numbers)


@converts("WHILE", when=always)
def while_(context: Context, operator: Operator) -> Expr | Several:
    options = operator.options
    numbers = (options.CondSubgraphIndex(), options.BodySubgraphIndex())
    return _control(context, operator, Kind.WHILE, numbers)


def _control(context: Context, operator: Operator, kind: Kind, numbers: tuple[int, int]) -> Expr | Several:
    need(len(context.inside) < DEEPEST, f"subgraphs lie more than {DEEPEST} deep in each other")
    for number in numbers:
        need(number not in context.inside, f"its subgraph {number} runs itself")
    tensors = [context.expr(operator.required_input(i)) for i in range(len(operator.inputs))]
    need(len(tensors) > 0, "it has no inputs; wanted a condition, or what its loop changes")
    call = get(If if kind is Kind.IF else While)(*tensors, attrs=control_attrs(kind, *map(context.subgraph, numbers)))
    return call if len(operator.outputs) == 1 else Several(call)
