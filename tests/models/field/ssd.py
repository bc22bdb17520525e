"""SSD (Liu et al. 2015) on ResNet-50 cut off after its third stage, as MLPerf has it: box offsets and class scores.

Two outputs: [1, boxes, 4] and [1, boxes, classes], boxes of all six sizes of image one after the other. Decoding boxes
and choosing among them is left to the application.
"""

from __future__ import annotations

import math

from models import layers
from models.field import resnet
from models.field.blocks import Blocks
from models.network import Value

EXTRA = ((256, 512), (256, 512), (128, 256), (128, 256), (128, 256))
"""Channels within and after each further step; the first three halve the image, the others cut its border off."""
HALVING = 3
BOXES = (4, 6, 6, 6, 4, 4)
"""A pixel of each size of image."""


def lay(b: Blocks) -> None:
    x = resnet.stem(b)
    for stage in range(3):
        x = resnet.bottlenecks(b, x, stage, halves=stage == 1)
    seen = [x]
    for step, (inner, out) in enumerate(EXTRA):
        x = b.conv(x, b.channels(inner), 1)
        cuts = step >= HALVING and min(x.shape[1:3]) >= 3
        halves = step < HALVING
        x = b.conv(x, b.channels(out), 3, stride=2 if halves else 1, padding="VALID" if cuts else "SAME")
        seen.append(x)
    b.net.output(_head(b, seen, 4))
    b.net.output(_head(b, seen, b.size.classes))


def _head(b: Blocks, seen: list[Value], each: int) -> Value:
    found = [
        b.conv(x, boxes * each, 3, activation="NONE", normalised=False) for x, boxes in zip(seen, BOXES, strict=True)
    ]
    rows = [layers.reshape(b.net, value, (1, math.prod(value.shape) // each, each)) for value in b.recalibrated(found)]
    return layers.concatenate(b.net, rows, 1)
