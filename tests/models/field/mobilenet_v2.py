"""MobileNet V2 (Sandler et al. 2018): inverted residuals with linear bottlenecks."""

from __future__ import annotations

from models import layers
from models.field.blocks import Blocks
from models.network import Value

STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, blocks, stride of the first."""


def lay(b: Blocks) -> None:
    x = b.conv(b.image(), b.channels(32), 3, stride=2, activation="RELU6")
    for expansion, channels, count, stride in STAGES:
        for block in range(count):
            x = _inverted(b, x, expansion, b.channels(channels), stride if block == 0 else 1)
    b.classify(b.conv(x, b.channels(1280), 1, activation="RELU6"))


def _inverted(b: Blocks, x: Value, expansion: int, out: int, stride: int) -> Value:
    y = x if expansion == 1 else b.conv(x, expansion * x.shape[3], 1, activation="RELU6")
    y = b.depthwise(y, 3, stride=stride, activation="RELU6")
    y = b.conv(y, out, 1, activation="NONE")
    return layers.add(b.net, x, y) if stride == 1 and x.shape[3] == out else y
