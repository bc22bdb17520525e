"""Runs ONNX Runtime operator by operator as the file says, with sums that are right on every processor.

On x86 without VNNI, ONNX Runtime adds products of uint8 and int8 in pairs to 16 bits, and saturates: two products may
be 2 * 255 * 127 = 64770, above 32767. So a signed operand beside an unsigned one is made unsigned here: 128 is added
to it and to its zero point. As (x + 128) - (z + 128) = x - z, the sum is the same. An int8 plus 128 fits uint8.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from uaccel.frontend.checks import read_file
from uaccel.frontend.onnx.reader import read_external
from uaccel.frontend.onnx.schema import all_graphs, graphs_of
from uaccel.model import Array

_LINEAR, _INTEGER = ((0, 2), (3, 5)), ((0, 2), (1, 3))
# Operators that sum products of integers: the input numbers of each operand and of its zero point.
_SUMS = {
    "QLinearConv": _LINEAR,
    "QLinearMatMul": _LINEAR,
    "QGemm": _LINEAR,
    "ConvInteger": _INTEGER,
    "MatMulInteger": _INTEGER,
}


_OLDER = 10  # The version of ONNX's form that every ONNX Runtime of pyproject.toml's range takes.


def session_of(model: Any | Path) -> Any:
    """Opens a session for a file or a model, without graph optimisation, which may change roundings."""
    onnx, runtime = importlib.import_module("onnx"), importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    loaded = _loaded(onnx, model) if isinstance(model, Path) else model
    given = unsigned_sums(loaded) if _SUMS.keys() & _operators(loaded.graph) else loaded
    try:
        return runtime.InferenceSession(given.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        if "IR version" not in str(error):
            raise
        loaded.ir_version = _OLDER  # the package onnx writes newer forms before the runtime reads them
        return runtime.InferenceSession(loaded.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _loaded(onnx: Any, path: Path) -> Any:
    model = onnx.ModelProto.FromString(read_file(path))
    read_external(onnx, model, path)
    return model


def computes_in_half(path: Path) -> bool:
    """Says whether a file has tensors of float16; firmware has float32 in their place."""
    onnx = importlib.import_module("onnx")
    half, graph = onnx.TensorProto.FLOAT16, onnx.ModelProto.FromString(read_file(path)).graph
    return any(
        any(tensor.data_type == half for tensor in inner.initializer)
        or any(value.type.tensor_type.elem_type == half for value in (*inner.input, *inner.value_info))
        or any(attribute.name == "to" and attribute.i == half for node in inner.node for attribute in node.attribute)
        for inner in all_graphs(graph)
    )


def unsigned_sums(model: Any) -> Any:
    """Returns a copy of the model in which no sum of products has a signed and an unsigned operand."""
    onnx = importlib.import_module("onnx")
    copied = onnx.shape_inference.infer_shapes(model)
    _Unsigned(onnx).rewrite(copied.graph, {})
    return copied


class _Unsigned:
    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx

    def rewrite(self, graph: Any, outer: dict[str, int]) -> None:
        """Rewrites the graph and its subgraphs, which also see the types of ``outer`` values."""
        values = [*graph.input, *graph.value_info, *graph.output]
        types = outer | {value.name: value.type.tensor_type.elem_type for value in values}
        types |= {constant.name: constant.data_type for constant in graph.initializer}
        nodes: list[Any] = []
        for node in graph.node:
            for attribute in node.attribute:
                for inner in graphs_of(attribute):
                    self.rewrite(inner, types)
            pairs = _SUMS.get(node.op_type, ())
            kinds = [self._kind(node, pair, types) for pair in pairs]
            if set(kinds) == {self._onnx.TensorProto.UINT8, self._onnx.TensorProto.INT8}:
                nodes += self._unsigned(node, *pairs[kinds.index(self._onnx.TensorProto.INT8)])
            nodes.append(node)
        del graph.node[:]
        graph.node.extend(nodes)

    @staticmethod
    def _kind(node: Any, places: tuple[int, int], types: dict[str, int]) -> int:
        """Returns the type of an operand, or of its zero point where the operand's own is not known."""
        names = [node.input[place] for place in places if place < len(node.input)]
        return next((kind for name in names if (kind := types.get(name))), 0)

    def _unsigned(self, node: Any, operand: int, zero: int) -> list[Any]:
        """Returns the nodes that add 128 to the operand and to its zero point, and makes the node read their results.

        A zero point that is left away is 0, and so becomes 128."""
        onnx, names = self._onnx, list(node.input)
        names += [""] * (zero + 1 - len(names))
        made = []
        for place in (operand, zero):
            name = f"{node.output[0]}/unsigned{place}"
            half = onnx.numpy_helper.from_array(np.asarray(128, np.int32))
            steps = [onnx.helper.make_node("Constant", [], [f"{name}/half"], value=half)]
            moved = f"{name}/half"
            if names[place]:
                moved = f"{name}/moved"
                steps.append(onnx.helper.make_node("Cast", [names[place]], [f"{name}/wide"], to=onnx.TensorProto.INT32))
                steps.append(onnx.helper.make_node("Add", [f"{name}/wide", f"{name}/half"], [moved]))
            made += [*steps, onnx.helper.make_node("Cast", [moved], [name], to=onnx.TensorProto.UINT8)]
            names[place] = name
        node.ClearField("input")
        node.input.extend(names)
        return made


def _operators(graph: Any) -> set[str]:
    return {node.op_type for inner in all_graphs(graph) for node in inner.node}


def given(inputs: Sequence[Any], sample: Sequence[Array]) -> dict[str, Array]:
    """Returns the inputs by name, in half precision where the file has that: firmware has float32 in its place."""
    halves = [entry.type == "tensor(float16)" for entry in inputs]
    values = [value.astype(np.float16) if half else value for half, value in zip(halves, sample, strict=True)]
    return {entry.name: value for entry, value in zip(inputs, values, strict=True)}


def as_array(value: Any) -> Array:
    """Turns an output into an array; of rows that map labels to scores it keeps the scores."""
    maps = isinstance(value, list) and value and all(isinstance(row, dict) for row in value)
    return np.asarray([list(row.values()) for row in value] if maps else value)
