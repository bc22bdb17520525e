"""Operators that ONNX itself defines by simpler ones, for those that nothing else here can convert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from uaccel.errors import ModelError
from uaccel.frontend.onnx.convert import Context, Expr, expressions
from uaccel.frontend.onnx.folding import folded
from uaccel.frontend.onnx.graph import Node
from uaccel.frontend.onnx.package import onnx_package
from uaccel.frontend.onnx.reader import node_of
from uaccel.frontend.onnx.rules import checked_types


def expand(context: Context, node: Node) -> list[Expr] | None:
    """The outputs by the nodes of the operator's definition; None where it has none."""
    function = _function(context, node)
    if function is None:
        return None
    opset = max((entry.version for entry in function.opset_import if not entry.domain), default=context.graph.opset)
    inner = replace(context, graph=replace(context.graph, opset=opset))
    names = dict.fromkeys(function.input, "") | dict(zip(function.input, node.inputs, strict=False))
    given = {attribute.name: attribute for attribute in node.proto.attribute}
    given |= {
        entry.name: entry for entry in (*function.attribute_proto, *_defaults(context, node)) if entry.name not in given
    }
    return _run_all(inner, node, function.node, function.output[: len(node.outputs)], names, given)


def taken(context: Context, node: Node, branch: str) -> list[Expr]:
    """The nodes of the branch of an ``If`` that is known to be taken."""
    graph = node.attributes[branch]
    prefix = _prefix(context)
    for tensor in graph.initializer:
        context.constants[prefix + tensor.name] = np.asarray(onnx_package().numpy_helper.to_array(tensor))
    names = {tensor.name: prefix + tensor.name for tensor in graph.initializer}
    return _run_all(context, node, graph.node, [value.name for value in graph.output], names, {})


def _prefix(context: Context) -> str:
    """For the names of inner tensors; ONNX's own have no parentheses."""
    return f"(inner {len(context.exprs) + len(context.constants)})/"


def _run_all(
    context: Context, node: Node, inner: Any, outputs: Sequence[str], names: dict[str, str], given: dict[str, Any]
) -> list[Expr]:
    context.budget.nodes(len(inner))
    prefix = _prefix(context)
    read = {name for proto in inner for name in proto.input}
    for proto in inner:
        last = {prefix + name for name in proto.output if name in outputs and name not in read}
        _run(context, node_of(onnx_package(), node.index, _renamed(proto, names, prefix, given)), last)
    wanted = zip(outputs, node.outputs, strict=True)
    return [context.expr(names.get(name, name)) if called else None for name, called in wanted]


def _function(context: Context, node: Node) -> Any | None:
    """The definition for this opset."""
    onnx = onnx_package()
    opset = context.graph.opset
    try:
        schema = onnx.defs.get_schema(node.op, opset, node.domain)
    except onnx.defs.SchemaError:
        return None
    data = b""
    if schema.has_function:
        data = schema.get_function_with_opset_version(opset) or schema.get_function_with_opset_version(
            schema.since_version
        )
    elif schema.has_context_dependent_function:
        versions = [version for version in schema.context_dependent_function_opset_versions if version <= opset]
        version = max(versions, default=schema.since_version)
        data = schema.get_context_dependent_function_with_opset_version(
            version, node.proto.SerializeToString(), [_type(context, name) for name in node.inputs]
        )
    if not data:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(data)
    return function


def _defaults(context: Context, node: Node) -> list[Any]:
    """What holds for attributes that the node leaves out."""
    schema = onnx_package().defs.get_schema(node.op, context.graph.opset, node.domain)
    return [attribute.default_value for attribute in schema.attributes.values() if attribute.default_value.name]


def _type(context: Context, name: str) -> bytes:
    onnx = onnx_package()
    if not name:
        return bytes(onnx.TypeProto().SerializeToString())
    info = context.info(name)
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(info.dtype))
    return bytes(onnx.helper.make_tensor_type_proto(kind, list(info.shape)).SerializeToString())


def _renamed(proto: Any, names: dict[str, str], prefix: str, given: dict[str, Any]) -> Any:
    """The node with names of this call, and attributes of the call where it refers to them."""
    node = type(proto)()
    node.CopyFrom(proto)
    for i, name in enumerate(proto.input):
        node.input[i] = names.get(name, name)
    for i, name in enumerate(proto.output):
        if name:
            names[name] = node.output[i] = prefix + name
    del node.attribute[:]
    for attribute in proto.attribute:
        if not attribute.ref_attr_name:
            node.attribute.append(attribute)
        elif attribute.ref_attr_name in given:
            node.attribute.append(given[attribute.ref_attr_name])
            node.attribute[-1].name = attribute.name
        if node.attribute and node.attribute[-1].HasField("g"):
            _rename_outer(node.attribute[-1].g, names)
    return node


def _rename_outer(graph: Any, names: dict[str, str]) -> None:
    """In a branch, the names of tensors that are made outside of it."""
    made = {name for node in graph.node for name in node.output} | {tensor.name for tensor in graph.initializer}
    outer = {name: new for name, new in names.items() if name not in made}
    for node in graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = outer.get(name, name)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename_outer(attribute.g, outer)
    for value in graph.output:
        value.name = outer.get(value.name, value.name)


def _run(context: Context, node: Node, last: set[str]) -> None:
    """What the node computes is known by its outputs' names; ``last`` are those that the outer node will name."""
    try:
        values = folded(context, node, checked_types(context, node))
        results = [] if values is not None else expressions(context, node)
    except ModelError as error:
        raise ModelError(f"inside of it, {node.op}: {error}") from error
    if values is not None:
        context.constants |= dict(zip([name for name in node.outputs if name], values, strict=True))
        return
    for name, expr in zip(node.outputs, results, strict=False):
        if name:
            normal = context.normal(expr)
            context.exprs[name] = normal if name in last else context.block.builder.emit(normal)
            context.info(name)  # refuses what has no static shape
