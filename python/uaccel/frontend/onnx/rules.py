"""ONNX's own rules for the types of operands, held against each node before anything computes or converts it."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import need_size, need_type
from uaccel.frontend.onnx.convert import Context
from uaccel.frontend.onnx.graph import DTYPES, FOUR_BITS, Node
from uaccel.frontend.onnx.package import onnx_package, refusals
from uaccel.frontend.onnx.structure import dtype_name
from uaccel.model import TensorInfo

SEEN: Final = 1 << 12
"""Bytes of a constant operand that the rules get to see: shapes and axes, no weights."""
_NAMES: Final = {dtype: {"float32": "float", "float64": "double"}.get(dtype, dtype) for dtype in DTYPES}


def checked_types(context: Context, node: Node) -> dict[str, TensorInfo]:
    """The outputs' types as far as they follow from the inputs'; ModelError where the inputs cannot be the node's."""
    schema = _schema(context, node)
    if schema is None or any(type(value).__name__ == "GraphProto" for value in node.attributes.values()):
        return {}
    infos = {name: context.info(name) for name in node.inputs if name}
    _check_kinds(node, schema, infos)
    return _inferred(context, node, schema, infos)


def _schema(context: Context, node: Node) -> Any | None:
    defs = onnx_package().defs
    try:
        return None if node.domain else defs.get_schema(node.op, context.graph.opset, "")
    except defs.SchemaError:
        return None


def _check_kinds(node: Node, schema: Any, infos: dict[str, TensorInfo]) -> None:
    """Each is of a type that the operator takes; those that the definition calls alike are of one type."""
    alike: dict[str, tuple[str, str]] = {}
    for position, name in enumerate(node.inputs):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if not name:
            continue
        dtype = infos[name].dtype
        need(
            f"tensor({_NAMES.get(dtype, dtype)})" in formal.types,
            f'input {position} ("{name}") is {dtype}, which the operator does not take',
        )
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
    except refusals() as error:
        raise ModelError(_reason(error)) from error
    static = {name: info for name, kind in found.items() if (info := _static(onnx, kind)) is not None}
    for name, info in static.items():
        need_type(info.dtype, (*DTYPES, *FOUR_BITS), f'"{name}"')
        need_size(info, f'"{name}"')
    return static


def _reason(error: Exception) -> str:
    """What the rules say, without the place, which the caller knows."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = re.sub(r"^\[\w+\]\s*(\(op_type:.*?\):?)?\s*", "", lines[0] if lines else type(error).__name__)
    return f"against ONNX's rules: {text.rstrip('.')}"


def _static(onnx: Any, kind: Any) -> TensorInfo | None:
    """None where something is left open."""
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    dims = kind.tensor_type.shape.dim
    if any(dim.WhichOneof("value") != "dim_value" or dim.dim_value < 0 for dim in dims):
        return None
    return TensorInfo(tuple(dim.dim_value for dim in dims), dtype_name(onnx, kind.tensor_type.elem_type))
