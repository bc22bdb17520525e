"""TVM's own TFLite converter, one operator at a time: float operators, and what it lowers in float."""

from __future__ import annotations

from typing import Any

from uaccel.errors import need
from uaccel.frontend.checks import ADVICE, NO_CONVERTER
from uaccel.frontend.tflite.convert import Context, Expr
from uaccel.frontend.tflite.reader import Graph, Operator
from uaccel.frontend.walk import by_tvm
from uaccel.tvm_api.converters import TfliteConverter

OR_INT8 = ", or quantise the model to int8"
VELA = "CUSTOM:ethos-u"
USE_THE_ORIGINAL = "Vela compiled this file for an Ethos-U; give the .tflite file that Vela was given"


def convert(graph: Graph, operator: Operator, context: Context, block: Any) -> list[Expr]:
    """The outputs' expressions; ModelError with TVM's own words where it refuses."""
    converter = TfliteConverter(graph.file, graph.subgraph, block.builder)
    need(operator.name != VELA, USE_THE_ORIGINAL)
    advice = ADVICE if any(tensor.quantisation is not None for tensor in graph.tensors) else ADVICE + OR_INT8
    need(converter.knows(operator.name), f"{NO_CONVERTER}; {advice}")
    for tensor in operator.inputs:
        if tensor is not None and (tensor.data is None or tensor.bits < 8 or tensor.index in context.exprs):
            converter.define(tensor.index, context.expr(tensor))
    with by_tvm(advice):
        return converter.convert(operator.name, operator.table, len(operator.outputs))
