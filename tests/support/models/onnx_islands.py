"""Islands of ONNX, a row each: what is quantised around an operator, and the operators of uaccel's that it becomes."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.models.onnx_island import (
    RANDOM,
    S8,
    TO_ONE,
    TO_S8,
    TO_U8,
    TO_U16,
    TO_WIDE,
    U8,
    U16,
    WIDE,
    Build,
    Case,
    per_channel,
    stored,
)
from support.models.onnx_island_weights import (
    constant_factor,
    conv,
    conv_then,
    gemm,
    matmul,
    spread_out,
    transposed,
    transposed_line,
)
from support.models.onnx_models import Graph, Grid


def attention(*grids: Grid) -> Build:
    """Queries by transposed keys: both are computed at run time."""

    def build(graph: Graph) -> None:
        q, k = (graph.quantized_input((1, 6, 2, 8), grid) for grid in grids[:2])
        q, k = graph.apply("Transpose", q, perm=[0, 2, 1, 3]), graph.apply("Transpose", k, perm=[0, 2, 3, 1])
        graph.quantized_output(graph.apply("MatMul", q, k), grids[2])

    return build


def normalised(shape: tuple[int, ...], *inputs: Grid) -> Build:
    """A batch normalisation behind no convolution: of an input, or of several that are joined, each on its grid."""

    def build(graph: Graph) -> None:
        given = [graph.quantized_input(shape, grid) for grid in inputs]
        joined = given[0] if len(given) == 1 else graph.apply("Concat", *given, axis=1)
        channels = shape[1] * len(given)
        mean, scale, offset = (RANDOM.uniform(-1.5, 1.5, channels).astype(np.float32) for _ in range(3))
        scale[::2] = -np.abs(scale[::2])  # some factors are negative, however they are drawn
        numbers = (scale, offset, mean, RANDOM.uniform(0.5, 2, channels).astype(np.float32))
        y = graph.apply("BatchNormalization", joined, *(graph.constant(part) for part in numbers))
        graph.quantized_output(graph.apply("Relu", y), TO_S8)

    return build


def two(op: str, first: tuple[int, ...], second: tuple[int, ...], output: Grid = TO_U8) -> Build:
    def build(graph: Graph) -> None:
        a, b = graph.quantized_input(first, U8), graph.quantized_input(second, Grid(0.03, 99, "uint8"))
        graph.quantized_output(graph.apply(op, a, b), output)

    return build


# Operators of one input that become tables; outside of their domain they give what ONNX Runtime gives.
FUNCTIONS = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp"),
    *("Floor", "HardSigmoid", "HardSwish", "Log", "Mish", "Neg", "Reciprocal", "Round", "Selu", "Sign", "Sin"),
    *("Sinh", "Softplus", "Softsign", "Sqrt", "Tan"),
)


def one(
    op: str,
    *constants: Any,
    shape: tuple[int, ...] = (1, 4, 7, 6),
    given: Grid = U8,
    output: Grid = TO_U8,
    **attributes: Any,
) -> Build:
    def build(graph: Graph) -> None:
        x = graph.quantized_input(shape, given)
        operands = [graph.constant(np.asarray(values)) for values in constants]
        graph.quantized_output(graph.apply(op, x, *operands, **attributes), output)

    return build


def layer_norm(graph: Graph) -> None:
    x = graph.quantized_input((2, 3, 16), U8)
    gamma, beta = (graph.constant(RANDOM.normal(1, 0.3, 16).astype(np.float32)) for _ in "ab")
    graph.quantized_output(graph.apply("LayerNormalization", x, gamma, beta), Grid(0.03, 120, "uint8"))


def wide_norm(given: Grid, output: Grid) -> Build:
    def build(graph: Graph) -> None:
        gamma, beta = (graph.constant(RANDOM.normal(1, 0.3, 90).astype(np.float32)) for _ in "ab")
        y = graph.apply("LayerNormalization", graph.quantized_input((1, 4, 90), given), gamma, beta)
        graph.quantized_output(y, output)

    return build


def normal(op: str, **attributes: Any) -> Build:
    def build(graph: Graph) -> None:
        x = graph.quantized_input((2, 6, 5, 4), U8)
        gamma, beta = (graph.constant(RANDOM.normal(1, 0.3, 6).astype(np.float32)) for _ in "ab")
        graph.quantized_output(graph.apply("Relu", graph.apply(op, x, gamma, beta, **attributes)), Grid(0.03, -128))

    return build


def swish(graph: Graph) -> None:
    """x * sigmoid(x) without steps between: one function of one tensor."""
    x = graph.quantized_input((1, 300), S8)
    graph.quantized_output(graph.apply("Mul", x, graph.apply("Sigmoid", x)), TO_S8)


def linear_unit(graph: Graph) -> None:
    """GLU: one half of the channels is the gate of the other."""
    halves = graph.constant(np.array([4, 4]))
    a, b = graph.apply("Split", graph.quantized_input((1, 8, 5, 3), U8), halves, outputs=2, axis=1)
    graph.quantized_output(graph.apply("Mul", a, graph.apply("Sigmoid", b)), TO_U8)


def gated(first: str, second: str, given: Grid, output: Grid, op: str = "Mul") -> Build:
    """Functions of two tensors, without steps between."""

    def build(graph: Graph) -> None:
        x, y = graph.quantized_input((2, 5, 30), given), graph.quantized_input((2, 5, 30), given)
        x, y = (graph.apply(name, part) if name else part for name, part in ((first, x), (second, y)))
        graph.quantized_output(graph.apply(op, x, y), output)

    return build


def excited(graph: Graph) -> None:
    """A gate for each channel, moved behind its function, and a number among the factors."""
    x, y = graph.quantized_input((2, 4, 5, 5), S8), graph.quantized_input((2, 4), U8)
    gate = graph.apply("Reshape", graph.apply("HardSigmoid", y), graph.constant(np.array([2, 4, 1, 1])))
    y = graph.apply("Mul", graph.apply("Mul", gate, x), graph.constant(np.float32(-0.5)))
    graph.quantized_output(graph.apply("Relu", y), Grid(0.03, -128))


def sloped(*shape: int, given: Grid = U8, output: Grid = TO_U8) -> Build:
    """PReLU behind a convolution, whose axes lie in another order."""

    def build(graph: Graph) -> None:
        x = graph.quantized_input((3, 4, 6, 6), given)
        x = graph.apply("Conv", x, graph.weights(stored(4, 4, 3, 3), per_channel(4)))
        slopes = graph.constant(RANDOM.normal(0.1, 0.6, shape).astype(np.float32))
        graph.quantized_output(graph.apply("PRelu", graph.again(x, output), slopes), output)

    return build


def centred(graph: Graph) -> None:
    """The distance of each element from a mean, which has no step of its own."""
    x = graph.quantized_input((1, 4, 6, 6), U8)
    mean = graph.apply("ReduceMean", x, axes=[2, 3], keepdims=0)
    mean = graph.apply("Reshape", mean, graph.constant(np.array([1, 4, 1, 1])))
    graph.quantized_output(graph.apply("Sub", x, mean), TO_U8)


def concat(graph: Graph) -> None:
    parts = [graph.quantized_input((1, n, 3, 3), grid) for n, grid in ((2, U8), (3, Grid(0.2, 7, "uint8")), (1, TO_U8))]
    graph.quantized_output(graph.apply("Concat", *parts, axis=1), TO_U8)


def split(graph: Graph) -> None:
    x = graph.quantized_input((1, 6, 4, 4), U8)
    for part in graph.apply("Split", x, graph.constant(np.array([2, 4])), outputs=2, axis=1):
        graph.quantized_output(part, TO_U8)


def chain(graph: Graph) -> None:
    """Layouts meet: convolution, pooling, a transpose, a slice, a flattening into a matrix product."""
    x = graph.quantized_input((1, 3, 12, 12), U8)
    x = graph.again(graph.apply("Conv", x, graph.weights(stored(8, 3, 3, 3), per_channel(8)), pads=[1, 1, 1, 1]), TO_S8)
    x = graph.again(graph.apply("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), TO_S8)
    y = graph.again(
        graph.apply("Conv", x, graph.weights(stored(8, 1, 3, 3), per_channel(8)), group=8, pads=[1] * 4), S8
    )
    x = graph.again(graph.apply("Add", x, y), TO_S8)
    x = graph.apply("Transpose", x, perm=[0, 1, 3, 2])
    x = graph.apply("Flatten", x)
    x = graph.again(graph.apply("MatMul", x, graph.weights(stored(8 * 36, 10), Grid(0.003))), TO_S8)
    graph.quantized_output(x, TO_U8)


def shuffles(*groups: int) -> Build:
    """Of the channels of a convolution, without a step between."""

    def build(graph: Graph) -> None:
        x = graph.quantized_input((1, 12, 5, 6), S8)
        x = graph.again(graph.apply("Conv", x, graph.weights(stored(12, 12, 1, 1), per_channel(12))), TO_S8)
        for count in groups:
            x = graph.apply("Reshape", x, graph.constant(np.array([1, count, 12 // count, 5, 6])))
            x = graph.apply("Transpose", x, perm=[0, 2, 1, 3, 4])
            x = graph.apply("Reshape", x, graph.constant(np.array([1, 12, 5, 6])))
        graph.quantized_output(graph.apply("Conv", x, graph.weights(stored(12, 12, 1, 1), per_channel(12))), TO_S8)

    return build


def tokens(graph: Graph) -> None:
    """Of an image, and an image of tokens: axes that are split and joined, and one that is not."""
    x = graph.quantized_input((1, 8, 4, 6), S8)
    x = graph.again(graph.apply("Conv", x, graph.weights(stored(8, 8, 1, 1), per_channel(8))), TO_S8)
    y = graph.apply("Transpose", graph.apply("Reshape", x, graph.constant(np.array([1, 8, 24]))), perm=[0, 2, 1])
    y = graph.again(graph.apply("MatMul", y, graph.weights(stored(8, 8), Grid(0.003))), TO_S8)
    y = graph.apply("Transpose", graph.apply("Reshape", y, graph.constant(np.array([1, 12, 2, 8]))), perm=[0, 3, 1, 2])
    y = graph.apply("Reshape", y, graph.constant(np.array([1, 8, 4, 6])))
    y = graph.again(graph.apply("Conv", y, graph.weights(stored(8, 8, 1, 1), Grid(0.003))), TO_S8)
    graph.quantized_output(graph.apply("Reshape", y, graph.constant(np.array([4, 16, 3]))), TO_S8)


def pad_then_conv(graph: Graph) -> None:
    x = graph.quantized_input((1, 3, 8, 8), U8)
    x = graph.apply("Pad", x, graph.constant(np.array([0, 0, 0, 1, 0, 0, 1, 0])))
    graph.quantized_output(graph.apply("Conv", x, graph.weights(stored(4, 3, 3, 3), Grid(0.01))), TO_S8)


def mean_flattened(graph: Graph) -> None:
    """A global pool, as PyTorch's exporter writes it."""
    y = graph.apply("ReduceMean", graph.quantized_input((1, 6, 5, 5), U8), axes=[2, 3], keepdims=1)
    graph.quantized_output(graph.apply("Flatten", y), TO_U8)


