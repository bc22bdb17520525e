"""TVM's own ONNX converters, one node at a time: all that is float."""

from __future__ import annotations

from uaccel.errors import ModelError
from uaccel.frontend.onnx.convert import Context, Expr, need
from uaccel.frontend.onnx.graph import MICROSOFT, Node
from uaccel.tvm_api import TvmConversionError, convert_onnx_node, knows_onnx_operator

ADVICE = "rewrite the layer with supported operators"
DATA_DEPENDENT = ("NonMaxSuppression", "NonZero", "Unique", "Compress", "AllClassNMS")
"""The shapes of their results depend on data."""


def convert(context: Context, node: Node) -> list[Expr]:
    """The outputs' expressions; ModelError with TVM's own words where it refuses."""
    need(
        node.op not in DATA_DEPENDENT,
        "the shape of its result depends on data, and firmware needs every shape fixed; "
        "cut the model before it and compute it in the application",
    )
    need(node.domain in ("", MICROSOFT), f'its domain "{node.domain}" is not known; {ADVICE}')
    need(knows_onnx_operator(node.op), f"there is no converter for this operator; {ADVICE}")
    inputs = [context.optional(name) for name in node.inputs]
    opset = context.graph.opset if not node.domain else 1
    try:
        return convert_onnx_node(
            context.block.builder, node.op, inputs, node.proto.attribute, opset, len(node.outputs), node.layer_name
        )
    except TvmConversionError as error:
        raise ModelError(f"{error}; {ADVICE}") from error
