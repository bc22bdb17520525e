"""Float operators that become one layer, and those that must not: what is left, and that it computes the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from support.device.hostlib import Array, HostModel
from support.models.float_rows import assert_same_bits
from support.models.relax_modules import compiled_module, module_of
from uaccel.ops.operator import constant
from uaccel.tvm_api import relax
from uaccel.tvm_api.executor import Executor

CONV, DENSE, UP = "conv2d_float", "fully_connected_float", "transpose_conv2d_float"
OURS = {CONV, DENSE, "max_pool2d_float", "average_pool2d_float"}
IMAGE = (1, 4, 6, 5)
nn, op = relax.op.nn, relax.op


@dataclass(frozen=True)
class Case:
    """``layers``: those that are left and no change of layout or shape."""

    build: Callable[..., Any]
    layers: Sequence[str]
    shapes: Sequence[tuple[int, ...]] = (IMAGE,)


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def conv(x: Any, channels: int = 4, inputs: int = 4, **options: Any) -> Any:
    """NCHW, 3x3."""
    weights = constant(floats(channels, inputs // options.get("groups", 1), 3, 3))
    return nn.conv2d(x, weights, padding=[1, 1, 1, 1], **options)


def channels(*, seed: int = 1, count: int = 4) -> Any:
    return constant(floats(1, count, 1, 1, seed=seed))


def twice(x: Any) -> Any:
    """Somebody else reads what comes before the activation."""
    block = relax.BlockBuilder.current()
    begun = block.emit(op.add(conv(x), channels()))
    return relax.Tuple([nn.relu(begun), op.exp(begun)])


def shared(x: Any) -> Any:
    """A sum with the layer's own input, whose bytes are read to the end."""
    return op.add(nn.conv2d(x, constant(floats(4, 4, 1, 1))), x)


def bottleneck(x: Any) -> Any:
    block = relax.BlockBuilder.current()
    first = block.emit(nn.relu(op.add(conv(x), channels())))
    second = block.emit(nn.relu(op.add(conv(first), channels(seed=2))))
    return nn.relu(op.add(op.add(conv(second), channels(seed=3)), first))


def matrix(x: Any) -> Any:
    return op.add(op.matmul(x, constant(floats(6, 7))), constant(floats(7)))


def line(x: Any) -> Any:
    made = nn.conv1d(x, constant(floats(5, 4, 3)), strides=2, padding=[1, 0], dilation=1)
    return nn.relu(op.add(made, constant(floats(1, 5, 1))))


def framed(x: Any) -> Any:
    return nn.conv2d(nn.pad(x, [0, 0, 0, 0, 1, 0, 2, 1]), constant(floats(4, 4, 3, 3)))


def joined(x: Any) -> Any:
    return conv(op.concat([nn.relu(conv(x)), op.sigmoid(x)], 1), inputs=8)


def gated(x: Any) -> Any:
    """Each half of the channels goes its own way."""
    y = conv(x, 8)
    first, second = (op.strided_slice(y, [1], [begin], [begin + 4]) for begin in (0, 4))
    return conv(op.multiply(op.tanh(first), nn.softmax(second, 1)))


def parted(x: Any) -> Any:
    block = relax.BlockBuilder.current()
    parts = block.emit(op.split(conv(x, 9), [2, 5], 1))
    return op.concat([parts[0], conv(parts[1], inputs=3), parts[2]], 1)


def grouped(x: Any) -> Any:
    scale, shift = constant(floats(4)), constant(floats(4, seed=3))
    return conv(nn.group_norm(conv(x), scale, shift, 2, 1, [2, 3]))


def attended(x: Any) -> Any:
    y = conv(x)
    score = conv(op.concat([op.max(y, [1], keepdims=True), op.mean(y, [1], keepdims=True)], 1), 1, inputs=2)
    return conv(op.multiply(y, op.sigmoid(score)))


