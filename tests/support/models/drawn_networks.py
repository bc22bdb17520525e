"""A dozen small networks with the operators that the reference networks lack: layers of drawn_layers.py in a chain.

Weights are drawn, and scales such that every layer's output fills its range; they recognise nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from support.models.drawn_layers import Draw, Options, convolution, depthwise
from support.models.tflite_writer import Tensor


@dataclass
class Chain(Draw):
    """Every layer reads what the one before wrote."""

    last: Tensor | None = None

    def input(self, *shape: int) -> Tensor:
        self.last = self.last or self.model.input("x", shape, self.dtype, **self.grid)
        return self.last

    def add(self, name: str, inputs: list[Tensor | None], output: Tensor, options: Options | None = None) -> None:
        self.model.op(name, inputs, [output], options or {})
        self.last, self.number = output, self.number + 1

    @property
    def now(self) -> Tensor:
        assert self.last is not None
        return self.last

    def conv(self, kernel: int | tuple[int, int], out: int, **rest: Any) -> None:
        sides = (kernel, kernel) if isinstance(kernel, int) else kernel
        convolution(self, sides, self.now.shape[3], out, **rest)

    def depth(self, kernel: int | tuple[int, int], **rest: Any) -> None:
        sides = (kernel, kernel) if isinstance(kernel, int) else kernel
        depthwise(self, sides, self.now.shape[3], **rest)

    def plus(self, other: Tensor) -> None:
        scale = 1.4 * max(self.now.scales[0], other.scales[0])
        y = self.model.tensor(f"y{self.number}", other.shape, self.dtype, scale=scale)
        self.add("ADD", [self.now, other], y, {"fused_activation": "NONE", "pot_scale_int16": False})

    def pool(self, name: str, size: int, stride: int) -> None:
        x = self.now
        extents = [(side - size) // stride + 1 for side in x.shape[1:3]]
        y = self.model.tensor(
            f"y{self.number}", (1, *extents, x.shape[3]), self.dtype, scale=x.scales[0], zero_point=x.zero_points[0]
        )
        options: Options = {"padding": "VALID", "stride_w": stride, "stride_h": stride}
        self.add(name, [x], y, options | {"filter_width": size, "filter_height": size})

    def dense(self, units: int, per_channel: bool = False) -> None:
        x = self.now
        depth = int(np.prod(x.shape[1:]))
        if len(x.shape) > 2:
            y = self.model.tensor(
                f"y{self.number}", (1, depth), self.dtype, scale=x.scales[0], zero_point=x.zero_points[0]
            )
            self.add("RESHAPE", [x, self.model.constant(f"s{self.number}", np.array([1, depth], np.int32))], y)
            x = y
        w = self.weights(self.bytes(units, depth), 0, per_channel)
        y = self.result((1, units), x, w, depth)
        self.add("FULLY_CONNECTED", [x, w, self.bias(x, w, depth)], y, {"fused_activation": self.activation()})

    def softmax(self) -> None:
        y = self.model.tensor(f"y{self.number}", self.now.shape, "int8", scale=1 / 256, zero_point=-128)
        self.add("SOFTMAX", [self.now], y, {"beta": 1.0})

    def svdf(self, units: int, rank: int, memory: int, state: str) -> None:
        x, filters = self.now, rank * units
        depth, reach = x.shape[1], 40 if state == "int8" else 9000
        scales = (x.scales[0] * 0.01 * 73 * 73 * depth**0.5 / reach, 0.01)
        features = self.model.constant(f"w{self.number}", self.bytes(filters, depth), scale=0.01)
        times = self.model.constant(f"t{self.number}", self.bytes(filters, memory).astype(state), scale=scales[1])
        bias = self.model.constant(f"b{self.number}", np.zeros(units, np.int32), scale=scales[0] * scales[1])
        kept = self.model.variable(f"s{self.number}", (1, filters * memory), state, scale=scales[0])
        spread = scales[0] * scales[1] * 73 * reach * (memory * rank) ** 0.5
        y = self.model.tensor(f"y{self.number}", (1, units), "int8", scale=spread / 64, zero_point=-7)
        self.add("SVDF", [x, features, times, bias, kept], y, {"rank": rank, "fused_activation": "RELU"})

    def lstm(self, units: int) -> None:
        x, small = self.now, self.dtype == "int8"
        kind = np.int32 if small else np.int64
        hidden: dict[str, Any] = {"scale": 1 / 128 if small else 2.0**-15, "zero_point": 0}
        arguments: list[Tensor | None] = [None] * 24
        arguments[0] = x
        for gate in range(4):
            into, back = self.bytes(units, x.shape[2]), self.bytes(units, units)
            arguments[1 + gate] = self.model.constant(f"i{self.number}.{gate}", into, scale=0.002)
            arguments[5 + gate] = self.model.constant(f"r{self.number}.{gate}", back, scale=0.004)
            bias = self.random.integers(-500, 501, units).astype(kind)
            arguments[12 + gate] = self.model.constant(f"b{self.number}.{gate}", bias, scale=0.002 * x.scales[0])
        arguments[18] = self.model.variable(f"h{self.number}", (1, units), self.dtype, **hidden)
        arguments[19] = self.model.variable(f"c{self.number}", (1, units), "int16", scale=2.0**-12)
        y = self.model.tensor(f"y{self.number}", (1, x.shape[1], units), self.dtype, **hidden)
        self.add("UNIDIRECTIONAL_SEQUENCE_LSTM", arguments, y, {"fused_activation": "TANH", "time_major": False})


def speech(net: Chain) -> None:
    """One depthwise layer of one channel to eight, as the micro speech example has it."""
    net.input(1, 49, 40, 1)
    net.depth((10, 8), multiplier=8, stride=2)
    net.dense(4)
    if net.dtype == "int8":
        net.softmax()


def streaming(net: Chain, state: str) -> None:
    """A keyword spotter of SVDF layers, a frame at a time."""
    net.input(1, 40)
    for units in (96, 64, 64, 32):
        net.svdf(units, 2, 10, state)
    net.dense(12)


def recurrent(net: Chain) -> None:
    net.input(1, 12, 32)
    net.lstm(32)
    net.lstm(24)
    net.dense(8)


def temporal(net: Chain) -> None:
    """Dilated convolutions along time with residual additions."""
    net.input(1, 64, 1, 16)
    net.conv((3, 1), 32)
    for dilation in (1, 2, 4, 8):
        before = net.now
        net.conv((3, 1), 32, dilation=dilation)
        net.plus(before)
    net.dense(10)


def segmenting(net: Chain) -> None:
    """Dilated 3x3 windows, as networks that keep an image's size have them."""
    net.input(1, 24, 24, 3)
    net.conv(3, 16)
    for dilation in (2, 4, 2):
        net.conv(3, 16, dilation=dilation)
    net.conv(1, 8)


