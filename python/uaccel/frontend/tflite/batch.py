"""Another batch than the file's own: the one extent that TFLite files leave open and that may be changed afterwards."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import tflite

from uaccel.errors import ModelError
from uaccel.frontend.budget import Budget
from uaccel.frontend.tflite.reader import Graph, Tensor, parse
from uaccel.model import Shape

WRITE_SHAPES_ANEW = "set the shape before converting the model to TFLite"


def with_input_shapes(
    graph: Graph, data: bytes, where: str, shapes: Mapping[str, Shape], budget: Budget
) -> tuple[Graph, bytes]:
    """The model with these shapes of its inputs, as a graph and as the bytes of a file."""
    batch = _batch(graph, where, shapes)
    if batch is None:
        return graph, data
    changed = _patched(data, batch)
    return parse(changed, where, budget), changed


def _batch(graph: Graph, where: str, shapes: Mapping[str, Shape]) -> int | None:
    """The new batch; None where the shapes are those of the file."""
    inputs = {tensor.name: tensor for tensor in graph.inputs}
    batches = set()
    for name, shape in shapes.items():
        if name not in inputs:
            raise ModelError(f'{where} has no input "{name}" for --input-shape; its inputs are: {", ".join(inputs)}')
        if shape != inputs[name].info.shape:
            _check(where, inputs[name], shape)
            batches.add(shape[0])
    if len(batches) > 1:
        raise ModelError(f"{where}: --input-shape gives the batches {sorted(batches)}; all inputs have the same one")
    return batches.pop() if batches else None


def _check(where: str, tensor: Tensor, shape: Shape) -> None:
    given = f"--input-shape {tensor.name}:{','.join(map(str, shape))}"
    own = f'input "{tensor.name}" [{",".join(map(str, tensor.info.shape))}]'
    if len(shape) != len(tensor.info.shape):
        raise ModelError(f"{where}: {given} has {len(shape)} extents; {own} has {len(tensor.info.shape)}")
    if shape[1:] != tensor.info.shape[1:]:
        raise ModelError(
            f"{where}: {given} changes more than the batch (the first extent) of {own}, and a TFLite file holds "
            f"every other shape worked out; {WRITE_SHAPES_ANEW}"
        )
    if tensor.signature[:1] != (-1,):
        raise ModelError(f"{where}: {given}: the file fixes the batch of {own}; {WRITE_SHAPES_ANEW}")


def _patched(data: bytes, batch: int) -> bytes:
    """The file with the batch in every shape that its author left open there."""
    changed = bytearray(data)
    subgraph: Any = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    for index in range(subgraph.TensorsLength()):
        tensor = subgraph.Tensors(index)
        if tensor.ShapeLength() and tensor.ShapeSignatureLength() and tensor.ShapeSignature(0) == -1:
            table = tensor._tab
            struct.pack_into("<i", changed, table.Vector(table.Offset(_SHAPE)), batch)
    return bytes(changed)


_SHAPE = 4
"""Where a tensor's table notes its shape: the schema's first field."""