def joined_then_pooled(graph: Graph) -> None:
    """No step between the function, the concatenation and the pool."""
    a, b = graph.quantized_input((1, 4, 8, 8), U8), graph.quantized_input((1, 3, 8, 8), Grid(0.2, 7, "uint8"))
    y = graph.apply("Concat", a, graph.apply("LeakyRelu", b, alpha=0.1), axis=1)
    graph.quantized_output(graph.apply("MaxPool", y, **HALVED), TO_U8)


def convolved_then_joined(graph: Graph) -> None:
    x = graph.quantized_input((1, 4, 8, 8), U8)
    y = graph.apply("Relu", graph.apply("Conv", x, graph.weights(stored(6, 4, 3, 3), per_channel(6))))
    pooled = graph.apply("MaxPool", x, kernel_shape=[3, 3])
    graph.quantized_output(graph.apply("Concat", y, pooled, axis=1), TO_U8)


def rectified_after_pool(graph: Graph) -> None:
    """Clamps hold for what comes before the pool as well."""
    x = graph.quantized_input((1, 4, 9, 9), S8)
    y = graph.apply("Conv", x, graph.weights(stored(5, 4, 3, 3), Grid(0.01)))
    graph.quantized_output(graph.apply("Relu", graph.apply("MaxPool", y, **HALVED)), TO_S8)


