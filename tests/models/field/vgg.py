"""VGG-16 (Simonyan and Zisserman 2014): thirteen convolutions of 3x3 and three matrices, 138 million parameters."""

from __future__ import annotations

import math

from models import layers
from models.field.blocks import Blocks

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
HIDDEN = 4096


def lay(b: Blocks) -> None:
    x = b.image()
    for stage in STAGES:
        for channels in stage:
            x = b.conv(x, b.channels(channels), 3, normalised=False)
        x = b.max_pool(x, 2, 2)
    x = layers.reshape(b.net, x, (1, math.prod(x.shape)))
    for _ in range(2):
        x = b.dense(x, b.channels(HIDDEN), activation="RELU")
    b.net.output(b.dense(x, b.size.classes))
