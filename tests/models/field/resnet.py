"""ResNet-18 and -50 (He et al. 2015; 50 with the stride in the 3x3, as everybody has it since)."""

from __future__ import annotations

from models import layers
from models.field.blocks import Blocks
from models.network import Value

CHANNELS = (64, 128, 256, 512)
EXPANSION = 4
BLOCKS_18 = (2, 2, 2, 2)
BLOCKS_50 = (3, 4, 6, 3)


def lay_18(b: Blocks) -> None:
    x = stem(b)
    for stage, channels in enumerate(CHANNELS):
        for block in range(BLOCKS_18[stage]):
            x = _basic(b, x, b.channels(channels), halves=stage > 0 and block == 0)
    b.classify(x)


def lay_50(b: Blocks) -> None:
    x = stem(b)
    for stage in range(4):
        x = bottlenecks(b, x, stage, halves=stage > 0)
    b.classify(x)


def stem(b: Blocks) -> Value:
    x = b.padded_conv(b.image(), b.channels(64), 7)
    return b.max_pool(layers.pad(b.net, x, (1, 1), (1, 1)), 3, 2)


def bottlenecks(b: Blocks, x: Value, stage: int, *, halves: bool) -> Value:
    """A stage of ResNet-50; with ``halves`` the first of its blocks halves the image."""
    for block in range(BLOCKS_50[stage]):
        x = _bottleneck(b, x, b.channels(CHANNELS[stage]), halves=halves and block == 0)
    return x


def _basic(b: Blocks, x: Value, channels: int, *, halves: bool) -> Value:
    y = b.padded_conv(x, channels, 3) if halves else b.conv(x, channels, 3)
    y = b.conv(y, channels, 3, activation="NONE")
    return layers.add(b.net, y, _shortcut(b, x, channels, halves=halves), activation="RELU")


def _bottleneck(b: Blocks, x: Value, channels: int, *, halves: bool) -> Value:
    y = b.conv(x, channels, 1)
    y = b.padded_conv(y, channels, 3) if halves else b.conv(y, channels, 3)
    y = b.conv(y, EXPANSION * channels, 1, activation="NONE")
    return layers.add(b.net, y, _shortcut(b, x, EXPANSION * channels, halves=halves), activation="RELU")


def _shortcut(b: Blocks, x: Value, channels: int, *, halves: bool) -> Value:
    if not halves and x.shape[3] == channels:
        return x
    return b.conv(x, channels, 1, stride=2 if halves else 1, padding="VALID", activation="NONE")
