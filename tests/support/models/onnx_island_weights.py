"""Islands of ONNX with weights: convolutions, transposed ones, matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.models.onnx_island import S8, TO_S8, TO_U8, U8, Build, bias, filled, per_channel, stored
from support.models.onnx_models import Graph, Grid


def conv(shape: tuple[int, ...], weights: tuple[int, ...], grids: tuple[Grid, Grid, Grid], **attributes: Any) -> Build:
    """Input, weights and output lie on ``grids``."""
    data, kernel, output = grids

    def build(graph: Graph) -> None:
        x = graph.quantized_input(shape, data)
        w = graph.weights(filled(kernel, *weights), kernel)
        operands = [x, w] if kernel.zero_point else [x, w, bias(graph, weights[0], data, kernel)]
        graph.quantized_output(graph.apply("Conv", *operands, **attributes), output)

    return build


def conv_then(grids: tuple[Grid, Grid, Grid], op: str, *bounds: float, **attributes: Any) -> Build:
    data, kernel, output = grids

    def build(graph: Graph) -> None:
        x = graph.quantized_input((1, 4, 12, 12), data)
        y = graph.apply("Conv", x, graph.weights(stored(5, 4, 3, 3), kernel), strides=[2, 2])
        limits = [graph.constant(np.float32(bound)) for bound in bounds]
        graph.quantized_output(graph.apply(op, y, *limits, **attributes), output)

    return build


def transposed(graph: Graph) -> None:
    x, w = graph.quantized_input((1, 4, 5, 5), S8), graph.weights(stored(4, 6, 3, 3), Grid(0.01))
    y = graph.apply("ConvTranspose", x, w, strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])
    graph.quantized_output(y, TO_S8)


def spread_out(shape: tuple[int, ...], weights: tuple[int, ...], kernel: Grid, **attributes: Any) -> Build:
    """A transposed convolution in groups, or with dilation."""

    def build(graph: Graph) -> None:
        x, w = graph.quantized_input(shape, U8), graph.weights(filled(kernel, *weights), kernel)
        channels = weights[1] * attributes.get("group", 1)
        operands = [x, w] if kernel.zero_point else [x, w, bias(graph, channels, U8, Grid(0.02))]
        graph.quantized_output(graph.apply("ConvTranspose", *operands, **attributes), TO_S8)

    return build


def transposed_line(graph: Graph) -> None:
    kernel = per_channel(6, 1)
    x, w = graph.quantized_input((1, 4, 9), S8), graph.weights(filled(kernel, 4, 6, 5), kernel)
    y = graph.apply("ConvTranspose", x, w, bias(graph, 6, S8, kernel), strides=[3], pads=[1, 2], output_padding=[1])
    graph.quantized_output(y, TO_S8)


def gemm(trans: int, kernel: Grid, grids: tuple[Grid, Grid] = (U8, TO_U8)) -> Build:
    def build(graph: Graph) -> None:
        x = graph.quantized_input((3, 20), grids[0])
        shape = (7, 20) if trans else (20, 7)
        w = graph.weights(filled(kernel, *shape), kernel)
        operands = [x, w] if kernel.zero_point else [x, w, bias(graph, 7, grids[0], kernel)]
        graph.quantized_output(graph.apply("Gemm", *operands, transB=trans), grids[1])

    return build


def matmul(dtype: str) -> Build:
    def build(graph: Graph) -> None:
        kernel = per_channel(6, 1, dtype)
        x, w = graph.quantized_input((2, 5, 16), S8), graph.weights(filled(kernel, 16, 6), kernel)
        graph.quantized_output(graph.apply("MatMul", x, w), TO_S8)

    return build


def constant_factor(shapes: tuple[tuple[int, ...], tuple[int, ...]], kernel: Grid, which: int) -> Build:
    """A product of a tensor and a constant that is no matrix behind it."""

    def build(graph: Graph) -> None:
        known = graph.weights(filled(kernel, *shapes[which]), kernel)
        tensor = graph.quantized_input(shapes[1 - which], S8)
        graph.quantized_output(graph.apply("MatMul", *((tensor, known) if which else (known, tensor))), Grid(0.19, 5))

    return build
