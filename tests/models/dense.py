"""Three fully connected layers and a softmax: what a new accelerator's own test runs at first.

`uaccel new accelerator` copies it from `accelerator_template/tests/model.tflite`.
"""

from __future__ import annotations

from models import layers
from models.network import Network
from models.seeded import Seeded


def build() -> bytes:
    seeded = Seeded(61)
    net = Network("uaccel dense: three fully connected layers and a softmax")
    x = net.input("samples", seeded.inputs((32,)))
    x = layers.dense(net, x, *seeded.dense(24, 32), activation="RELU")
    x = layers.dense(net, x, *seeded.dense(16, 24), activation="RELU")
    x = layers.dense(net, x, *seeded.dense(4, 16))
    return net.build(layers.softmax(net, x))
