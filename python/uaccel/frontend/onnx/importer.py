"""An ONNX file becomes a Relax module of float operators, with quantize and dequantize where the model has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from uaccel.errors import ModelError
from uaccel.frontend.budget import Budget
from uaccel.frontend.onnx import (
    convolution,
    elementwise,
    functions,
    integer,
    normalise,
    qlinear,
    quantise,
    rearrange,
    resize,
)
from uaccel.frontend.onnx.convert import Context, Expr, expressions, need, static_info
from uaccel.frontend.onnx.folding import folded
from uaccel.frontend.onnx.graph import DTYPES, LARGEST_TENSOR, Graph, Node
from uaccel.frontend.onnx.reader import read
from uaccel.frontend.onnx.rules import checked_types
from uaccel.model import (
    ImportedModel,
    ModelFile,
    Origin,
    Shape,
    Signature,
    TensorInfo,
    TensorSpec,
    c_identifier,
    unique_names,
)
from uaccel.tvm_api import (
    TYPE_ERRORS,
    ModuleBuilder,
    is_constant,
    is_operator_call,
    is_shape_value,
    is_var,
    main_bindings,
    relax,
)

CONVERTER_MODULES = (
    convolution,
    elementwise,
    functions,
    integer,
    normalise,
    qlinear,
    quantise,
    rearrange,
    resize,
)
SAME_VALUES = (
    "DepthToSpace",
    "Expand",
    "Flatten",
    "Gather",
    "Identity",
    "MaxPool",
    "Reshape",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
)
"""Operators whose results are elements of their first input, so that integers keep their meaning."""
FOREIGN = ("relax.call_tir", "relax.call_dps_packed", "relax.call_pure_packed")


@dataclass
class _State:
    tensors: dict[str, TensorSpec] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    bound: set[Any] = field(default_factory=set)
    """The variables of tensors."""


def import_onnx(path: Path, input_shapes: Mapping[str, Shape]) -> ImportedModel:
    """Read, check and convert; every node that cannot be converted is named in one error."""
    budget = Budget(path)
    graph, file = read(path, input_shapes, budget)
    state = _State()
    module, context = _convert(graph, state, budget)
    if state.problems:
        listing = "; ".join(state.problems)
        raise ModelError(f"cannot import {path}: {len(state.problems)} unsupported: {listing}")
    return ImportedModel(
        name=path.stem,
        source_format="onnx",
        digest=file.digest,
        module=module,
        signature=_signature(graph, context),
        tensors=state.tensors,
        origins=state.origins,
        file=ModelFile(path.suffix.lower(), file.data),
    )


def _signature(graph: Graph, context: Context) -> Signature:
    inputs = tuple(replace(spec, quantisation=context.quantisation.get(spec.name)) for spec in graph.inputs)
    names = unique_names(graph.outputs)
    outputs = tuple(
        TensorSpec(name, context.info(tensor), context.quantisation.get(tensor))
        for name, tensor in zip(names, graph.outputs, strict=True)
    )
    return Signature(inputs, outputs)


def _convert(graph: Graph, state: _State, budget: Budget) -> tuple[Any, Context]:
    builder = ModuleBuilder()
    names = unique_names(c_identifier(spec.name) for spec in graph.inputs)
    exprs = {
        spec.name: relax.Var(name, relax.TensorType(spec.info.shape, spec.info.dtype))
        for name, spec in zip(names, graph.inputs, strict=True)
    }
    with builder.function(list(exprs.values())) as block:
        state.bound |= set(exprs.values())
        context = Context(graph, block, budget, dict(graph.constants), dict(exprs))
        for node in graph.nodes:
            budget.time()
            _node(node, context, state)
        if state.problems:
            block.finish(relax.Tuple([]))
        else:
            results = [context.expr(name) for name in graph.outputs]
            block.finish(results[0] if len(results) == 1 else relax.Tuple(results))
    for spec in graph.inputs:
        quantisation = context.quantisation.get(spec.name)
        state.tensors[exprs[spec.name].name] = replace(spec, quantisation=quantisation)
    _attribute_intermediates(builder.module, state)
    _refuse_foreign(builder.module, state)
    return builder.module, context


def _attribute_intermediates(module: Any, state: _State) -> None:
    """A converter may need several bindings for one node; they come before the one that is named."""
    origin = None
    for var, _ in reversed(main_bindings(module)[1]):
        origin = state.origins.get(var.name, origin)
        if origin is not None:
            state.origins.setdefault(var.name, origin)


def _refuse_foreign(module: Any, state: _State) -> None:
    """TVM's converters may make what only TVM's own run time executes: TIR of their own, and shapes as values."""
    for var, expr in main_bindings(module)[1]:
        origin = state.origins.get(var.name)
        foreign = is_shape_value(var) or (is_operator_call(expr) and expr.op.name in FOREIGN)
        if foreign and origin is not None:
            reason = "TVM's converter of it needs TVM's run time; rewrite the layer with supported operators"
            state.problems.append(f'node {origin.index} {origin.op} ("{origin.tensor}"): {reason}')


def _node(node: Node, context: Context, state: _State) -> None:
    """Convert one node and bind its outputs; a failure is noted and the walk goes on."""
    try:
        values = folded(context, node, checked_types(context, node))
        if values is not None:
            context.constants |= dict(zip([name for name in node.outputs if name], values, strict=True))
            return
        simple = quantise.moved(context, node)
        exprs = expressions(context, node) if simple is None else [simple]
        _keep_quantisation(context, node)
        wanted = [(name, expr) for name, expr in zip(node.outputs, exprs, strict=False) if name]
        need(len(exprs) >= len(node.outputs), f"it has {len(node.outputs)} outputs, wanted {len(exprs)}")
        for number, (name, expr) in enumerate(wanted):
            variable = f"{node.layer_name}_{number}" if len(wanted) > 1 else node.layer_name
            _bind(node, name, expr, variable, context, state)
    except (ModelError, *TYPE_ERRORS) as error:
        _note_problem(node, str(error), context, state)


def _keep_quantisation(context: Context, node: Node) -> None:
    known = context.quantisation.get(node.inputs[0]) if node.inputs else None
    if node.op in SAME_VALUES and known is not None and not known.per_channel:
        context.quantisation |= dict.fromkeys(node.outputs, known)


def _bind(node: Node, name: str, expr: Expr, variable: str, context: Context, state: _State) -> None:
    """Give an output its variable; what is a variable or a constant already needs none."""
    if is_constant(expr):
        _checked(context, name, expr)
        context.constants[name] = expr.value.numpy()
        return
    if is_var(expr) and expr in state.bound:
        context.exprs[name] = expr
        return
    var = context.block.emit(expr, variable)
    info = _checked(context, name, var)
    context.exprs[name] = var
    state.bound.add(var)
    state.tensors[var.name] = TensorSpec(name, info, context.quantisation.get(name))
    state.origins[var.name] = Origin(node.index, node.op, name)


def _checked(context: Context, name: str, var: Any) -> TensorInfo:
    """What is computed must be static, and be what ONNX's rules say."""
    info = static_info(var, name)
    need(info.dtype in DTYPES, f'"{name}" has type {info.dtype}, which cannot be compiled')
    need(info.elements > 0, f'"{name}" ({info}) holds no elements; nothing to compute')
    need(info.size < LARGEST_TENSOR, f'"{name}" ({info}) has {info.size} bytes, more than 2 GiB')
    inferred = context.graph.inferred.get(name, info)
    need(inferred == info, f'"{name}" is {inferred} by ONNX\'s rules, and its converter computes {info}')
    return info


def _note_problem(node: Node, reason: str, context: Context, state: _State) -> None:
    """Remember it, and give the outputs stand-ins so that later nodes are checked as well."""
    state.problems.append(f"{node.where}: {reason}")
    for name in node.outputs:
        info = context.graph.inferred.get(name, TensorInfo((1,), "float32"))
        dtype = info.dtype if info.dtype in DTYPES else "float32"
        context.exprs[name] = context.block.stand_in(info.shape, dtype)
