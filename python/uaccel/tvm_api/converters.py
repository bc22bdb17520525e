"""Drives TVM's own converters of model formats one operator at a time: TFLite, PyTorch, ONNX."""

from __future__ import annotations

import contextlib
from typing import Any

from uaccel.tvm_api import is_tuple, is_tuple_type, relax
from uaccel.tvm_api.extremes import refusals


class TvmConversionError(Exception):
    """Is raised when one of TVM's converters refuses an operator; the text is the last line of its message."""


def _refusals() -> contextlib.AbstractContextManager[None]:
    return refusals(TvmConversionError)


class TfliteConverter:
    """Converts operators of TFLite by TVM's own converter, one at a time."""

    def __init__(self, model: Any, subgraph: Any, builder: Any) -> None:
        from tvm.relax.frontend.tflite import tflite_frontend

        self._frontend = tflite_frontend
        self._table = tflite_frontend.ExprTable()
        self._subgraph = subgraph
        self._converter = tflite_frontend.OperatorConverter(model, subgraph, self._table, builder)
        self._builder = builder

    def knows(self, operator: str) -> bool:
        return operator in self._converter.convert_map

    def define(self, tensor_index: int, expr: Any) -> None:
        """Say what an input tensor is."""
        name = self._frontend.get_tensor_name(self._subgraph, tensor_index)
        self._table.set_expr(name, expr, force_override=True)

    def convert(self, operator: str, table: Any, outputs: int) -> list[Any]:
        """The expressions of the operator's outputs."""
        quantised = operator not in self._converter._SUPPORTED_QUANTIZED_OPS and any(
            tensor.qnn_params
            for tensor in (*self._converter.get_input_tensors(table), *self._converter.get_output_tensors(table))
        )
        if quantised:
            raise TvmConversionError("quantised operands of this operator are not supported")
        with _refusals():
            result = self._builder.normalize(self._converter.convert_map[operator](op=table))
        return [result] if outputs == 1 else [relax.TupleGetItem(result, i) for i in range(outputs)]


class TorchConverter:
    """Converts nodes of PyTorch's exported programs by TVM's own converter, one at a time."""

    def __init__(self, builder: Any) -> None:
        from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

        self._importer = ExportedProgramImporter()
        self._importer.block_builder = builder

    def knows(self, operator: str) -> bool:
        """Whether it converts an operator, which is named with its overload: ``conv2d.default``."""
        return operator in self._importer.convert_map

    def operators(self) -> list[str]:
        return [str(name) for name in self._importer.convert_map]

    def define(self, node: Any, expr: Any) -> None:
        """Say what an operand is."""
        self._importer.env[node] = expr

    def convert(self, operator: str, node: Any) -> Any:
        """The node's value; several values are a list, or a variable whose type is a tuple."""
        with _refusals():
            return self._importer.convert_map[operator](node)


def _onnx_converters() -> dict[str, Any]:
    from tvm.relax.frontend.onnx import onnx_frontend

    converters: dict[str, Any] = onnx_frontend._get_convert_map()
    return converters


def knows_onnx_operator(operator: str) -> bool:
    return operator in _onnx_converters()


def convert_onnx_node(
    builder: Any, operator: str, inputs: list[Any], attributes: Any, opset: int, outputs: int, name: str
) -> list[Any]:
    """Convert an ONNX node by TVM's own converter: the expressions of its outputs, with their types."""
    from tvm.relax.frontend.onnx import onnx_frontend

    importer = onnx_frontend.ONNXGraphImporter({}, "float32")
    importer.bb = builder
    with _refusals():
        parsed = importer._parse_attr(attributes)
        parsed["tvm_custom"] = {"name": name, "num_outputs": outputs}
        result = importer._convert_operator(operator, onnx_frontend.onnx_input(inputs), parsed, opset)
        if is_tuple(result):
            return [builder.normalize(field) for field in result.fields]
        if is_tuple_type(result):
            bound = builder.emit(result)
            return [builder.normalize(relax.TupleGetItem(bound, i)) for i in range(len(bound.ty.fields))]
        return [result]
