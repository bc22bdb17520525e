"""A TFLite file becomes a Relax module of integer operators, with TVM's converter for everything that is float."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uaccel.errors import ModelError, need
from uaccel.frontend.budget import Budget
from uaccel.frontend.checks import SHAPE_OF_DATA, need_elements, need_size, need_type
from uaccel.frontend.tflite import fallback
from uaccel.frontend.tflite.batch import with_input_shapes
from uaccel.frontend.tflite.convert import CONVERTERS, Context, Expr, Several, Update
from uaccel.frontend.tflite.folding import known
from uaccel.frontend.tflite.legacy import average_pool, is_legacy, signed
from uaccel.frontend.tflite.quantize import rescaled
from uaccel.frontend.tflite.reader import DTYPES, Graph, Operator, Tensor, read
from uaccel.frontend.tflite.variables import VARIABLE_OPERATORS, find_variables
from uaccel.frontend.walk import Walk, as_list, parameters_of
from uaccel.model import (
    ImportedModel,
    ModelFile,
    Origin,
    Shape,
    Signature,
    StateSpec,
    TensorSpec,
    c_identifier,
    layer_name,
    unique_names,
)
from uaccel.ops import exact
from uaccel.ops.base import has_static_shape, info_of
from uaccel.tvm_api import is_constant, relax

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


def _check_tensors(graph: Graph, path: Path) -> None:
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
    graph: Graph
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
        if all(tensor is None or known(self.context, tensor) is not None for tensor in operator.inputs):
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
        return fallback.convert(self.graph, operator, self.context, self.block)


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
