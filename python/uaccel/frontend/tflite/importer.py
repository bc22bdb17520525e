"""A TFLite file becomes a Relax module of integer operators, with TVM's converter for everything that is float."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from uaccel.errors import ModelError
from uaccel.frontend.budget import Budget
from uaccel.frontend.tflite import (
    activation,
    arg_extreme,
    batch_matmul,
    conv,
    elementwise,
    fallback,
    fully_connected,
    gather,
    join,
    l2_normalize,
    log_softmax,
    lstm,
    pad,
    pool,
    quantize,
    rearrange,
    reduce,
    repeat,
    resize,
    shapes,
    slices,
    softmax,
    split,
    svdf,
    transpose,
    transpose_conv2d,
)
from uaccel.frontend.tflite.batch import with_input_shapes
from uaccel.frontend.tflite.convert import CONVERTERS, Context, Expr, Update, need
from uaccel.frontend.tflite.folding import known
from uaccel.frontend.tflite.reader import DTYPES, Graph, Operator, Tensor, read
from uaccel.frontend.tflite.variables import VARIABLE_OPERATORS, find_variables
from uaccel.model import (
    ImportedModel,
    ModelFile,
    Origin,
    Shape,
    Signature,
    StateSpec,
    TensorSpec,
    c_identifier,
    unique_names,
)
from uaccel.ops.base import info_of
from uaccel.tvm_api import ModuleBuilder, is_constant, main_bindings, relax

CONVERTER_MODULES = (
    activation,
    arg_extreme,
    batch_matmul,
    conv,
    elementwise,
    fully_connected,
    gather,
    join,
    l2_normalize,
    log_softmax,
    lstm,
    pad,
    pool,
    quantize,
    rearrange,
    reduce,
    repeat,
    resize,
    shapes,
    slices,
    softmax,
    split,
    svdf,
    transpose,
    transpose_conv2d,
)
LARGEST_TENSOR = 1 << 31  # kernels count in 32 bits
FLOAT_NOTE = "its quantised form has no exact integer operator here and is computed in float"


@dataclass
class _State:
    context: Context
    tensors: dict[str, TensorSpec] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def import_tflite(path: Path, input_shapes: Mapping[str, Shape] | None = None) -> ImportedModel:
    """Read, check and convert; every layer that cannot be converted is named in one error."""
    budget = Budget(path)
    graph, data = read(path, budget)
    digest = hashlib.sha256(data).hexdigest()
    if input_shapes:
        graph, data = with_input_shapes(graph, data, str(path), input_shapes, budget)
    _check_tensors(graph, path)
    state = _State(Context(budget))
    module = _convert(graph, state)
    if state.problems:
        listing = "; ".join(state.problems)
        raise ModelError(f"cannot import {path}: {len(state.problems)} unsupported: {listing}")
    return ImportedModel(
        name=path.stem,
        source_format="tflite",
        digest=digest,
        module=module,
        signature=Signature(_specs(graph.inputs), _specs(graph.outputs)),
        tensors=state.tensors,
        origins=state.origins,
        warnings=tuple(state.warnings),
        file=ModelFile(path.suffix.lower(), data),
        state=_state_specs(state.context),
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
        if tensor.info.dtype not in DTYPES.values():
            raise ModelError(f'{path}: input "{tensor.name}" has type {tensor.info.dtype}, which cannot be compiled')
        if any(extent < 0 for extent in tensor.signature[1:]):
            _refuse_dynamic(path, tensor, tensor.signature)
    values = {tensor.index for tensor in graph.inputs}
    values |= {tensor.index for operator in graph.operators for tensor in operator.outputs}
    for tensor in graph.tensors:
        if any(extent < 0 for extent in tensor.info.shape):
            _refuse_dynamic(path, tensor, tensor.info.shape)
        if tensor.info.elements == 0 and tensor.index in values:
            raise ModelError(f'{path}: tensor "{tensor.name}" ({tensor.info}) holds no elements; nothing to compute')
        if tensor.info.dtype in DTYPES.values() and tensor.info.size >= LARGEST_TENSOR:
            raise ModelError(
                f'{path}: tensor "{tensor.name}" ({tensor.info}) has {tensor.info.size} bytes; '
                f"at most {LARGEST_TENSOR - 1} can be compiled"
            )


def _refuse_dynamic(path: Path, tensor: Tensor, shape: Shape) -> None:
    """A free batch (axis 0) is taken at the size that the file gives, as TFLite Micro does; others are not."""
    extents = ",".join("?" if extent < 0 else str(extent) for extent in shape)
    raise ModelError(
        f'{path}: tensor "{tensor.name}" has the dynamic shape [{extents}]; firmware needs every extent fixed: '
        "set the input shape before converting the model to TFLite"
    )


def _convert(graph: Graph, state: _State) -> Any:
    builder = ModuleBuilder()
    with builder.function(_parameters(graph, state)) as block:
        for operator in graph.operators:
            state.context.budget.time()
            _operator(graph, operator, state, block)
        if state.problems:
            block.finish(relax.Tuple([]))
        else:
            results = [state.context.expr(tensor) for tensor in graph.outputs]
            results += [variable.expr for variable in state.context.variables.values()]
            block.finish(results[0] if len(results) == 1 else relax.Tuple(results))
    _attribute_intermediates(builder.module, state)
    return builder.module


def _parameters(graph: Graph, state: _State) -> list[Any]:
    """The inputs, and behind them what lasts from one inference to the next."""
    context = state.context
    context.variables = find_variables(graph, context.budget)
    specs = [tensor.spec for tensor in graph.inputs]
    specs += [variable.spec for variable in context.variables.values()]
    parameters = []
    for name, spec in zip(unique_names(c_identifier(spec.name) for spec in specs), specs, strict=True):
        parameters.append(relax.Var(name, relax.TensorType(spec.info.shape, spec.info.dtype)))
        state.tensors[name] = spec
    context.exprs.update(zip((tensor.index for tensor in graph.inputs), parameters, strict=False))
    for variable, var in zip(context.variables.values(), parameters[len(graph.inputs) :], strict=True):
        variable.expr = var
    return parameters


def _attribute_intermediates(module: Any, state: _State) -> None:
    """TVM's converter may need several bindings for one operator; they come before the one that is named."""
    origin = None
    for var, _ in reversed(main_bindings(module)[1]):
        origin = state.origins.get(var.name, origin)
        if origin is not None:
            state.origins.setdefault(var.name, origin)


