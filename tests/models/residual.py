"""A small residual network: additions of branches, a strided shortcut, explicit padding, two outputs."""

from __future__ import annotations

from models import layers
from models.network import Network, Value
from models.seeded import Seeded


def build() -> bytes:
    seeded = Seeded(21)
    net = Network("uaccel residual: additions, a strided shortcut, two outputs")
    image = net.input("image", seeded.inputs((16, 16, 3)))
    stem = layers.conv2d(net, image, *seeded.conv(8, (3, 3), 3), activation="RELU")
    same = _block(net, seeded, stem)
    halved = _strided_block(net, seeded, same)
    net.output(layers.tanh(net, layers.conv2d(net, halved, *seeded.conv(4, (1, 1), 16))))
    pooled = layers.mean(net, halved, (1, 2), keep_dims=False)
    return net.build(layers.dense(net, pooled, *seeded.dense(10, 16)))


def _block(net: Network, seeded: Seeded, x: Value) -> Value:
    channels = x.shape[3]
    y = layers.conv2d(net, x, *seeded.conv(channels, (3, 3), channels), activation="RELU")
    y = layers.conv2d(net, y, *seeded.conv(channels, (3, 3), channels))
    return layers.add(net, x, y, activation="RELU")


def _strided_block(net: Network, seeded: Seeded, x: Value) -> Value:
    """Half the size and twice the channels; the pad is TensorFlow's way to treat both sides alike."""
    channels = x.shape[3]
    padded = layers.pad(net, x, (1, 1), (1, 1))
    weights, bias = seeded.conv(2 * channels, (3, 3), channels)
    y = layers.conv2d(net, padded, weights, bias, stride=(2, 2), padding="VALID", activation="RELU6")
    y = layers.conv2d(net, y, *seeded.conv(2 * channels, (3, 3), 2 * channels))
    shortcut = layers.conv2d(net, x, *seeded.conv(2 * channels, (1, 1), channels), stride=(2, 2))
    return layers.add(net, y, shortcut, activation="RELU")