def grouped(net: Chain) -> None:
    net.input(1, 24, 24, 3)
    net.conv(3, 32, stride=2)
    for _ in range(2):
        before = net.now
        net.conv(1, 32)
        net.conv(3, 32, groups=4)
        net.conv(1, 32)
        net.plus(before)
    net.pool("AVERAGE_POOL_2D", 12, 1)
    net.dense(10)


def inverted(net: Chain) -> None:
    """MobileNet V2's blocks, with 5x5 windows."""
    net.input(1, 32, 32, 3)
    net.conv(3, 16, stride=2)
    for _ in range(3):
        before = net.now
        net.conv(1, 48)
        net.depth(5)
        net.conv(1, 16)
        net.plus(before)
    net.pool("AVERAGE_POOL_2D", 16, 1)
    net.dense(10)


def lenet(net: Chain) -> None:
    net.input(1, 28, 28, 1)
    net.conv(5, 6, padding="VALID")
    net.pool("MAX_POOL_2D", 2, 2)
    net.conv(5, 16, padding="VALID")
    net.pool("MAX_POOL_2D", 2, 2)
    for units in (120, 84, 10):
        net.dense(units)
    net.softmax()


def narrow(net: Chain) -> None:
    """3x3 windows over 8 to 16 channels."""
    net.input(1, 32, 32, 3)
    for out in (8, 12, 16):
        net.conv(3, out)
        net.pool("MAX_POOL_2D", 2, 2)
    net.dense(10, per_channel=True)


def multiplied(net: Chain) -> None:
    """Depthwise layers that multiply channels, and odd numbers of them."""
    net.input(1, 24, 24, 3)
    net.depth(3, multiplier=4, stride=2)
    net.conv(1, 21)
    net.depth(3, multiplier=2)
    net.conv(1, 30)
    net.depth(3)
    net.conv(1, 10)


def vibration(net: Chain) -> None:
    """Windows along one axis, as for signals of sensors."""
    net.input(1, 128, 1, 3)
    net.conv((9, 1), 16, stride=1)
    net.depth((5, 1))
    net.conv(1, 24)
    net.pool("AVERAGE_POOL_2D", 1, 1)
    net.depth((5, 1))
    net.conv(1, 24)
    net.dense(6)


NETWORKS: dict[str, tuple[Callable[[Chain], None], str]] = {
    "speech": (speech, "int8"),
    "speech, int16": (speech, "int16"),
    "SVDF, int8 state": (lambda net: streaming(net, "int8"), "int8"),
    "SVDF, int16 state": (lambda net: streaming(net, "int16"), "int8"),
    "LSTM": (recurrent, "int8"),
    "LSTM, int16": (recurrent, "int16"),
    "temporal": (temporal, "int8"),
    "temporal, int16": (temporal, "int16"),
    "segmenting": (segmenting, "int8"),
    "groups": (grouped, "int8"),
    "inverted": (inverted, "int8"),
    "LeNet": (lenet, "int8"),
    "narrow": (narrow, "int8"),
    "multiplied": (multiplied, "int8"),
    "vibration": (vibration, "int8"),
}
"""Their layers, and the type of their activations."""


def network(name: str, seed: int = 7) -> bytes:
    make, dtype = NETWORKS[name]
    net = Chain(seed, dtype)
    make(net)
    return net.model.build(net.now)