def enlarged(x: Any) -> Any:
    return conv(op.image.resize2d(conv(x), (8, 12), method="linear", coordinate_transformation_mode="half_pixel"))


def raised(x: Any) -> Any:
    weights = constant(floats(4, 6, 3, 2))
    return nn.conv2d_transpose(x, weights, strides=[2, 3], padding=[1, 0, 1, 0], output_padding=[1, 2])


def of(number: float) -> Any:
    return constant(np.array(number, np.float32))


def hard_swish(x: Any) -> Any:
    y = relax.BlockBuilder.current().emit(conv(x))
    return op.divide(op.multiply(y, op.clip(op.add(y, of(3)), 0, 6)), of(6))


def gelu(x: Any) -> Any:
    half = op.multiply(x, of(0.5))
    return op.multiply(x, op.multiply(op.add(op.erf(op.multiply(half, of(2**0.5))), of(1)), of(0.5)))


def seen(x: Any) -> Any:
    """Somebody else reads the middle of a chain."""
    middle = relax.BlockBuilder.current().emit(op.exp(op.maximum(x, of(0.5))))
    return relax.Tuple([op.add(op.abs(middle), of(2)), middle])


def steep(x: Any) -> Any:
    return op.maximum(nn.leakyrelu(op.minimum(op.subtract(of(1), x), of(2)), 0.3), of(-0.1))