def layer_name(operator: Operator) -> str:
    """conv_2d_3: the operator and its number in the file, as Netron counts them."""
    return f"{c_identifier(operator.name).lower()}_{operator.index}"


def _operator(graph: Graph, operator: Operator, state: _State, block: Any) -> None:
    """Convert one operator and bind its outputs; a failure is noted and the walk goes on."""
    name = layer_name(operator)
    try:
        if operator.name in VARIABLE_OPERATORS:
            VARIABLE_OPERATORS[operator.name](state.context, graph, operator)
            return
        _check_operator(operator)
        if all(tensor is None or known(state.context, tensor) is not None for tensor in operator.inputs):
            state.context.budget.bytes(sum(tensor.info.size for tensor in operator.outputs))
        exprs = _expressions(graph, operator, state, block)
        if isinstance(exprs, Update):
            _update(operator, exprs, state, block)
            return
        need(len(exprs) == len(operator.outputs), f"it has {len(operator.outputs)} outputs, wanted {len(exprs)}")
        bound = [
            expr if is_constant(expr) else block.emit(expr, f"{name}_{i}" if len(exprs) > 1 else name)
            for i, expr in enumerate(exprs)
        ]
        for var, tensor in zip(bound, operator.outputs, strict=True):
            _check_declared(tensor, var)
    except (ModelError, TypeError, ValueError) as error:  # TVM's type rules raise the latter two
        _note_problem(operator, str(error), state, block)
        return
    for var, tensor in zip(bound, operator.outputs, strict=True):
        state.context.exprs[tensor.index] = var
        if is_constant(var):
            continue
        state.tensors[var.name] = tensor.spec
        state.origins[var.name] = Origin(operator.index, operator.name, tensor.name)


def _update(operator: Operator, update: Update, state: _State, block: Any) -> None:
    """Bind the call, its output, and what it makes of variable tensors."""
    name = layer_name(operator)
    (output,) = operator.outputs
    whole = block.emit(update.call, name)
    origin = Origin(operator.index, operator.name, output.name)
    state.origins[whole.name] = origin
    for number, tensor in enumerate((output, *update.variables)):
        part = "output" if tensor is output else c_identifier(tensor.name)
        var = block.emit(relax.TupleGetItem(whole, number), f"{name}_{part}")
        _check_declared(tensor, var)
        state.tensors[var.name] = tensor.spec
        state.origins[var.name] = origin
        if tensor is output:
            state.context.exprs[tensor.index] = var
        else:
            state.context.variables[tensor.index].expr = var


def _check_operator(operator: Operator) -> None:
    """What every converter relies on."""
    need(len(operator.outputs) > 0, "it has no outputs; nothing to compute")
    for tensor in (*operator.inputs, *operator.outputs):
        if tensor is not None and tensor.info.dtype not in DTYPES.values():
            raise ModelError(f'tensor "{tensor.name}" has type {tensor.info.dtype}, which cannot be compiled')


def _check_declared(tensor: Tensor, var: Expr) -> None:
    """The file's word on an output is what callers allocate, so it must be what the operator computes."""
    computed = info_of(var)
    same = computed.dtype == tensor.info.dtype and computed.shape == tensor.info.shape
    need(same, f'the file declares "{tensor.name}" as {tensor.info}, the operator computes {computed}')


def _note_problem(operator: Operator, reason: str, state: _State, block: Any) -> None:
    """Remember it, and give the outputs stand-ins so that later operators are checked as well."""
    output = operator.outputs[0].name if operator.outputs else "no output"
    state.problems.append(f'operator {operator.index} {operator.name} ("{output}"): {reason}')
    for tensor in operator.outputs:
        dtype = tensor.info.dtype if tensor.info.dtype in DTYPES.values() else "int8"
        state.context.exprs[tensor.index] = block.stand_in(tensor.info.shape, dtype)


def _expressions(graph: Graph, operator: Operator, state: _State, block: Any) -> list[Expr] | Update:
    entry = CONVERTERS.get(operator.name)
    if entry is not None and entry[1](operator):
        result = entry[0](state.context, operator)
        if isinstance(result, Update):
            return result
        return list(result) if isinstance(result, (list, tuple)) else [result]
    for tensor in operator.inputs:
        if tensor is not None and tensor.index in state.context.variables:
            raise ModelError(f'its variable tensor "{tensor.name}" can be kept by int8 and int16 operators alone')
    if any(_is_quantised(tensor) for tensor in (*operator.inputs, *operator.outputs) if tensor is not None):
        state.warnings.append(f'operator {operator.index} {operator.name} ("{operator.outputs[0].name}"): {FLOAT_NOTE}')
    return fallback.convert(graph, operator, state.context, block)


def _is_quantised(tensor: Tensor) -> bool:
    return tensor.quantisation is not None and tensor.info.dtype in ("int8", "uint8", "int16")
