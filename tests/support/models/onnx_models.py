"""Quantised ONNX models of one operator or a few, and what ONNX Runtime makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from uaccel.runner.onnx_runtime import session_of

Array = NDArray[Any]
OPSET = 17
TYPES = {name: getattr(TensorProto, name.upper()) for name in ("int8", "uint8", "int16", "uint16")} | {
    "float32": TensorProto.FLOAT
}


@dataclass(frozen=True)
class Grid:
    """How a tensor is quantised; several scales lie along ``axis``."""

    scale: float | tuple[float, ...]
    zero_point: int = 0
    dtype: str = "int8"
    axis: int = 0

    @property
    def scales(self) -> Array:
        return np.array(self.scale, np.float32)

    @property
    def zeros(self) -> Array:
        return np.full(self.scales.shape, self.zero_point, self.dtype)


@dataclass
class Graph:
    """A graph under construction; ``samples`` gives inputs that reach all stored values."""

    nodes: list[Any] = field(default_factory=list)
    initializers: list[Any] = field(default_factory=list)
    inputs: list[tuple[str, Sequence[int], str]] = field(default_factory=list)
    outputs: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}_{self.count}"

    def constant(self, values: Any, stem: str = "constant") -> str:
        name = self.fresh(stem)
        self.initializers.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def apply(self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """The name of the node's output, or names where it has several."""
        names = [self.fresh(op.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=names[0], domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def input(self, shape: Sequence[int], dtype: str) -> str:
        name = self.fresh("input")
        self.inputs.append((name, shape, dtype))
        return name

    def dequantized(self, name: str, grid: Grid) -> str:
        scale, zero = self.constant(grid.scales, "scale"), self.constant(grid.zeros, "zero")
        return str(self.apply("DequantizeLinear", name, scale, zero, axis=grid.axis))

    def quantized_input(self, shape: Sequence[int], grid: Grid) -> str:
        """Reals of an integer input of the graph."""
        return self.dequantized(self.input(shape, grid.dtype), grid)

    def weights(self, stored: Array, grid: Grid) -> str:
        return self.dequantized(self.constant(stored.astype(grid.dtype), "weights"), grid)

    def quantized_output(self, name: str, grid: Grid) -> None:
        """An integer output of the graph."""
        scale, zero = self.constant(grid.scales, "scale"), self.constant(grid.zeros, "zero")
        self.outputs.append((str(self.apply("QuantizeLinear", name, scale, zero)), grid.dtype))

    def again(self, name: str, grid: Grid) -> str:
        """Quantised and dequantised, as between two operators."""
        scale, zero = self.constant(grid.scales, "scale"), self.constant(grid.zeros, "zero")
        return self.dequantized(str(self.apply("QuantizeLinear", name, scale, zero)), grid)

    def save(self, path: Path, opset: int = OPSET, ir_version: int = 8) -> Path:
        inputs = [helper.make_tensor_value_info(n, TYPES[dtype], list(shape)) for n, shape, dtype in self.inputs]
        outputs = [helper.make_tensor_value_info(name, TYPES[dtype], None) for name, dtype in self.outputs]
        graph = helper.make_graph(self.nodes, "graph", inputs, outputs, self.initializers)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)
        return path

    def samples(self, seed: int) -> dict[str, Array]:
        random = np.random.default_rng(seed)

        def values(shape: Sequence[int], dtype: str) -> Array:
            if dtype == "float32":
                return random.normal(0, 1, shape).astype(np.float32)
            limits = np.iinfo(dtype)
            return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)

        return {name: values(shape, dtype) for name, shape, dtype in self.inputs}


def onnx_runtime(path: Path, inputs: Mapping[str, Array]) -> list[Array]:
    """What the specification's own order of operations gives: no graph optimisation."""
    return [np.asarray(value) for value in session_of(path).run(None, dict(inputs))]