def wide(shape: tuple[int, ...], weights: tuple[int, ...], **attributes: Any) -> Build:
    """Of 16 bits, with an activation."""

    def build(graph: Graph) -> None:
        x = graph.quantized_input(shape, WIDE)
        y = graph.apply("Conv", x, graph.weights(stored(*weights), per_channel(weights[0])), **attributes)
        graph.quantized_output(graph.apply("Relu", y), TO_WIDE)

    return build


def wide_transposed(graph: Graph) -> None:
    x, w = graph.quantized_input((1, 4, 5, 5), WIDE), graph.weights(stored(4, 6, 3, 3), Grid(0.01))
    graph.quantized_output(graph.apply("ConvTranspose", x, w, strides=[2, 2]), TO_WIDE)


def wide_gemm(graph: Graph) -> None:
    x, w = graph.quantized_input((3, 20), WIDE), graph.weights(stored(20, 7), Grid(0.01))
    graph.quantized_output(graph.apply("Gemm", x, w), TO_WIDE)


def between(first: Grid, second: Grid) -> Build:
    """A convolution and a sum between 8 and 16 bits."""

    def build(graph: Graph) -> None:
        x = graph.quantized_input((1, 4, 6, 6), first)
        y = graph.apply("Conv", x, graph.weights(stored(4, 4, 3, 3), per_channel(4)), pads=[1, 1, 1, 1])
        y = graph.again(graph.apply("Relu", y), second)
        graph.quantized_output(graph.apply("Add", x, y), TO_S8)

    return build


