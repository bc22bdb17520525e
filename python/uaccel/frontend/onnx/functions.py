"""Handles a node by general means: checks its types, computes it at import, or converts it without a converter of ours.

Such a conversion is TVM's, or expands the node into the simpler ones by which ONNX defines its operator.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import ADVICE, NO_CONVERTER, SHAPE_OF_DATA, need_size, need_type
from uaccel.frontend.onnx import graph as graphs
from uaccel.frontend.onnx.converter import Context, Expr, expressions, static_info
from uaccel.frontend.onnx.graph import Node, onnx_package
from uaccel.frontend.onnx.reader import node_of
from uaccel.frontend.onnx.schema import dtype_name
from uaccel.model import Array, TensorInfo
from uaccel.tvm_api.converters import TvmConversionError, convert_onnx_node, knows_onnx_operator

# The cost of computing a node of constants, estimated before it is computed: memory and time.

MOST_WORK: Final = 1 << 31  # Elementary steps of numpy for one node, which take seconds.
# Steps of an element where the evaluator may loop over elements in Python. So at most 2**15 of them pass.
SLOW: Final = 1 << 16


def spend(context: Context, node: Node, values: Mapping[str, Array], types: Mapping[str, TensorInfo]) -> None:
    """Charge the budget for a node's results; ModelError where memory or time is too much.

    Sizes come from ONNX's rules. A size that depends on data is taken as NonZero's: an int64 for each element and axis.
    """
    given = sum(value.size for value in values.values())
    if node.op in graphs.SMALLER:
        made, size = given, sum(8 * value.size * max(1, value.ndim) for value in values.values())
    else:
        infos = [types.get(name) for name in node.outputs if name]
        known = [info for info in infos if info is not None]
        need(len(known) == len(infos), "its inputs are constant, and how large its result is cannot be told beforehand")
        made, size = sum(info.elements for info in known), sum(info.size for info in known)
    context.budget.bytes(size)
    fits = _steps(node, [values[name] for name in node.inputs if name], given, made) <= MOST_WORK
    need(fits, "its inputs are constant, and computing it would take too long; compute it before you export the model")


def _steps(node: Node, values: list[Array], given: int, made: int) -> int:
    """An upper bound of elementary steps. Einsum has at most as many as the extents of all operands multiplied."""
    if node.op in graphs.AT_ONCE or node.op in OWN:
        return given + made
    if node.op in ("MatMul", "MatMulInteger", "Gemm"):
        return made * max((max(value.shape[-2:], default=1) for value in values), default=1)
    if node.op == "Einsum":
        return math.prod(max(1, extent) for value in values for extent in value.shape)
    return (given + made) * SLOW


# Folding: nodes of constants are computed at import, as are those that look only at shapes.


def fold_node(context: Context, node: Node, types: Mapping[str, TensorInfo]) -> list[Array] | None:
    """The values of the node's outputs where they are known; None where they are computed at run time.

    ``types`` are those of the outputs by ONNX's rules.
    """
    if node.domain:
        return None
    if node.op == "Shape":
        return [_shape(context, node)]
    if node.op == "Size":
        return [np.asarray(context.info(node.required_input(0)).elements, np.int64)]
    if node.op == "EyeLike":
        return [_eye(context, node)]
    if node.op in graphs.KEPT or _has_subgraph(node):
        return None
    need(node.op not in graphs.RANDOM, "its result is random; uaccel compiles what gives the same result each time")
    names = [name for name in node.inputs if name]
    if not all(name in context.constants for name in names):
        return None
    values = {name: context.constants[name] for name in names}
    spend(context, node, values, types)
    return evaluated(context, node, values)


def _has_subgraph(node: Node) -> bool:
    return any(type(value).__name__ == "GraphProto" for value in node.attributes.values())


def _shape(context: Context, node: Node) -> Array:
    shape = context.info(node.required_input(0)).shape
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    return np.asarray(shape[slice(start, end)], np.int64)


def _eye(context: Context, node: Node) -> Array:
    """EyeLike, which uses only the shape of its input."""
    info = context.info(node.required_input(0))
    need(len(info.shape) == 2, f"the input has rank {len(info.shape)}, wanted 2")
    kind = node.attributes.get("dtype")
    dtype = dtype_name(onnx_package(), kind) if kind else info.dtype
    need_type(dtype, graphs.DTYPES, "its result")
    rows, columns = info.shape
    context.budget.array(info.shape, 8)
    return np.eye(rows, columns, int(node.attributes.get("k", 0))).astype(dtype)


def evaluated(context: Context, node: Node, values: dict[str, Array]) -> list[Array]:
    """Run the node in ONNX's reference evaluator, without what it prints and warns about."""
    if node.op in OWN:
        return [OWN[node.op](node, *(values[name] for name in node.inputs))]
    onnx = onnx_package()
    reference = onnx_package("onnx.reference")
    graph = onnx.helper.make_graph(
        [node.proto],
        "node",
        [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in values],
        [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in node.outputs if name],
    )
    opset = onnx.helper.make_opsetid("", context.graph.opset)
    model = onnx.helper.make_model(graph, opset_imports=[opset])
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            results: Sequence[Any] = reference.ReferenceEvaluator(model).run(None, dict(values))
        except Exception as error:  # whatever numpy raises on what the node asks for
            raise ModelError(f"its inputs are constant, and computing it fails: {error}") from error
    return [_array(result) for result in results]


