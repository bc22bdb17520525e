"""What is known at import is computed at import: nodes of constants, and shapes."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import need_type
from uaccel.frontend.onnx.convert import Context
from uaccel.frontend.onnx.effort import spend
from uaccel.frontend.onnx.graph import DTYPES, FOUR_BITS, Node
from uaccel.frontend.onnx.operators import KEPT, RANDOM
from uaccel.frontend.onnx.package import onnx_package
from uaccel.frontend.onnx.structure import dtype_name
from uaccel.model import Array, TensorInfo


def folded(context: Context, node: Node, types: Mapping[str, TensorInfo]) -> list[Array] | None:
    """The values of the node's outputs where they are known; None where they are computed at run time.

    ``types`` of the outputs are what ONNX's rules say.
    """
    if node.domain:
        return None
    if node.op == "Shape":
        return [_shape(context, node)]
    if node.op == "Size":
        return [np.asarray(context.info(node.required_input(0)).elements, np.int64)]
    if node.op == "EyeLike":
        return [_eye(context, node)]
    if node.op in KEPT or _has_subgraph(node):
        return None
    need(node.op not in RANDOM, "its result is random; uaccel compiles what gives the same result each time")
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
    """It looks at the shape of its input alone."""
    info = context.info(node.required_input(0))
    need(len(info.shape) == 2, f"the input has rank {len(info.shape)}, wanted 2")
    kind = node.attributes.get("dtype")
    dtype = dtype_name(onnx_package(), kind) if kind else info.dtype
    need_type(dtype, DTYPES, "its result")
    rows, columns = info.shape
    context.budget.array(info.shape, 8)
    return np.eye(rows, columns, int(node.attributes.get("k", 0))).astype(dtype)


def evaluated(context: Context, node: Node, values: dict[str, Array]) -> list[Array]:
    """By the evaluator that defines ONNX; what it prints and warns about is for nobody."""
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


def _array(result: Any) -> Array:
    need(isinstance(result, np.ndarray | np.generic), f"its result is a {type(result).__name__}, wanted a tensor")
    array = np.asarray(result)
    need_type(str(array.dtype), (*DTYPES, *FOUR_BITS), "its result")
    return array
