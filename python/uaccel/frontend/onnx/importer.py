"""Imports an ONNX file as a Relax module of float operators, with quantize and dequantize where the model has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import ADVICE, NO_CONVERTER, Budget, need_elements, need_size, need_type
from uaccel.frontend.converters import Walk, parameters_of
from uaccel.frontend.onnx import functions, quantized
from uaccel.frontend.onnx.converter import Context, Expr, expressions, static_info
from uaccel.frontend.onnx.functions import check_kinds_of_results, checked_types, fold_node
from uaccel.frontend.onnx.graph import DTYPES, SAME_VALUES, Node, OnnxGraph
from uaccel.frontend.onnx.reader import read
from uaccel.frontend.qdq.rewrite import integers
from uaccel.model import ImportedModel, ModelFile, Origin, Shape, Signature, TensorInfo, TensorSpec, unique_names
from uaccel.tvm_api import is_constant, is_operator_call, is_shape_value, is_var, main_bindings

DEEPEST = 8  # Levels of graphs inside nodes.
# Calls of Relax that only TVM's own run time executes.
FOREIGN = ("relax.call_tir", "relax.call_dps_packed", "relax.call_pure_packed")


def import_onnx(path: Path, input_shapes: Mapping[str, Shape]) -> ImportedModel:
    """Read, check and convert an ONNX file."""
    budget = Budget(path)
    graph, file = read(path, input_shapes, budget)
    walk = _Import(path=path, budget=budget, graph=graph, parameters=parameters_of(graph.inputs))
    module = walk.module(walk.parameters, graph.nodes)
    signature = _signature(graph, walk.context)
    walk.tensors.update({var.name: spec for var, spec in zip(walk.parameters, signature.inputs, strict=True)})
    return ImportedModel(
        name=path.stem,
        source_format="onnx",
        digest=file.digest,
        module=module,
        signature=signature,
        tensors=walk.tensors,
        origins=walk.origins,
        warnings=tuple(dict.fromkeys(walk.warnings)),
        file=ModelFile(path.suffix.lower(), file.data),
    )


def _signature(graph: OnnxGraph, context: Context) -> Signature:
    inputs = tuple(replace(spec, quantisation=context.quantisation.get(spec.name)) for spec in graph.inputs)
    names = unique_names(graph.outputs)
    outputs = tuple(
        TensorSpec(name, context.info(tensor), context.quantisation.get(tensor))
        for name, tensor in zip(names, graph.outputs, strict=True)
    )
    return Signature(inputs, outputs)


@dataclass(kw_only=True)
class _Import(Walk[Node]):
    """Converts one graph, which may lie inside ``depth`` nodes. ``bound`` has the variables of tensors.

    Tensors in ``guessed`` come from a refused node, so that their types are unknown."""

    graph: OnnxGraph
    parameters: list[Any]
    depth: int = 0
    context: Context = field(init=False)
    bound: set[Any] = field(default_factory=set)
    guessed: set[str] = field(default_factory=set)

    def begin(self) -> None:
        self.bound.update(self.parameters)
        exprs = {spec.name: var for spec, var in zip(self.graph.inputs, self.parameters, strict=True)}
        assert self.budget is not None
        constants = dict(self.graph.constants)
        self.context = Context(self.graph, self.block, self.budget, functions.convert, self._subgraph, constants, exprs)

    def _subgraph(self, graph: OnnxGraph) -> tuple[Any, Context]:
        """Convert a graph inside a node to integers. Its problems are reported as those of the node."""
        need(self.depth < DEEPEST, f"graphs lie more than {DEEPEST} deep in each other")
        walk = _Import(
            path=self.path,
            budget=self.budget,
            graph=graph,
            parameters=parameters_of(graph.inputs),
            depth=self.depth + 1,
        )
        try:
            inner = walk.module(walk.parameters, graph.nodes)
        except ModelError as error:
            raise ModelError(f"inside of it, {'; '.join(walk.problems) or error}") from error
        walk.tensors.update({var.name: spec for var, spec in zip(walk.parameters, graph.inputs, strict=True)})
        signature = _signature(graph, walk.context)
        model = integers(ImportedModel("", "onnx", "", inner, signature, walk.tensors, walk.origins))
        self.warnings += [f"inside of a node, {warning}" for warning in (*walk.warnings, *model.warnings)]
        return model.module, walk.context

    def results(self) -> list[Expr]:
        return [self.context.expr(name) for name in self.graph.outputs]

    def where(self, node: Node) -> str:
        return node.where

    def stand_in(self, node: Node) -> None:
        for name in node.outputs:
            info = self.graph.inferred.get(name)
            if info is None or info.dtype not in DTYPES:
                self.guessed.add(name)
                info = TensorInfo((1,), "float32")
            self.context.exprs[name] = self.block.stand_in(info.shape, info.dtype)

    def check(self, module: Any) -> None:
        """Refuse TIR and shapes as values, which only TVM's run time executes but TVM's converters may make."""
        for var, expr in main_bindings(module)[1]:
            origin = self.origins.get(var.name)
            foreign = is_shape_value(var) or (is_operator_call(expr) and expr.op.name in FOREIGN)
            if foreign and origin is not None and origin.tensor not in self.guessed:
                reason = f"TVM's converter of it needs TVM's run time; {ADVICE}"
                self.problems.append(f'node {origin.index} {origin.op} ("{origin.tensor}"): {reason}')

    def convert(self, node: Node) -> None:
        """Convert a node. If an input's type is a guess, only a missing converter is a reliable reason to refuse it."""
        guessed = not self.guessed.isdisjoint(node.inputs)
        try:
            self._convert(node)
        except ModelError as error:
            if not guessed or str(error).startswith(NO_CONVERTER):
                raise
            self.stand_in(node)
        if guessed:
            self.guessed.update(node.outputs)

    def _convert(self, node: Node) -> None:
        context = self.context
        types = checked_types(context, node)
        _compare_with_file(context, types)
        values = fold_node(context, node, types)
        if values is not None:
            context.constants |= dict(zip([name for name in node.outputs if name], values, strict=True))
            return
        simple = quantized.move_quantization(context, node)
        exprs = expressions(context, node) if simple is None else [simple]
        _keep_quantisation(context, node)
        wanted = [(name, expr) for name, expr in zip(node.outputs, exprs, strict=False) if name]
        need(len(exprs) >= len(node.outputs), f"it has {len(node.outputs)} outputs, wanted {len(exprs)}")
        check_kinds_of_results(context, node, exprs)
        for number, (name, expr) in enumerate(wanted):
            self._bind_output(node, name, expr, f"{node.layer_name}_{number}" if len(wanted) > 1 else node.layer_name)

    def _bind_output(self, node: Node, name: str, expr: Expr, variable: str) -> None:
        """Bind an output to a variable, unless it is a bound variable or a constant already."""
        context = self.context
        if is_constant(expr):
            _checked(context, name, expr)
            context.constants[name] = expr.value.numpy()
            return
        if not is_var(expr) or expr not in self.bound:
            var = self.block.emit(expr, variable)
            self.tensors[var.name] = TensorSpec(name, _checked(context, name, var), context.quantisation.get(name))
            self.origins[var.name] = Origin(node.index, node.op, name)
            self.bound.add(var)
            expr = var
        context.exprs[name] = expr


def _compare_with_file(context: Context, types: Mapping[str, TensorInfo]) -> None:
    """Refuse tensors that the file declares otherwise than their node makes them."""
    for name, info in types.items():
        declared = context.graph.inferred.get(name, info)
        need(declared == info, f'the file says that "{name}" is {declared}, and it is {info}; export the model again')


def _keep_quantisation(context: Context, node: Node) -> None:
    """Outputs that are elements of an input with a single scale have its scale."""
    known = context.quantisation.get(node.inputs[0]) if node.inputs else None
    if node.op in SAME_VALUES and known is not None and not known.per_channel:
        context.quantisation |= dict.fromkeys(node.outputs, known)


def _checked(context: Context, name: str, var: Any) -> TensorInfo:
    """The type of a result, checked to be static and to agree with ONNX's rules."""
    info = static_info(var, name)
    need_type(info.dtype, DTYPES, f'"{name}"')
    need_elements(info, f'"{name}"')
    need_size(info, f'"{name}"')
    inferred = context.graph.inferred.get(name, info)
    need(inferred == info, f'"{name}" is {inferred} by ONNX\'s rules, and its converter computes {info}')
    return info
