"""Floats outside, integers inside: what a converter leaves when inputs and outputs stay float."""

from __future__ import annotations

import numpy as np

from models import layers
from models.network import Network, Value
from models.seeded import Seeded


def build() -> bytes:
    seeded = Seeded(51)
    net = Network("uaccel mixed: float input and output around int8 layers")
    samples = layers.quantise(net, net.float_input("samples", 4 * seeded.inputs((8, 8, 2))))
    x = layers.conv2d(net, samples, *seeded.conv(6, (3, 3), 2), stride=(2, 2), activation="RELU")
    x = layers.depthwise_conv2d(net, x, *seeded.depthwise((3, 3), 6))
    pooled = layers.mean(net, x, (1, 2), keep_dims=False)
    energies = _exp(net, layers.dequantise(net, pooled))
    return net.build(energies, _float_dense(net, seeded, energies))


def _exp(net: Network, x: Value) -> Value:
    return net.unquantised_layer("EXP", [x.tensor], np.exp(x.samples))


def _float_dense(net: Network, seeded: Seeded, x: Value) -> Value:
    weights, bias = seeded.dense(3, 6)
    inputs = [
        x.tensor,
        net.builder.constant("float_weights", weights.astype(np.float32)),
        net.builder.constant("float_bias", bias.astype(np.float32)),
    ]
    return net.unquantised_layer("FULLY_CONNECTED", inputs, x.samples @ weights.T + bias)