def unsigned_transposed(graph: Graph) -> None:
    x, w = graph.quantized_input((1, 4, 5, 5), U16), graph.weights(stored(4, 6, 3, 3), Grid(0.01))
    graph.quantized_output(graph.apply("ConvTranspose", x, w, strides=[2, 2]), TO_U16)


def unsigned_pools(graph: Graph) -> None:
    x = graph.quantized_input((1, 6, 8, 8), U16)
    y = graph.again(graph.apply("AveragePool", x, **WINDOW), U16)
    y = graph.again(
        graph.apply("Concat", graph.apply("MaxPool", y, **HALVED), graph.apply("MaxPool", x, **HALVED), axis=1), U16
    )
    graph.quantized_output(graph.apply("GlobalAveragePool", y), U16)


def one_less(graph: Graph) -> None:
    """Beside 1 the steps of a tensor between 0 and 1 are small."""
    x = graph.quantized_input((2, 300), Grid(1 / 70000, 0, "uint16"))
    graph.quantized_output(graph.apply("Sub", graph.constant(np.float32(1)), x), Grid(1 / 65535, 0, "uint16"))


def padded_by_a_quantised_number(graph: Graph) -> None:
    """As ONNX Runtime's quantiser writes 16 bits before opset 21."""
    grid = [graph.constant(np.array(U16.scale, np.float32)), graph.constant(np.array(U16.zero_point, np.uint16))]
    number = graph.constant(np.float32(-0.5))
    for op in ("QuantizeLinear", "DequantizeLinear"):
        number = graph.apply(op, number, *grid, domain="com.microsoft")
    amounts = graph.constant(np.array([0, 0, 2, 0, 0, 3]))
    graph.quantized_output(graph.apply("Pad", graph.quantized_input((1, 3, 9), U16), amounts, number), U16)


def rectified_wide(graph: Graph) -> None:
    """A clamp between two steps, of what no table holds."""
    graph.quantized_output(graph.apply("Relu", graph.quantized_input((1, 40), WIDE)), TO_WIDE)


def extremes(graph: Graph) -> None:
    """Of a convolution, another tensor and a number for each channel, without steps between."""
    x, y = graph.quantized_input((1, 4, 6, 6), WIDE), graph.quantized_input((1, 4, 6, 6), TO_WIDE)
    z = graph.apply("Conv", x, graph.weights(stored(4, 4, 3, 3), per_channel(4)), pads=[1, 1, 1, 1])
    bounds = graph.constant(RANDOM.normal(5, 3, (4, 1, 1)).astype(np.float32))
    graph.quantized_output(graph.apply("Max", graph.apply("Min", z, bounds), y), TO_WIDE)


def leaky_by_max(graph: Graph) -> None:
    x = graph.quantized_input((1, 40), S8)
    graph.quantized_output(graph.apply("Max", x, graph.apply("Mul", x, graph.constant(np.float32(0.1)))), TO_S8)


def wide_function(op: str, output: Grid, given: Grid = WIDE) -> Build:
    def build(graph: Graph) -> None:
        graph.quantized_output(graph.apply(op, graph.quantized_input((1, 4, 90), given)), output)

    return build


def wide_swish(graph: Graph) -> None:
    """Of a tensor whose axes lie in another order."""
    x = graph.quantized_input((1, 4, 6, 6), WIDE)
    y = graph.apply("Conv", x, graph.weights(stored(4, 4, 1, 1), per_channel(4)))
    y = graph.again(y, TO_WIDE)
    graph.quantized_output(graph.apply("Mul", y, graph.apply("Sigmoid", y)), TO_WIDE)


def with_a_constant(graph: Graph) -> None:
    """A token before the others, and then it alone."""
    x = graph.quantized_input((1, 5, 8), S8)
    y = graph.again(graph.apply("Concat", graph.weights(stored(1, 1, 8), Grid(0.03)), x, axis=1), TO_S8)
    graph.quantized_output(graph.apply("Gather", y, graph.constant(np.array(0)), axis=1), TO_S8)


def resized(mode: str, sizes: tuple[int, ...], output: Grid = TO_U8) -> Build:
    def build(graph: Graph) -> None:
        x = graph.quantized_input((1, 3, 5, 4)[: 2 + len(sizes)], WIDE if output.dtype == "int16" else U8)
        wanted = graph.constant(np.array([1, 3, *sizes]))
        y = graph.apply("Resize", x, "", "", wanted, mode="linear", coordinate_transformation_mode=mode)
        graph.quantized_output(y, output)

    return build


