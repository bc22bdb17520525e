"""MobileNet V1 (Howard et al. 2017): depthwise separable convolutions, and classes by a convolution of 1x1."""

from __future__ import annotations

from models import layers
from models.field.blocks import Blocks

STEPS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
"""Channels and stride."""


def lay(b: Blocks) -> None:
    x = b.conv(b.image(), b.channels(32), 3, stride=2, activation="RELU6")
    for channels, stride in STEPS:
        x = b.depthwise(x, 3, stride=stride, activation="RELU6")
        x = b.conv(x, b.channels(channels), 1, activation="RELU6")
    size = (x.shape[1], x.shape[2])
    x = b.conv(layers.average_pool(b.net, x, size, size), b.size.classes, 1, activation="NONE", normalised=False)
    b.net.output(layers.reshape(b.net, x, (1, b.size.classes)))