CASES: Mapping[str, Case] = {
    "hard swish": Case(hard_swish, [CONV, "chain_float"]),
    "swish": Case(lambda x: op.multiply(x, op.sigmoid(x)), ["chain_float"]),
    "a sum of errors": Case(gelu, ["chain_float"]),
    "chains apart": Case(seen, ["chain_float", "chain_float"]),
    "bounds and slopes": Case(steep, ["chain_float"]),
    "a chain beside another tensor": Case(
        lambda x, y: op.add(op.tanh(op.multiply(x, of(3))), y), ["chain_float", "add"], (IMAGE, IMAGE)
    ),
    "functions alone": Case(lambda x: op.tanh(op.exp(op.abs(x))), ["abs", "exp", "tanh"]),
    "bias": Case(lambda x: op.add(conv(x), channels()), [CONV]),
    "bias and activation": Case(lambda x: nn.relu(op.add(conv(x), channels())), [CONV]),
    "two bounds": Case(lambda x: op.clip(conv(x), -0.5, 1.5), [CONV]),
    "normalisation": Case(
        lambda x: nn.relu(op.add(op.multiply(op.add(conv(x), channels()), channels(seed=2)), channels(seed=3))), [CONV]
    ),
    "a constant is taken away": Case(lambda x: op.subtract(conv(x), channels()), [CONV]),
    "from a constant it is taken away": Case(lambda x: op.subtract(channels(), conv(x)), [CONV, "subtract"]),
    "a residual": Case(bottleneck, [CONV, CONV, CONV]),
    "its own input": Case(shared, [CONV, "add"]),
    "a sum of two convolutions": Case(lambda x: op.add(conv(x), conv(x, dilation=1)), [CONV, CONV]),
    "read twice": Case(twice, [CONV, "nn.relu", "exp"]),
    "a sum behind the activation": Case(lambda x, y: op.add(nn.relu(conv(x)), y), [CONV, "add"], (IMAGE, IMAGE)),
    "a constant that is no channel's": Case(lambda x: op.add(conv(x), constant(floats(1, 1, 6, 5))), [CONV, "add"]),
    "another function": Case(lambda x: op.tanh(op.add(conv(x), channels())), [CONV, "tanh"]),
    "depthwise": Case(lambda x: nn.relu(op.add(conv(x, groups=4), channels())), [CONV]),
    "a frame of zeros": Case(framed, [CONV]),
    "a line": Case(line, [CONV], ((2, 4, 9),)),
    "a matrix": Case(lambda x: nn.relu(matrix(x)), [DENSE], ((3, 6),)),
    "many matrices": Case(lambda x, y: op.add(matrix(x), y), [DENSE], ((2, 3, 6), (2, 3, 7))),
    "pools": Case(
        lambda x: op.mean(nn.max_pool2d(conv(x), [2, 2], [2, 2], [0, 0, 1, 1]), [2, 3]),
        [CONV, "max_pool2d_float", "average_pool2d_float"],
    ),
    "means without borders": Case(
        lambda x: nn.avg_pool2d(conv(x), [3, 3], [1, 2], [1, 1, 1, 1]), [CONV, "average_pool2d_float"]
    ),
    "means with borders": Case(
        lambda x: nn.avg_pool2d(conv(x), [3, 3], [1, 1], [1, 1, 1, 1], count_include_pad=True),
        [CONV, "average_pool2d_float"],
    ),
    "side by side": Case(joined, [CONV, "sigmoid", "concat", CONV]),
    "halves": Case(gated, [CONV, "strided_slice", "tanh", "strided_slice", "nn.softmax", "multiply", CONV]),
    "attention to places": Case(attended, [CONV, "max", "mean", "concat", CONV, "sigmoid", "multiply", CONV]),
    "two slopes a channel": Case(
        lambda x: conv(nn.prelu(conv(x), constant(floats(4)), axis=1)), [CONV, "nn.prelu", CONV]
    ),
    "a resize": Case(enlarged, [CONV, "image.resize2d", CONV]),
    "a transposed convolution": Case(raised, [UP]),
    "means of parts": Case(lambda x: nn.adaptive_avg_pool2d(conv(x), [2, 5]), [CONV, "average_pool2d_float"]),
    "means of uneven parts": Case(lambda x: nn.adaptive_avg_pool2d(conv(x), [3, 2]), [CONV, "nn.adaptive_avg_pool2d"]),
    "a split": Case(parted, [CONV, "strided_slice", "strided_slice", "strided_slice", CONV, "concat"]),
    "a mirrored frame": Case(
        lambda x: conv(nn.pad(conv(x), [0, 0, 0, 0, 1, 2, 2, 1], "reflect")), [CONV, "nn.pad", CONV]
    ),
    "normalised groups": Case(grouped, [CONV, "nn.group_norm", CONV]),
    "a pool alone, whose channels lie apart": Case(lambda x: nn.max_pool2d(x, [2, 2]), ["nn.max_pool2d"]),
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", CASES)
def test_what_is_left_computes_the_same(name: str) -> None:
    case = CASES[name]
    values = [floats(*shape, seed=7 + number) for number, shape in enumerate(case.shapes)]
    module = module_of(values, case.build)
    compiled = compiled_module(module)
    plain = ("permute_dims", "reshape")
    assert [layer.op for layer in compiled.program.layers if layer.op not in plain] == case.layers
    found = HostModel(compiled)(*values)
    for got, meant, lowered in zip(found, Executor(module).run(values), run_of(compiled, values), strict=True):
        np.testing.assert_allclose(got, meant, rtol=1e-5, atol=1e-5 * abs(meant).max())
        if set(case.layers) <= OURS:
            assert_same_bits(got, lowered, name)


TURNED: Sequence[str] = (
    *("side by side", "halves", "attention to places", "two slopes a channel", "a resize", "pools", "a split"),
    *("a mirrored frame", "normalised groups"),
)


@pytest.mark.parametrize("name", TURNED)
def test_only_inputs_and_results_change_their_layout(name: str) -> None:
    case = CASES[name]
    values = [floats(*shape) for shape in case.shapes]
    layers = compiled_module(module_of(values, case.build)).program.layers
    turned = [layer.index for layer in layers if layer.op == "permute_dims" and not layer.is_view]
    assert set(turned) <= {0, len(layers) - 1}


def run_of(compiled: Any, values: Sequence[Array]) -> list[Array]:
    """The module that was lowered, executed."""
    return Executor(compiled.partitioned.model.module).run(values)
