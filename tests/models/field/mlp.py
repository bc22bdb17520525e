"""A multi-layer perceptron on handwritten digits: two hidden layers of 512."""

from __future__ import annotations

from models import layers
from models.field.blocks import Blocks

HIDDEN = 512


def lay(b: Blocks) -> None:
    x = b.input("pixels", (b.size.resolution**2,))
    for _ in range(2):
        x = b.dense(x, b.channels(HIDDEN), activation="RELU")
    b.net.output(layers.softmax(b.net, b.dense(x, b.size.classes)))