def _scattered(node: Node, data: Array, places: Array, updates: Array) -> Array:
    """ScatterElements, which the evaluator computes in a loop in Python."""
    result, axis = data.copy(), node.attributes.get("axis", 0)
    need(-data.ndim <= axis < data.ndim, f"axis {axis} is wrong for a tensor of rank {data.ndim}")
    size = data.shape[axis]
    need(bool(((places >= -size) & (places < size)).all()), f"an index is not within the axis of {size}")
    index: list[Any] = [*np.indices(places.shape, sparse=True)]
    index[axis] = places  # below 0 from the end, as NumPy counts, too
    reduction = node.attributes.get("reduction", "none")
    with np.errstate(all="ignore"):
        if reduction == "none":
            result[tuple(index)] = updates
        else:
            REDUCTIONS[reduction].at(result, tuple(index), updates)
    return result


REDUCTIONS: Final = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
# Operators of constants that NumPy computes at once where the evaluator does not.
OWN: Final[Mapping[str, Callable[..., Array]]] = {"ScatterElements": _scattered}


def _array(result: Any) -> Array:
    need(isinstance(result, np.ndarray | np.generic), f"its result is a {type(result).__name__}, wanted a tensor")
    array = np.asarray(result)
    need_type(str(array.dtype), (*graphs.DTYPES, *graphs.FOUR_BITS), "its result")
    return array


# Type checking by ONNX's own rules, before anything computes or converts a node.

SEEN: Final = 1 << 12  # Most bytes of a constant that the rules are given: they need shapes and axes, not weights.
_NAMES: Final = {dtype: {"float32": "float", "float64": "double"}.get(dtype, dtype) for dtype in graphs.DTYPES}


def checked_types(context: Context, node: Node) -> dict[str, TensorInfo]:
    """The outputs' types as far as they follow from the inputs'; ModelError where these do not fit the operator."""
    schema = _schema(context, node)
    if schema is None or any(type(value).__name__ == "GraphProto" for value in node.attributes.values()):
        return {}
    infos = {name: context.info(name) for name in node.inputs if name}
    _check_kinds(node, schema, infos)
    return _inferred(context, node, schema, infos)


def check_kinds_of_results(context: Context, node: Node, exprs: Sequence[Expr]) -> None:
    """Check that results have the element types that the operator gives them: shapes may be unknown to the rules."""
    schema = _schema(context, node)
    if schema is None or not schema.outputs:
        return
    known = {formal.type_str: name for formal, name in zip(schema.inputs, node.inputs, strict=False) if name}
    for place, (name, expr) in enumerate(zip(node.outputs, exprs, strict=False)):
        kind = schema.outputs[min(place, len(schema.outputs) - 1)].type_str
        if name and kind in known and not kind.startswith("tensor("):
            made, wanted = static_info(context.normal(expr), name).dtype, context.info(known[kind]).dtype
            need(made == wanted, f'its converter computes "{name}" in {made}, wanted {wanted}')


