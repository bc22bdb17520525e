"""Random layers of networks for small devices, of stated kinds and sizes: what kernels are measured on that were tuned
to none of them.

Channels are mostly multiples of 8, as designers choose them, and one in four times any number; images have 4 to 24
rows and columns, less where a layer would take more than about a million products. Weights are uniform bytes, scales
such that outputs fill their range. Convolutions are rectified three times in four.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.models.tflite_writer import ModelBuilder, OptionValue, Tensor

Options = dict[str, OptionValue]
PRODUCTS = 1_000_000


@dataclass
class Draw:
    """Layers side by side in one model, each on an input of its own."""

    seed: int
    dtype: str = "int8"
    model: ModelBuilder = field(default_factory=ModelBuilder)
    number: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def integer(self, low: int, high: int) -> int:
        """Both ends included."""
        return int(self.random.integers(low, high + 1))

    def one_of(self, *choices: Any) -> Any:
        return choices[self.integer(0, len(choices) - 1)]

    def channels(self, low: int = 8, high: int = 128) -> int:
        return self.integer(low, high) if self.integer(0, 3) == 0 else 8 * self.integer(-(-low // 8), high // 8)

    def bytes(self, *shape: int) -> NDArray[np.int8]:
        return self.random.integers(-127, 128, shape).astype(np.int8)

    def trained(self, *shape: int) -> NDArray[np.int8]:
        """Distributed as in trained layers, the largest of some thousand at the end of the range."""
        return self.random.normal(0, 36, shape).round().clip(-127, 127).astype(np.int8)

    @property
    def grid(self) -> dict[str, Any]:
        """Of an activation."""
        if self.dtype == "int16":
            return {"scale": 2.0**-12}
        return {"scale": float(self.random.uniform(0.01, 0.1)), "zero_point": self.integer(-20, 20)}

    def input(self, *shape: int) -> Tensor:
        return self.model.input(f"x{self.number}", shape, self.dtype, **self.grid)

    def weights(self, values: NDArray[np.int8], axis: int, per_channel: bool = True) -> Tensor:
        count = values.shape[axis] if per_channel else 1
        scales = [float(scale) for scale in self.random.uniform(0.002, 0.02, count)]
        return self.model.constant(f"w{self.number}", values, scales=scales, axis=axis)

    def bias(self, x: Tensor, w: Tensor, terms: int, largest: int | None = None, small: bool = False) -> Tensor:
        """``largest``: how far from zero, in units of the sums; else as far as the sums themselves."""
        shape = w.shape[w.axis] if len(w.scales) > 1 or w.axis == 3 else w.shape[0]
        reach = int(73 * 73 * terms**0.5) if largest is None else largest
        values = self.random.integers(-reach, reach + 1, shape)
        kind = np.int64 if self.dtype == "int16" and not small else np.int32
        scales = [x.scales[0] * scale for scale in w.scales]
        return self.model.constant(f"b{self.number}", values.astype(kind), scales=scales)

    def result(self, shape: tuple[int, ...], x: Tensor, w: Tensor, terms: int) -> Tensor:
        """With a grid that sums of so many products fill."""
        largest = 4000.0 if self.dtype == "int16" else 64.0
        spread = x.scales[0] * float(np.mean(w.scales)) * 73 * (73 if self.dtype == "int8" else 9000) * terms**0.5
        zero_point = 0 if self.dtype == "int16" else self.one_of(-128, self.integer(-20, 20))
        return self.model.tensor(f"y{self.number}", shape, self.dtype, scale=spread / largest, zero_point=zero_point)

    def add(self, name: str, inputs: list[Tensor | None], output: Tensor, options: Options | None = None) -> None:
        self.model.op(name, inputs, [output], options or {})
        self.model.output(output)
        self.number += 1

    def activation(self) -> str:
        return str(self.one_of("RELU", "RELU", "RELU6", "NONE")) if self.dtype == "int8" else "NONE"

    def side(self, products: int, least: int = 4) -> int:
        """Of an image on which a pixel takes so many products."""
        return min(self.integer(least, 24), max(least, int((PRODUCTS / max(1, products)) ** 0.5)))


def convolution(
    draw: Draw,
    kernel: tuple[int, int],
    into: int,
    out: int,
    *,
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    padding: str = "SAME",
    trained: bool = False,
) -> None:
    terms = kernel[0] * kernel[1] * into // groups
    reach = [(size - 1) * dilation + 1 for size in kernel]
    side = draw.side(terms * out // stride**2, max(reach))
    x = draw.input(1, side, max(side, reach[1]), into)
    w = draw.weights((draw.trained if trained else draw.bytes)(out, *kernel, into // groups), 0)
    sides = [-(-(n if padding == "SAME" else n - r + 1) // stride) for n, r in zip(x.shape[1:3], reach, strict=True)]
    y = draw.result((1, *sides, out), x, w, terms)
    options: Options = {"padding": padding, "stride_w": stride, "stride_h": stride, "dilation_w_factor": dilation}
    options |= {"dilation_h_factor": dilation, "fused_activation": draw.activation()}
    draw.add("CONV_2D", [x, w, draw.bias(x, w, terms)], y, options)


def pointwise(draw: Draw) -> None:
    convolution(draw, (1, 1), draw.channels(8, 192), draw.channels(8, 192))


def square(draw: Draw) -> None:
    stride = draw.one_of(1, 1, 2)
    convolution(draw, (3, 3), draw.channels(8, 96), draw.channels(8, 96), stride=stride)


def first(draw: Draw) -> None:
    """Few channels in: the first layer of images and spectrograms."""
    size = draw.one_of(3, 3, 5, 7)
    convolution(draw, (size, size), draw.integer(1, 4), draw.channels(8, 32), stride=draw.one_of(1, 2))


def along(draw: Draw) -> None:
    """Along one axis."""
    size = draw.one_of(3, 5, 9)
    convolution(draw, draw.one_of((size, 1), (1, size)), draw.channels(8, 64), draw.channels(8, 64))


def dilated(draw: Draw) -> None:
    convolution(draw, (3, 3), draw.channels(8, 64), draw.channels(8, 64), dilation=2)


def valid(draw: Draw) -> None:
    convolution(draw, (3, 3), draw.channels(8, 64), draw.channels(8, 64), padding="VALID")


def grouped(draw: Draw) -> None:
    groups = draw.one_of(2, 4)
    convolution(draw, (3, 3), 8 * groups * draw.integer(1, 2), 8 * groups * draw.integer(1, 2), groups=groups)


def grouped_few(draw: Draw) -> None:
    """Of 1 to 4 channels each."""
    groups, size = draw.integer(3, 20), draw.one_of(1, 3, 3, 5)
    into, out = groups * draw.integer(2, 4), groups * draw.integer(1, 3)
    convolution(draw, (size, size), into, out, groups=groups)


def deep(draw: Draw) -> None:
    """Sums of some thousand products."""
    convolution(draw, (3, 3), draw.one_of(200, 256, 320, 512), draw.channels(8, 40), trained=True)


def depthwise(
    draw: Draw,
    kernel: tuple[int, int],
    into: int,
    *,
    multiplier: int = 1,
    stride: int = 1,
    dilation: int = 1,
    padding: str = "SAME",
) -> None:
    out, terms = into * multiplier, kernel[0] * kernel[1]
    reach = [(size - 1) * dilation + 1 for size in kernel]
    side = draw.side(4 * terms * out // stride**2, max(reach))
    x = draw.input(1, side, max(side, reach[1]), into)
    w = draw.weights(draw.bytes(1, *kernel, out), 3)
    sides = [-(-(n if padding == "SAME" else n - r + 1) // stride) for n, r in zip(x.shape[1:3], reach, strict=True)]
    y = draw.result((1, *sides, out), x, w, terms)
    options: Options = {"padding": padding, "stride_w": stride, "stride_h": stride, "depth_multiplier": multiplier}
    options |= {"dilation_w_factor": dilation, "dilation_h_factor": dilation, "fused_activation": draw.activation()}
    draw.add("DEPTHWISE_CONV_2D", [x, w, draw.bias(x, w, terms)], y, options)


def depthwise_square(draw: Draw) -> None:
    depthwise(draw, (3, 3), draw.channels(8, 128), stride=draw.one_of(1, 1, 2))


def depthwise_large(draw: Draw) -> None:
    size = draw.one_of(5, 5, 7)
    depthwise(draw, (size, size), draw.channels(8, 96), stride=draw.one_of(1, 1, 2))


def depthwise_along(draw: Draw) -> None:
    size = draw.one_of(3, 5, 9)
    depthwise(draw, draw.one_of((size, 1), (1, size)), draw.channels(8, 96), padding=draw.one_of("SAME", "VALID"))


def depthwise_dilated(draw: Draw) -> None:
    depthwise(draw, (3, 3), draw.channels(8, 96), dilation=2)


def depthwise_one(draw: Draw) -> None:
    """One channel to several, as in speech models."""
    sizes = ((10, 8), (8, 10), (3, 3), (5, 5))
    depthwise(draw, draw.one_of(*sizes), 1, multiplier=draw.one_of(8, 8, 16, 4), stride=draw.one_of(1, 2))


def depthwise_multiplied(draw: Draw) -> None:
    depthwise(draw, (3, 3), draw.channels(3, 32), multiplier=draw.one_of(2, 2, 3, 4, 8))


def fully_connected(
    draw: Draw, deep: int = 0, *, rows: int = 1, large_bias: bool = False, per_channel: bool = False
) -> None:
    """``deep``: inputs of a trained layer, if not drawn."""
    depth, units = deep or draw.channels(8, 512), draw.channels(8, 64 if deep else 256)
    units = draw.one_of(units, draw.integer(2, 12))
    x = draw.input(rows, depth)
    w = draw.weights((draw.trained if deep else draw.bytes)(units, depth), 0, per_channel)
    y = draw.result((rows, units), x, w, depth)
    bias = draw.bias(x, w, depth, (1 << 30) if large_bias else None)
    draw.add("FULLY_CONNECTED", [x, w, bias], y, {"fused_activation": draw.activation()})


def dense(draw: Draw) -> None:
    fully_connected(draw)


def dense_per_channel(draw: Draw) -> None:
    fully_connected(draw, per_channel=True)


def dense_deep(draw: Draw) -> None:
    fully_connected(draw, draw.one_of(1363, 2048, 4096, draw.integer(1500, 3000)), rows=draw.one_of(1, 1, 1, 4))


def dense_rows(draw: Draw) -> None:
    fully_connected(draw, rows=draw.integer(2, 16))


def dense_biased(draw: Draw) -> None:
    """With biases that reach near 2^30."""
    fully_connected(draw, large_bias=True)


def svdf(draw: Draw, state: str) -> None:
    rank, units, memory, depth = draw.integer(1, 2), draw.channels(8, 96), draw.integer(4, 12), draw.channels(16, 96)
    filters = rank * units
    x = draw.input(1, depth)
    features = draw.model.constant(f"w{draw.number}", draw.bytes(filters, depth), scale=0.01)
    scales = (x.scales[0] * 0.01 * 73 * 73 * depth**0.5 / (40 if state == "int8" else 9000), 0.01)
    times = draw.model.constant(f"t{draw.number}", draw.bytes(filters, memory).astype(state), scale=scales[1])
    bias = draw.model.constant(f"b{draw.number}", np.zeros(units, np.int32), scale=scales[0] * scales[1])
    kept = draw.model.variable(f"s{draw.number}", (1, filters * memory), state, scale=scales[0])
    spread = scales[0] * scales[1] * 73 * (40 if state == "int8" else 9000) * (memory * rank) ** 0.5
    y = draw.model.tensor(f"y{draw.number}", (1, units), "int8", scale=spread / 64, zero_point=-7)
    draw.add("SVDF", [x, features, times, bias, kept], y, {"rank": rank, "fused_activation": "RELU"})


def svdf8(draw: Draw) -> None:
    svdf(draw, "int8")


def svdf16(draw: Draw) -> None:
    svdf(draw, "int16")


def lstm(draw: Draw) -> None:
    depth, units, steps = draw.channels(8, 64), draw.channels(8, 64), draw.integer(2, 8)
    small, kind = draw.dtype == "int8", np.int32 if draw.dtype == "int8" else np.int64
    scale, zero = (0.02, -7) if small else (2.0**-12, 0)
    hidden: dict[str, Any] = {"scale": 1 / 128 if small else 2.0**-15, "zero_point": 0}
    arguments: list[Tensor | None] = [None] * 24
    arguments[0] = draw.model.input(f"x{draw.number}", (1, steps, depth), draw.dtype, scale=scale, zero_point=zero)
    for gate in range(4):
        arguments[1 + gate] = draw.model.constant(f"i{draw.number}.{gate}", draw.bytes(units, depth), scale=0.002)
        arguments[5 + gate] = draw.model.constant(f"r{draw.number}.{gate}", draw.bytes(units, units), scale=0.004)
        bias = draw.random.integers(-500, 501, units).astype(kind)
        arguments[12 + gate] = draw.model.constant(f"b{draw.number}.{gate}", bias, scale=0.002 * scale)
    arguments[18] = draw.model.variable(f"h{draw.number}", (1, units), draw.dtype, **hidden)
    arguments[19] = draw.model.variable(f"c{draw.number}", (1, units), "int16", scale=2.0**-12)
    y = draw.model.tensor(f"y{draw.number}", (1, steps, units), draw.dtype, **hidden)
    draw.add("UNIDIRECTIONAL_SEQUENCE_LSTM", arguments, y, {"fused_activation": "TANH", "time_major": False})


def elementwise(draw: Draw, name: str) -> None:
    shape = (1, draw.integer(4, 24), draw.integer(4, 24), draw.channels(4, 64))
    other = draw.model.input(f"z{draw.number}", shape, draw.dtype, **draw.grid)
    x = draw.input(*shape)
    scale = 100 * x.scales[0] * other.scales[0] if name == "MUL" else 1.4 * max(x.scales[0], other.scales[0])
    y = draw.model.tensor(f"y{draw.number}", shape, draw.dtype, scale=scale)
    options: Options = {"fused_activation": draw.activation()}
    draw.add(name, [x, other], y, options | ({"pot_scale_int16": False} if name == "ADD" else {}))


def addition(draw: Draw) -> None:
    elementwise(draw, "ADD")


def multiplication(draw: Draw) -> None:
    elementwise(draw, "MUL")


def pool(draw: Draw, name: str) -> None:
    side, channels = draw.integer(6, 24), draw.channels(4, 96)
    size = draw.one_of(2, 2, 3, side)
    stride = min(size, draw.one_of(1, 2, 2))
    x = draw.input(1, side, side, channels)
    extent = 1 if size == side else -(-side // stride)
    scale, zero_point = x.scales[0], 0 if draw.dtype == "int16" else x.zero_points[0]
    y = draw.model.tensor(
        f"y{draw.number}", (1, extent, extent, channels), draw.dtype, scale=scale, zero_point=zero_point
    )
    options: Options = {"padding": "VALID" if size == side else "SAME", "stride_w": stride, "stride_h": stride}
    draw.add(name, [x], y, options | {"filter_width": size, "filter_height": size})


def average(draw: Draw) -> None:
    pool(draw, "AVERAGE_POOL_2D")


def maximum(draw: Draw) -> None:
    pool(draw, "MAX_POOL_2D")


def softmax(draw: Draw) -> None:
    shape = (draw.one_of(1, 1, draw.integer(2, 32)), draw.integer(2, 128))
    y = draw.model.tensor(f"y{draw.number}", shape, "int8", scale=1 / 256, zero_point=-128)
    draw.add("SOFTMAX", [draw.input(*shape)], y, {"beta": 1.0})


Kind = tuple[Callable[[Draw], None], str]
"""What draws a layer, and the type of its activations."""

KINDS: dict[str, Kind] = {
    "convolution 1x1": (pointwise, "int8"),
    "convolution 3x3": (square, "int8"),
    "convolution of 1 to 4 channels": (first, "int8"),
    "convolution k x 1 and 1 x k": (along, "int8"),
    "convolution, dilated": (dilated, "int8"),
    "convolution, VALID": (valid, "int8"),
    "convolution, groups": (grouped, "int8"),
    "convolution, groups of few channels": (grouped_few, "int8"),
    "convolution, deep": (deep, "int8"),
    "depthwise 3x3": (depthwise_square, "int8"),
    "depthwise 5x5 and 7x7": (depthwise_large, "int8"),
    "depthwise k x 1 and 1 x k": (depthwise_along, "int8"),
    "depthwise, dilated": (depthwise_dilated, "int8"),
    "depthwise of 1 channel": (depthwise_one, "int8"),
    "depthwise, multiplied": (depthwise_multiplied, "int8"),
    "fully connected": (dense, "int8"),
    "fully connected, deep": (dense_deep, "int8"),
    "fully connected, per channel": (dense_per_channel, "int8"),
    "fully connected, rows": (dense_rows, "int8"),
    "fully connected, large biases": (dense_biased, "int8"),
    "SVDF, int8 state": (svdf8, "int8"),
    "SVDF, int16 state": (svdf16, "int8"),
    "LSTM": (lstm, "int8"),
    "add": (addition, "int8"),
    "mul": (multiplication, "int8"),
    "average pool": (average, "int8"),
    "max pool": (maximum, "int8"),
    "softmax": (softmax, "int8"),
    "int16 convolution 1x1": (pointwise, "int16"),
    "int16 convolution 3x3": (square, "int16"),
    "int16 depthwise 3x3": (depthwise_square, "int16"),
    "int16 depthwise of 1 channel": (depthwise_one, "int16"),
    "int16 fully connected": (dense, "int16"),
    "int16 LSTM": (lstm, "int16"),
    "int16 add": (addition, "int16"),
    "int16 mul": (multiplication, "int16"),
    "int16 average pool": (average, "int16"),
    "int16 max pool": (maximum, "int16"),
}
"""What layers there are, and of which type their activations."""


def drawn(kind: str, seed: int, count: int, kinds: Mapping[str, Kind] = KINDS) -> bytes:
    """A model of so many layers of a kind."""
    maker, dtype = kinds[kind]
    draw = Draw(seed, dtype)
    for _ in range(count):
        maker(draw)
    return draw.model.build()
