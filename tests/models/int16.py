"""16-bit activations, 8-bit weights and 64-bit biases, as TFLite quantises audio models; no zero points."""

from __future__ import annotations

from models import layers
from models.network import Network
from models.seeded import Seeded


def build() -> bytes:
    seeded = Seeded(41)
    net = Network("uaccel int16: 16-bit activations, 8-bit weights", dtype="int16")
    sound = net.input("sound", seeded.inputs((16, 8, 2)))
    x = layers.conv2d(net, sound, *seeded.conv(8, (3, 3), 2), activation="RELU")
    x = layers.max_pool(net, x, (2, 2), (2, 2))
    y = layers.depthwise_conv2d(net, x, *seeded.depthwise((3, 3), 8))
    x = layers.add(net, x, y)
    value = layers.tanh(net, layers.conv2d(net, x, *seeded.conv(8, (1, 1), 8)))
    gate = layers.logistic(net, layers.conv2d(net, x, *seeded.conv(8, (1, 1), 8), padding="VALID"))
    gated = layers.mul(net, value, gate)
    net.output(gated)
    pooled = layers.average_pool(net, layers.sub(net, gated, x), (4, 2), (4, 2))
    flat = layers.reshape(net, pooled, (1, 32))
    logits = layers.dense(net, flat, *seeded.dense(6, 32))
    return net.build(logits, layers.softmax(net, logits))