def _schema(context: Context, node: Node) -> Any | None:
    defs = onnx_package().defs
    try:
        return None if node.domain else defs.get_schema(node.op, context.graph.opset, "")
    except defs.SchemaError:
        return None


def _check_kinds(node: Node, schema: Any, infos: dict[str, TensorInfo]) -> None:
    """Check that inputs have types that the operator takes, and those of one type variable the same type."""
    alike: dict[str, tuple[str, str]] = {}
    for position, name in enumerate(node.inputs):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if not name:
            continue
        dtype = infos[name].dtype
        fits = f"tensor({_NAMES.get(dtype, dtype)})" in formal.types
        need(fits, f'input {position} ("{name}") is {dtype}, which the operator does not take')
        if formal.is_homogeneous or formal.option.name != "Variadic":
            first, known = alike.setdefault(formal.type_str, (name, dtype))
            need(known == dtype, f'"{first}" is {known} and "{name}" is {dtype}, wanted one type')


def _inferred(context: Context, node: Node, schema: Any, infos: dict[str, TensorInfo]) -> dict[str, TensorInfo]:
    onnx = onnx_package()
    helper = onnx.helper
    types = {
        name: helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.dtype(info.dtype)), list(info.shape))
        for name, info in infos.items()
    }
    known = {name: context.constants[name] for name in infos if name in context.constants}
    data = {name: onnx.numpy_helper.from_array(value, name) for name, value in known.items() if value.nbytes <= SEEN}
    inference = onnx_package("onnx.shape_inference")
    opsets = [helper.make_opsetid("", context.graph.opset)]
    try:
        found = inference.infer_node_outputs(schema, node.proto, types, data, opset_imports=opsets)
    except graphs.refusals() as error:
        raise ModelError(_reason(error)) from error
    static = {name: info for name, kind in found.items() if (info := _static(onnx, kind)) is not None}
    for name, info in static.items():
        need_type(info.dtype, (*graphs.DTYPES, *graphs.FOUR_BITS), f'"{name}"')
        need_size(info, f'"{name}"')
    return static


