"""Half precision: what a file holds in float16 becomes float32, which can hold every such number.

The model then computes in float32 and rounds nothing to float16, whatever its nodes say of types.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from uaccel.frontend.onnx.structure import all_graphs

HALF, SINGLE = 10, 1
"""As ``TensorProto.DataType`` numbers them."""
NAMING_TYPES: Final = ("to", "dtype", "output_dtype", "softmax_precision", "stash_type")
"""Attributes whose number is a type."""


def widened(onnx: Any, model: Any) -> None:
    """Changes the model, whose functions are inlined."""
    for graph in all_graphs(model.graph):
        for values in (graph.input, graph.output, graph.value_info):
            for value in values:
                _widen_type(value.type)
        for tensor in graph.initializer:
            _widen_tensor(onnx, tensor)
        for sparse in graph.sparse_initializer:
            _widen_tensor(onnx, sparse.values)
        for node in graph.node:
            for attribute in node.attribute:
                _widen_attribute(onnx, attribute)


def _widen_attribute(onnx: Any, attribute: Any) -> None:
    if attribute.name in NAMING_TYPES and attribute.i == HALF:
        attribute.i = SINGLE
    if attribute.HasField("t"):
        _widen_tensor(onnx, attribute.t)
    if attribute.HasField("sparse_tensor"):
        _widen_tensor(onnx, attribute.sparse_tensor.values)
    for tensor in attribute.tensors:
        _widen_tensor(onnx, tensor)


def _widen_tensor(onnx: Any, tensor: Any) -> None:
    if tensor.data_type == HALF:
        values = onnx.numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))


def _widen_type(kind: Any) -> None:
    """Of tensors, sequences and what may be missing."""
    while kind.WhichOneof("value") in ("sequence_type", "optional_type"):
        kind = getattr(kind, kind.WhichOneof("value")).elem_type
    if kind.HasField("tensor_type") and kind.tensor_type.elem_type == HALF:
        kind.tensor_type.elem_type = SINGLE
