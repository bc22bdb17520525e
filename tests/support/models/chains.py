"""Networks of any number of layers: blocks of two convolutions and an addition."""

from __future__ import annotations

from models import layers
from models.network import Network, Value
from models.seeded import Seeded

CHANNELS = 8
SIZE = 8


def chain(count: int) -> bytes:
    """A TFLite file with ``count`` layers."""
    seeded, net = Seeded(1), Network(f"uaccel chain of {count} layers")
    x = net.input("image", seeded.inputs((SIZE, SIZE, CHANNELS), 6))
    shortcut, last = x, x
    for number in range(count):
        if number % 3 == 2:
            shortcut = last = layers.add(net, shortcut, last, activation="RELU")
        else:
            last = _conv(net, seeded, last, "RELU" if number % 3 == 0 else "NONE")
    return net.build(last)


def _conv(net: Network, seeded: Seeded, x: Value, activation: str) -> Value:
    return layers.conv2d(net, x, *seeded.conv(CHANNELS, (3, 3), CHANNELS), activation=activation)
