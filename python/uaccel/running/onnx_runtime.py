"""ONNX Runtime as the file says: operator by operator, with sums that are right on every processor.

Where a processor lacks VNNI, ONNX Runtime adds products of uint8 and int8 up in pairs of 16 bits, and saturates them.
So a signed operand beside an unsigned one is made unsigned here: 128 more, and 128 more in its zero point. The sum is
the same.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.frontend.onnx.structure import all_graphs, graphs_of

Array = NDArray[Any]
Samples = Sequence[Sequence[Array]]
_LINEAR, _INTEGER = ((0, 2), (3, 5)), ((0, 2), (1, 3))
_SUMS = {
    "QLinearConv": _LINEAR,
    "QLinearMatMul": _LINEAR,
    "QGemm": _LINEAR,
    "ConvInteger": _INTEGER,
    "MatMulInteger": _INTEGER,
}
"""Operators that add products of integers up: where their two operands are, and the zero point of each."""


def onnx_runtime(path: Path, samples: Samples) -> tuple[str, list[list[Array]]] | None:
    """Its name, and outputs by sample; None where it is not installed, or lacks an operator of the model."""
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError:
        return None
    try:
        session = session_of(path)
        results = [session.run(None, _given(session.get_inputs(), sample)) for sample in samples]
    except Exception:  # it lacks operators that uaccel has; then it has no opinion
        return None
    return f"ONNX Runtime {runtime.__version__}", [[_as_array(value) for value in row] for row in results]


def session_of(model: Any | Path) -> Any:
    """Of a file, or of a model, with no graph optimisation."""
    onnx, runtime = importlib.import_module("onnx"), importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    loaded = onnx.load(model) if isinstance(model, Path) else model
    source = unsigned_sums(loaded).SerializeToString() if _SUMS.keys() & _operators(loaded.graph) else None
    given = source or (str(model) if isinstance(model, Path) else model.SerializeToString())
    return runtime.InferenceSession(given, options, providers=["CPUExecutionProvider"])


def unsigned_sums(model: Any) -> Any:
    """A copy of the model: no sum of it has a signed and an unsigned operand."""
    onnx = importlib.import_module("onnx")
    copied = onnx.shape_inference.infer_shapes(model)
    _Unsigned(onnx).rewrite(copied.graph, {})
    return copied


class _Unsigned:
    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx

    def rewrite(self, graph: Any, outer: dict[str, int]) -> None:
        """The graph and those inside it, with what they see of ``outer`` types."""
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
        """Of an operand, or of its zero point where the operand's own is not known."""
        names = [node.input[place] for place in places if place < len(node.input)]
        return next((kind for name in names if (kind := types.get(name))), 0)

    def _unsigned(self, node: Any, operand: int, zero: int) -> list[Any]:
        """What has to stand before the node, whose inputs become those that it gives."""
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


def _given(inputs: Sequence[Any], sample: Sequence[Array]) -> dict[str, Array]:
    """By name; what is half precision in the file is float32 in firmware."""
    halves = [entry.type == "tensor(float16)" for entry in inputs]
    values = [value.astype(np.float16) if half else value for half, value in zip(halves, sample, strict=True)]
    return {entry.name: value for entry, value in zip(inputs, values, strict=True)}


def _as_array(value: Any) -> Array:
    """Of maps from labels to scores, one a row, the scores."""
    maps = isinstance(value, list) and value and all(isinstance(row, dict) for row in value)
    return np.asarray([list(row.values()) for row in value] if maps else value)