def _reason(error: Exception) -> str:
    """The message of ONNX's rules, without the place, which the caller adds."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = re.sub(r"^\[\w+\]\s*(\(op_type:.*?\):?)?\s*", "", lines[0] if lines else type(error).__name__)
    return f"against ONNX's rules: {text.rstrip('.')}"


def _static(onnx: Any, kind: Any) -> TensorInfo | None:
    """Type and shape, or None where something is left open."""
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    dims = kind.tensor_type.shape.dim
    if any(dim.WhichOneof("value") != "dim_value" or dim.dim_value < 0 for dim in dims):
        return None
    return TensorInfo(tuple(dim.dim_value for dim in dims), dtype_name(onnx, kind.tensor_type.elem_type))


# Expansion of an operator into the nodes of its definition, and of an If into the branch that is known to be taken.
#
# Inner nodes are converted one after the other as if they stood in the graph. The tensors that they make get a prefix
# of this call before their names. ``names`` maps inner names to outer ones, and grows node by node.


def expand(context: Context, node: Node) -> list[Expr] | None:
    """Convert a node by its operator's definition; None where there is none.

    Attributes that inner nodes refer to are the node's, else the defaults of the function, else those of the schema.
    """
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
    """Convert the nodes of a branch of an ``If``. They may read tensors around it, whose names stay as they are."""
    graph = node.attributes[branch]
    prefix = _prefix(context)
    for tensor in graph.initializer:
        context.constants[prefix + tensor.name] = np.asarray(onnx_package().numpy_helper.to_array(tensor))
    names = {tensor.name: prefix + tensor.name for tensor in graph.initializer}
    return _run_all(context, node, graph.node, [value.name for value in graph.output], names, {})


def _prefix(context: Context) -> str:
    """A prefix for names of inner tensors. Its count grows with each tensor; names of files have no parentheses."""
    return f"(inner {len(context.exprs) + len(context.constants)})/"


def _run_all(
    context: Context, node: Node, inner: Any, outputs: Sequence[str], names: dict[str, str], given: dict[str, Any]
) -> list[Expr]:
    """Convert inner nodes, and return what they make for ``node``'s outputs.

    An output that no inner node reads is left unbound: the caller binds it under the name of the outer node's layer.
    """
    context.budget.nodes(len(inner))
    prefix = _prefix(context)
    read = {name for proto in inner for name in proto.input}
    for proto in inner:
        last = {prefix + name for name in proto.output if name in outputs and name not in read}
        _run(context, node_of(onnx_package(), node.index, _renamed(proto, names, prefix, given)), last)
    wanted = zip(outputs, node.outputs, strict=True)
    return [context.expr(names.get(name, name)) if called else None for name, called in wanted]


def _function(context: Context, node: Node) -> Any | None:
    """The definition for this opset; ONNX builds those that depend on attributes and types of the node."""
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
    """Default values of attributes, by the schema."""
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
    """The node with the names and attributes of this call. ``names`` then has those of its outputs, too."""
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
    """Rename what a graph inside a node reads from outside. Tensors that it makes itself hide those of equal name."""
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
    """Compute or convert an inner node, and keep its outputs by name. Outputs in ``last`` stay unbound."""
    try:
        values = fold_node(context, node, checked_types(context, node))
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


# Conversion of operators without a converter of ours: by TVM's, else by ONNX's definition.
#
# TVM's converters misread options: they take every node, and what they make of it is also the exact meaning. So an
# operator is left to TVM only as far as tests/frontend/onnx/test_options.py holds all of its options and types.


def convert(context: Context, node: Node) -> list[Expr]:
    """The outputs' expressions. If TVM's converter and the definition both fail, ModelError says why TVM's did."""
    fits = node.op not in graphs.DATA_DEPENDENT
    need(fits, f"{SHAPE_OF_DATA}; cut the model before it and compute it in the application")
    need(node.op not in graphs.SIZED, f"{SHAPE_OF_DATA}; give it constants")
    need(node.domain != graphs.LEARNING, f"{NO_CONVERTER}; {ADVICE}")
    need(node.domain in ("", graphs.MICROSOFT), f'its domain "{node.domain}" is not known; {ADVICE}')
    reason = f"{NO_CONVERTER}; {ADVICE}"
    if knows_onnx_operator(node.op) and node.op not in graphs.DEFINED:
        try:
            return _by_tvm(context, node)
        except TvmConversionError as error:
            reason = f"{error}; {ADVICE}"
    outputs = expand(context, node)
    if outputs is None:
        raise ModelError(reason)
    return outputs


def _by_tvm(context: Context, node: Node) -> list[Expr]:
    """The outputs by TVM's converter, whose types must agree with ONNX's rules: some converters are wrong."""
    inputs = [context.optional(name) for name in node.inputs]
    opset = context.graph.opset if not node.domain else 1
    outputs = convert_onnx_node(
        context.block.builder, node.op, inputs, node.proto.attribute, opset, len(node.outputs), node.layer_name
    )
    if len(outputs) < len(node.outputs):
        raise TvmConversionError(f"TVM's converter gives {len(outputs)} of {len(node.outputs)} outputs")
    for name, expr in zip(node.outputs, outputs, strict=False):
        declared = context.graph.inferred.get(name)
        if declared is not None:
            _check(name, declared, expr)
    return outputs


def _check(name: str, declared: TensorInfo, expr: Expr) -> None:
    """Compare a type with ONNX's own shape inference."""
    try:
        computed = static_info(expr, name)
    except ModelError as error:
        raise TvmConversionError(f"by TVM's converter {error}") from error
    need(computed == declared, f"TVM's converter gives {computed}, and ONNX's rules {declared}", TvmConversionError)
