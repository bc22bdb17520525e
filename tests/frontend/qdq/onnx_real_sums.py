"""Islands of ONNX whose result nobody quantises, a row each."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.models.onnx_island import RANDOM, S8, U8, Build, Case, filled, per_channel, stored
from support.models.onnx_models import Graph, Grid


def real(op: str, shape: tuple[int, ...], weights: tuple[int, ...], kernel: Grid, **attributes: Any) -> Build:
    """A result that nobody quantises, with a bias that is no whole number of products."""

    def build(graph: Graph) -> None:
        x = graph.quantized_input(shape, U8)
        operands = [x, graph.weights(filled(kernel, *weights), kernel)]
        channels = weights[1] if op == "MatMul" else weights[0]
        if op != "MatMul":
            operands.append(graph.constant(RANDOM.normal(0, 3, channels).astype(np.float32)))
        graph.outputs.append((graph.apply(op, *operands, **attributes), "float32"))

    return build


def classified(graph: Graph) -> None:
    """A pool before the product, and a softmax behind it."""
    x = graph.apply("GlobalMaxPool", graph.quantized_input((1, 6, 4, 4), S8))
    y = graph.apply("Gemm", graph.apply("Flatten", x), graph.weights(stored(5, 6), per_channel(5)), transB=1)
    graph.outputs.append((graph.apply("Softmax", y), "float32"))


def functions(shape: tuple[int, ...], *names: str) -> Build:
    """One after the other, of a quantised tensor."""

    def build(graph: Graph) -> None:
        y = graph.quantized_input(shape, U8)
        for name in names:
            y = graph.apply(name, y)
        graph.outputs.append((y, "float32"))

    return build


DENSE_SUMS, CONV_SUMS = ("fully_connected_sums",), ("conv2d_sums",)
REALS = (
    Case("gemm", real("Gemm", (3, 20), (7, 20), per_channel(7), transB=1), DENSE_SUMS),
    Case("gemm of nine bits", real("Gemm", (1, 20), (7, 20), Grid(0.01, 120, "uint8"), transB=1), DENSE_SUMS),
    Case("matmul", real("MatMul", (2, 5, 16), (16, 6), per_channel(6, axis=1)), DENSE_SUMS),
    Case(
        "conv", real("Conv", (2, 4, 8, 7), (6, 4, 3, 3), per_channel(6), pads=[1, 0, 0, 1], strides=[2, 1]), CONV_SUMS
    ),
    Case("conv of a pixel", real("Conv", (2, 4, 5, 6), (3, 4, 1, 1), per_channel(3)), DENSE_SUMS),
    Case("conv in groups", real("Conv", (1, 8, 5, 5), (6, 4, 3, 3), Grid(0.01, 120, "uint8"), group=2), CONV_SUMS),
    Case("conv depthwise", real("Conv", (1, 6, 5, 5), (6, 1, 3, 3), per_channel(6), group=6), CONV_SUMS),
    Case("conv of one axis", real("Conv", (1, 4, 20), (6, 4, 5), per_channel(6), pads=[2, 1]), CONV_SUMS),
    Case("classes", classified, ("fully_connected_sums", "reduce_max")),
)
"""Results that nobody quantises."""
TABLES = (
    Case("tanh", functions((3, 10, 10), "Tanh"), ("float_lookup",)),
    Case("a chain of functions", functions((2, 8, 9, 4), "Softplus", "Tanh", "Neg"), ("float_lookup",)),
    Case("too few elements", functions((5, 51), "Tanh"), ("dequantize",)),
)
"""Functions of one quantised tensor whose results nobody quantises."""