NOISY: dict[str, Any] = {"rarely": 0.03, "opset": 21}
"""A step of 16 bits is 256 times nearer to what ONNX Runtime's sums of float32 lose."""
BYTES, SIGNED, MIXED = (U8, per_channel(6), TO_U8), (S8, Grid(0.01), TO_S8), (U8, Grid(0.01), TO_S8)
ZEROED = (U8, Grid(0.01, 160, "uint8"), TO_U8)
HALVES = (U16, per_channel(6), TO_U16)
CONV, DEPTHWISE = ("conv2d",), ("depthwise_conv2d",)
FOUR: dict[str, Any] = {"opset": 21, "bits": 4}
NIBBLES = (S8, Grid(0.1, 0, "int4"), TO_S8)
HALVED: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}
LINE: dict[str, Any] = {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}
WINDOW: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}

CASES = (
    Case("conv", conv((1, 4, 8, 7), (6, 4, 3, 3), BYTES, pads=[1, 0, 0, 1], strides=[2, 1]), ("conv2d",)),
    Case("conv int8", conv((2, 4, 8, 7), (6, 4, 1, 1), SIGNED), ("conv2d",)),
    Case("conv dilated", conv((1, 2, 9, 9), (6, 2, 3, 3), MIXED, dilations=[2, 2]), ("conv2d",)),
    Case(
        "conv of the same size",
        conv((1, 2, 8, 9), (6, 2, 3, 2), MIXED, strides=[2, 1], auto_pad="SAME_LOWER"),
        ("conv2d",),
    ),
    Case("conv in groups", conv((1, 8, 5, 5), (6, 4, 3, 3), BYTES, group=2), ("conv2d",)),
    Case("conv depthwise", conv((1, 6, 5, 5), (6, 1, 3, 3), BYTES, group=6), ("depthwise_conv2d",)),
    Case("conv depthwise twice", conv((1, 3, 5, 5), (6, 1, 3, 3), BYTES, group=3), ("depthwise_conv2d",)),
    Case("conv of nine bits", conv((1, 4, 5, 5), (6, 4, 3, 3), ZEROED), ("conv2d",)),
    Case("conv of nine bits depthwise", conv((1, 6, 5, 5), (6, 1, 3, 3), ZEROED, group=6), ("conv2d",)),
    Case("conv of one axis", conv((1, 4, 20), (6, 4, 5), BYTES, strides=[2], pads=[2, 1]), ("conv2d",)),
    Case("normalisation", normalised((2, 5, 6, 7), S8), ("depthwise_conv2d",)),
    Case(
        "a number less for each channel",
        one("Sub", np.array([-1, 0.5, 2, 3], np.float32).reshape(4, 1, 1)),
        ("depthwise_conv2d",),
    ),
    Case("normalisation of one axis", normalised((1, 5, 9), U8), ("depthwise_conv2d",)),
    Case("normalisation of uint16", normalised((2, 5, 6, 7), U16), ("depthwise_conv2d",), **NOISY),
    Case("normalisation of what is joined", normalised((1, 4, 5, 6), S8, TO_S8), ("depthwise_conv2d",)),
    Case("conv, relu", conv_then(MIXED, "Relu"), ("conv2d",)),
    Case("conv, clip", conv_then(SIGNED, "Clip", -1.0, 6.0), ("conv2d",)),
    Case("conv padded", pad_then_conv, ("conv2d",)),
    Case("conv transposed", transposed, ("transpose_conv2d",)),
    Case("conv of one axis, transposed", transposed_line, ("transpose_conv2d",)),
    Case(
        "depthwise transposed",
        spread_out((1, 6, 4, 5), (6, 1, 4, 4), per_channel(6, 0), group=6, strides=[2, 2], pads=[1, 1, 1, 1]),
        ("depthwise_conv2d",),
    ),
    Case(
        "groups transposed",
        spread_out((2, 4, 3, 5), (4, 3, 2, 3), Grid(0.01), group=2, strides=[3, 2], output_padding=[1, 0]),
        CONV,
    ),
    Case(
        "transposed with dilation",
        spread_out((1, 3, 5, 4), (3, 5, 3, 2), per_channel(5, 1), dilations=[2, 3], pads=[5, 0, 0, 2]),
        CONV,
    ),
    Case(
        "groups transposed and cut",
        spread_out((1, 2, 9, 9), (2, 2, 2, 2), Grid(0.01), group=2, strides=[8, 8], pads=[12, 0, 16, 3]),
        ("depthwise_conv2d",),
    ),
    Case(
        "groups of one axis, transposed, of nine bits",
        spread_out((1, 4, 7), (4, 2, 5), Grid(0.01, 120, "uint8"), group=2, strides=[2], pads=[3, 1]),
        CONV,
    ),
    Case("gemm", gemm(0, Grid(0.01)), ("fully_connected",)),
    Case("gemm transposed", gemm(1, per_channel(7), (S8, TO_S8)), ("fully_connected",)),
    Case("gemm of nine bits", gemm(1, Grid(0.01, 120, "uint8")), ("fully_connected",)),
    Case("matmul", matmul("int8"), ("fully_connected",)),
    Case("matmul behind a matrix", constant_factor(((6, 7), (7, 5)), Grid(0.03, 120, "uint8"), 0), ("batch_matmul",)),
    Case("matmul behind a matrix for all", constant_factor(((6, 7), (3, 7, 5)), Grid(0.03), 0), ("batch_matmul",)),
    Case("matmul by matrices", constant_factor(((3, 4, 7), (3, 7, 5)), Grid(0.03, 2), 1), ("batch_matmul",)),
    Case("conv of four bits", conv((1, 4, 8, 7), (6, 4, 3, 3), (U8, per_channel(6, 0, "int4"), TO_S8)), CONV, **FOUR),
    Case("depthwise of four bits", conv((1, 6, 5, 5), (6, 1, 3, 3), NIBBLES, group=6), ("depthwise_conv2d",), **FOUR),
    Case("gemm of four bits", gemm(1, per_channel(7, 0, "int4")), ("fully_connected",), **FOUR),
    Case("matmul of four bits", matmul("int4"), ("fully_connected",), **FOUR),
    Case("gemm of four bits without a sign", gemm(0, Grid(0.07, 8, "uint4")), ("fully_connected",), **FOUR),
    Case("gemm of five bits", gemm(0, Grid(0.07, 3, "uint4")), ("fully_connected",), opset=21),
    Case("attention", attention(S8, U8, TO_S8), ("batch_matmul",)),
    Case("attention of 16 bits", attention(WIDE, TO_WIDE, Grid(0.03, 0, "int16")), ("batch_matmul",), **NOISY),
    Case("add", two("Add", (1, 4, 3, 3), (1, 4, 3, 3)), ("weighted_sum",)),
    Case("add broadcast", two("Add", (1, 4, 3, 3), (4, 1, 3)), ("weighted_sum",)),
    Case("sub", two("Sub", (2, 5), (5,)), ("weighted_sum",)),
    Case("max", two("Max", (1, 4, 3, 3), (1, 4, 3, 3)), ("lookup", "maximum")),
    Case("min broadcast", two("Min", (2, 4, 3, 3), (4, 1, 3)), ("lookup", "minimum")),
    Case("max of 16 bits", extremes, ("conv2d", "maximum", "minimum"), **NOISY),
    Case("leaky by the larger", leaky_by_max, ("lookup",)),
    Case("mul", two("Mul", (1, 4, 3, 3), (1, 4, 1, 1)), ("product",)),
    Case("add a number", one("Add", np.float32(0.7)), ("lookup",)),
    *(Case(op.lower(), one(op, shape=(2, 700)), ("lookup",), opset=18) for op in FUNCTIONS),
    Case("round of 16 bits", one("Round", shape=(2, 900), given=WIDE, output=TO_WIDE), ("lookup16",), opset=21),
    Case("floor of 16 bits", one("Floor", shape=(2, 900), given=WIDE, output=TO_WIDE), ("lookup16",), opset=21),
    Case("shrunk", one("Shrink", lambd=0.5, bias=0.2), ("lookup",)),
    Case("above a threshold", one("ThresholdedRelu", alpha=0.55), ("lookup",)),
    Case("swish of opset 24", one("Swish"), ("lookup",), opset=24),
    Case("sigmoid", one("Sigmoid", output=Grid(1 / 256, 0, "uint8")), ("lookup",)),
    Case("tanh", one("Tanh", output=Grid(1 / 128, 128, "uint8")), ("lookup",)),
    Case("leaky relu", one("LeakyRelu", alpha=0.1), ("lookup",)),
    Case("relu", one("Relu"), ("lookup",)),
    Case("clip", one("Clip", np.float32(-0.5), np.float32(3)), ("lookup",)),
    Case("swish", swish, ("lookup",)),
    Case("requantize", one("Identity"), ("lookup",)),
    Case("average pool", one("AveragePool", **WINDOW), ("window_mean",), 0.1),
    Case("average pool counting pads", one("AveragePool", count_include_pad=1, **WINDOW), ("window_mean",), 0.1),
    Case(
        "average pool, last",
        one("AveragePool", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        ("window_mean",),
        0.1,
    ),
    Case("global average pool", one("GlobalAveragePool"), ("scaled_sum",), 0.1),
    Case("mean", one("ReduceMean", axes=[2, 3], keepdims=0), ("scaled_sum",), 0.1),
    Case("max pool", one("MaxPool", output=U8, **WINDOW), ("max_pool2d",)),
    Case("max pool dilated", one("MaxPool", output=U8, kernel_shape=[2, 2], dilations=[2, 2]), ("window_max",)),
    Case("global max pool", one("GlobalMaxPool", output=U8), ("reduce_max",)),
    Case("mean, flattened", mean_flattened, ("scaled_sum",), 0.1),
    Case("concat, max pool", joined_then_pooled, ("lookup", "max_pool2d")),
    Case("concat of a conv", convolved_then_joined, ("conv2d", "lookup", "max_pool2d")),
    Case("max pool, relu", rectified_after_pool, ("conv2d", "max_pool2d")),
    Case("conv of 16 bits", wide((1, 4, 8, 8), (6, 4, 3, 3)), ("conv2d",), **NOISY),
    Case("conv of 16 bits, many", wide((1, 60, 4, 4), (6, 60, 3, 3)), ("conv2d",), **NOISY),
    Case("conv of 16 bits, depthwise", wide((1, 6, 5, 5), (6, 1, 3, 3), group=6), ("depthwise_conv2d",), **NOISY),
    Case("conv of 16 bits, transposed", wide_transposed, ("transpose_conv2d",), **NOISY),
    Case("gemm of 16 bits", wide_gemm, ("fully_connected",), **NOISY),
    Case("8 bits to 16, and back", between(S8, TO_WIDE), ("conv2d", "weighted_sum"), **NOISY),
    Case("16 bits to 8", between(WIDE, TO_S8), ("conv2d", "weighted_sum"), **NOISY),
    Case("relu of 16 bits", rectified_wide, (), **NOISY),
    Case("sigmoid of 16 bits", wide_function("Sigmoid", TO_ONE), ("lookup16",), **NOISY),
    Case("tanh of 16 bits", wide_function("Tanh", TO_ONE), ("lookup16",), **NOISY),
    Case("gelu of 16 bits", wide_function("Gelu", TO_WIDE), ("lookup16",), **NOISY),
    Case("swish of 16 bits", wide_swish, ("conv2d", "lookup16"), **NOISY),
    Case("sigmoid from 8 bits to 16", wide_function("Sigmoid", TO_ONE, U8), ("lookup16",), **NOISY),
    Case("tanh from 16 bits to 8", wide_function("Tanh", Grid(1 / 128, 0)), ("lookup16",), **NOISY),
    Case("conv of uint16", conv((1, 4, 8, 7), (6, 4, 3, 3), HALVES, pads=[1, 0, 0, 1]), CONV, **NOISY),
    Case("depthwise of uint16", conv((1, 6, 5, 5), (6, 1, 3, 3), HALVES, group=6, pads=[1] * 4), DEPTHWISE, **NOISY),
    Case("transposed of uint16", unsigned_transposed, ("transpose_conv2d",), **NOISY),
    Case("gemm of uint16", gemm(0, Grid(0.01), (U16, TO_U16)), ("fully_connected",), **NOISY),
    Case("attention of uint16", attention(U16, TO_U16, Grid(0.03, 40000, "uint16")), ("batch_matmul",), **NOISY),
    Case("add of uint16", gated("", "", U16, TO_U16, "Add"), ("weighted_sum",), **NOISY),
    Case("one less a tensor of uint16", one_less, ("weighted_sum",), **NOISY),
    Case("pad of uint16 by a quantised number", padded_by_a_quantised_number, (), **NOISY),
    Case("mul of uint16", gated("", "", U16, TO_U16), ("product",), **NOISY),
    Case("tanh of uint16", wide_function("Tanh", Grid(1 / 32768, 32768, "uint16"), U16), ("lookup16",), **NOISY),
    Case("softmax of uint16", wide_function("Softmax", Grid(1 / 65536, 0, "uint16"), U16), ("softmax_once",), **NOISY),
    Case("means of uint16", unsigned_pools, ("max_pool2d", "scaled_sum", "window_mean"), **NOISY),
    Case("uint8 to uint16", between(S8, TO_U16), ("conv2d", "weighted_sum"), **NOISY),
    Case("a constant and a part", with_a_constant, ("lookup",)),
    Case("prelu", one("PRelu", np.array([0.2], np.float32)), ("lookup",)),
    Case("prelu of channels", sloped(4, 1, 1), ("conv2d", "prelu_once")),
    Case("prelu of elements", sloped(4, 4, 4), ("conv2d", "prelu_once")),
    Case("prelu of 16 bits", sloped(4, 1, 1, given=WIDE, output=TO_WIDE), ("conv2d", "prelu_once"), **NOISY),
    Case("gated linear unit", linear_unit, ("function_product",)),
    Case("gates of channels", excited, ("function_product",)),
    Case("gate of a function", gated("Tanh", "Sigmoid", U8, Grid(1 / 128, 0)), ("function_product",)),
    Case("quotient of functions", gated("", "Exp", Grid(0.02, 3), Grid(0.05, 0), "Div"), ("function_product",)),
    Case("distances from a mean", centred, ("scaled_sum", "weighted_sum"), 0.03),
    Case("gate of 16 bits", gated("", "Sigmoid", WIDE, WIDE), ("lookup16", "product"), **NOISY | {"rarely": 0.1}),
    Case("function beside a tensor", gated("", "Tanh", S8, TO_S8, "Add"), ("lookup16", "weighted_sum")),
    Case("number less a tensor", one("Mul", np.full((1, 4, 1, 1), -0.3, np.float32)), ("lookup",)),
    Case("pad, reflected", one("Pad", np.array([0, 0, 2, 1, 0, 0, 1, 2]), output=U8, mode="reflect"), ()),
    Case("pad, its edges", one("Pad", np.array([0, 0, 2, 1, 0, 0, 0, 2]), output=U8, mode="edge"), ()),
    Case("max pool of one axis", one("MaxPool", shape=(1, 4, 9), output=U8, **LINE), ("max_pool2d",)),
    Case("average pool of one axis", one("AveragePool", shape=(1, 4, 9), **LINE), ("window_mean",), 0.1),
    Case("normalisation of no axis", normalised((3, 5), S8), ("depthwise_conv2d",)),
    Case("resize to twice", resized("half_pixel", (10, 8)), ("resize_once",), 0.05),
    Case("resize of one axis", resized("half_pixel", (10,)), ("resize_once",), 0.05),
    Case("resize by corners", resized("align_corners", (9, 10)), ("resize_once",), 0.05),
    Case("resize to less", resized("half_pixel", (3, 3)), ("resize_once",), 0.05),
    Case("resize of 16 bits", resized("asymmetric", (10, 12), TO_WIDE), ("resize_once",), **NOISY),
    Case("softmax", one("Softmax", output=Grid(1 / 256, 0, "uint8")), ("softmax_once",)),
    Case("softmax of channels", one("Softmax", output=Grid(1 / 256, -128), axis=1), ("softmax_once",)),
    Case("softmax of 16 bits", wide_function("Softmax", TO_ONE), ("softmax_once",), **NOISY),
    Case("layer norm", layer_norm, ("layer_norm",)),
    Case("layer norm of 16 bits", wide_norm(WIDE, Grid(0.0002, 0, "int16")), ("layer_norm",), **NOISY),
    Case("layer norm of uint16", wide_norm(U16, Grid(0.0002, 30000, "uint16")), ("layer_norm",), **NOISY),
    Case("instance norm", normal("InstanceNormalization"), ("layer_norm",)),
    Case("group norm", normal("GroupNormalization", num_groups=3), ("layer_norm",), opset=21),
    Case("concat", concat, ("lookup",)),
    Case("split", split, ("lookup",)),
    Case("transpose", one("Transpose", output=U8, perm=[0, 2, 3, 1]), ()),
    Case("slice", one("Slice", np.array([1]), np.array([6]), np.array([2]), np.array([2]), output=U8), ()),
    Case("pad", one("Pad", np.array([0, 0, 1, 0, 0, 0, 0, 2]), output=U8), ()),
    Case("gather", one("Gather", np.array([3, 0, -1]), output=U8, axis=1), ()),
    Case("gather of several places", one("Gather", np.array([[3, 0, 1], [1, 2, -1]]), output=U8, axis=2), ()),
    Case("shuffles", shuffles(2, 2), ("conv2d",)),
    Case("tokens of an image", tokens, ("conv2d", "fully_connected")),
    Case("layouts", chain, ("conv2d", "depthwise_conv2d", "fully_connected", "lookup", "max_pool2d", "weighted_sum")),
)


def operators_with_integers() -> set[str]:
    """ONNX's operators that some row has between dequantize and quantize."""
    found: set[str] = set()
    for case in CASES:
        graph = Graph()
        case.build(graph)
        found |= {node.op_type for node in graph.nodes}
    return found - {"QuantizeLinear", "DequantizeLinear"}
