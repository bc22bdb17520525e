"""DS-CNN for keyword spotting (Zhang et al. 2017; MLPerf Tiny): separable convolutions on ten features a frame."""

from __future__ import annotations

from models import layers
from models.field.blocks import Blocks

FEATURES = 10
CHANNELS = 64
BLOCKS = 4


def lay(b: Blocks) -> None:
    x = b.input("features", (b.size.resolution, FEATURES, 1))
    x = b.conv(x, b.channels(CHANNELS), (10, 4), stride=2)
    for _ in range(BLOCKS):
        x = b.conv(b.depthwise(x, 3), b.channels(CHANNELS), 1)
    size = (x.shape[1], x.shape[2])
    pooled = layers.average_pool(b.net, x, size, size)
    flat = layers.reshape(b.net, pooled, (1, pooled.shape[3]))
    b.net.output(layers.softmax(b.net, b.dense(flat, b.size.classes)))
