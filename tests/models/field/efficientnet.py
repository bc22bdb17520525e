"""EfficientNet-B0 (Tan and Le 2019): inverted residuals with squeeze-and-excite and swish, x * sigmoid(x)."""

from __future__ import annotations

from models import layers
from models.field.blocks import Blocks
from models.network import Value

STAGES = (
    (1, 3, 16, 1, 1),
    (6, 3, 24, 2, 2),
    (6, 5, 40, 2, 2),
    (6, 3, 80, 3, 2),
    (6, 5, 112, 3, 1),
    (6, 5, 192, 4, 2),
    (6, 3, 320, 1, 1),
)
"""Expansion, kernel, channels, blocks, stride of the first."""


def lay(b: Blocks) -> None:
    x = _swish(b, b.conv(b.image(), b.channels(32), 3, stride=2, activation="NONE"))
    for expansion, kernel, channels, count, stride in STAGES:
        for block in range(count):
            x = _inverted(b, x, expansion, kernel, b.channels(channels), stride if block == 0 else 1)
    b.classify(_swish(b, b.conv(x, b.channels(1280), 1, activation="NONE")))


def _inverted(b: Blocks, x: Value, expansion: int, kernel: int, out: int, stride: int) -> Value:
    y = x if expansion == 1 else _swish(b, b.conv(x, expansion * x.shape[3], 1, activation="NONE"))
    y = _swish(b, b.depthwise(y, kernel, stride=stride, activation="NONE"))
    y = _excited(b, y, max(1, x.shape[3] // 4))
    y = b.conv(y, out, 1, activation="NONE")
    return layers.add(b.net, x, y) if stride == 1 and x.shape[3] == out else y


def _swish(b: Blocks, x: Value) -> Value:
    return layers.mul(b.net, x, layers.logistic(b.net, x))


def _excited(b: Blocks, x: Value, squeezed: int) -> Value:
    gate = layers.mean(b.net, x, (1, 2), keep_dims=True)
    gate = _swish(b, b.conv(gate, squeezed, 1, activation="NONE", normalised=False))
    gate = b.conv(gate, x.shape[3], 1, activation="NONE", normalised=False)
    return layers.mul(b.net, x, layers.logistic(b.net, gate))
