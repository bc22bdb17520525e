"""TVM's own TFLite converter, one operator at a time: float operators, and what it lowers in float."""

from __future__ import annotations

from typing import Any

from uaccel.errors import ModelError
from uaccel.frontend.tflite.convert import Context, Expr
from uaccel.frontend.tflite.reader import Graph, Operator
from uaccel.tvm_api import TfliteConverter, TvmConversionError

ADVICE = "rewrite the layer with supported operators, or quantise the model to int8"

CONTROL_FLOW = ("IF", "WHILE")
NO_CONTROL_FLOW = "it runs subgraphs by what is known at run time alone; convert the model without control flow"


def convert(graph: Graph, operator: Operator, context: Context, block: Any) -> list[Expr]:
    """The outputs' expressions; ModelError with TVM's own words where it refuses."""
    if operator.name in CONTROL_FLOW:
        raise ModelError(NO_CONTROL_FLOW)
    converter = TfliteConverter(graph.file, graph.subgraph, block.builder)
    if not converter.knows(operator.name):
        raise ModelError(f"there is no converter for this operator; {ADVICE}")
    for tensor in operator.inputs:
        if tensor is not None and (tensor.data is None or tensor.index in context.exprs):
            converter.define(tensor.index, context.expr(tensor))
    try:
        return converter.convert(operator.name, operator.table, len(operator.outputs))
    except TvmConversionError as error:
        raise ModelError(f"{error}; {ADVICE}") from error
