"""TVM's own ONNX converters, one node at a time: all that is float."""

from __future__ import annotations

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import ADVICE, NO_CONVERTER, SHAPE_OF_DATA
from uaccel.frontend.onnx.convert import Context, Expr, static_info
from uaccel.frontend.onnx.functions import expand
from uaccel.frontend.onnx.graph import MICROSOFT, Node
from uaccel.frontend.onnx.operators import DATA_DEPENDENT, DEFINED, SIZED
from uaccel.model import TensorInfo
from uaccel.tvm_api.converters import TvmConversionError, convert_onnx_node, knows_onnx_operator


def convert(context: Context, node: Node) -> list[Expr]:
    """The outputs' expressions; ModelError with TVM's own words where it refuses."""
    need(
        node.op not in DATA_DEPENDENT,
        f"{SHAPE_OF_DATA}; cut the model before it and compute it in the application",
    )
    need(node.op not in SIZED, f"{SHAPE_OF_DATA}; give it constants")
    need(node.domain in ("", MICROSOFT), f'its domain "{node.domain}" is not known; {ADVICE}')
    reason = f"{NO_CONVERTER}; {ADVICE}"
    if knows_onnx_operator(node.op) and node.op not in DEFINED:
        try:
            return _by_tvm(context, node)
        except TvmConversionError as error:
            reason = f"{error}; {ADVICE}"
    outputs = expand(context, node)
    if outputs is None:
        raise ModelError(reason)
    return outputs


def _by_tvm(context: Context, node: Node) -> list[Expr]:
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
    """Against ONNX's own shape inference."""
    try:
        computed = static_info(expr, name)
    except ModelError as error:
        raise TvmConversionError(f"by TVM's converter {error}") from error
    if computed != declared:
        raise TvmConversionError(f"TVM's converter gives {computed}, and ONNX's rules {declared}")
