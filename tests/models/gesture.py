"""The demo model: which gesture three accelerometer axes saw, trained on synthetic recordings.

A depthwise-separable network along time. Input `motion`: int8 [1, 32, 1, 3], readings of an 8-bit +-4 g
sensor. Output: int8 [1, 6], the softmax over `motion.GESTURES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from models import layers, motion, train
from models.grid import draw
from models.network import Network, Value
from models.quantise import Quantisation

Array = npt.NDArray[Any]

INPUT_NAME = "motion"
_INPUT = Quantisation(motion.SENSOR_SCALE, 0, "int8")
_TRAIN_SEED, _TEST_SEED, _WEIGHTS_SEED, _ORDER_SEED = 11, 12, 13, 14


@dataclass(frozen=True)
class Gesture:
    """The model file and how good the floats behind it are on the test set."""

    data: bytes
    float_accuracy: float


def build() -> Gesture:
    """Train and quantise; a few seconds."""
    x, labels = motion.recordings(_TRAIN_SEED, 1800)
    network = _initial_network()
    train.fit(network, x, labels, epochs=24, rate=0.08, seed=_ORDER_SEED)
    unseen, truth = motion.recordings(_TEST_SEED, 600)
    accuracy = float((train.predict(network, unseen).argmax(axis=1) == truth).mean())
    return Gesture(_quantise(network, x[:300]), accuracy)


def test_set() -> tuple[Array, Array]:
    """Recordings that training never saw, [count, 1, 32, 1, 3] for the model, and their gestures."""
    x, labels = motion.recordings(_TEST_SEED, 600)
    return _integers(x)[:, None], labels


def samples() -> dict[str, Array]:
    """One unseen recording of each gesture in order, stacked: int8 [6, 32, 1, 3]."""
    x, _ = motion.recordings(_TEST_SEED, len(motion.GESTURES))
    return {INPUT_NAME: _integers(x)}


def _integers(x: Array) -> Array:
    return np.rint(x / motion.SENSOR_SCALE).astype(np.int8)[:, :, None, :]


def _initial_network() -> list[train.Layer]:
    generator = draw(_WEIGHTS_SEED)
    return [
        train.Conv(train.initial(generator, 15, (5, 3, 8)), stride=2),
        train.DepthwiseConv(train.initial(generator, 3, (3, 8)), stride=1),
        train.Conv(train.initial(generator, 8, (1, 8, 16)), stride=1),
        train.DepthwiseConv(train.initial(generator, 3, (3, 16)), stride=2),
        train.Conv(train.initial(generator, 16, (1, 16, 24)), stride=1),
        train.MeanDense(train.initial(generator, 24, (24, len(motion.GESTURES)))),
    ]


def _quantise(network: list[train.Layer], x: Array) -> bytes:
    net = Network("uaccel gesture: six hand gestures from an accelerometer")
    value = net.input(INPUT_NAME, x[:, :, None, :], _INPUT)
    for layer in network[:-1]:
        assert isinstance(layer, train.Conv)
        value = _convolution(net, value, layer)
    value = layers.average_pool(net, value, (value.shape[1], 1), (value.shape[1], 1))
    value = layers.reshape(net, value, (1, value.shape[3]))
    value = layers.dense(net, value, network[-1].weights.T, network[-1].bias)
    return net.build(layers.softmax(net, value))


def _convolution(net: Network, value: Value, layer: train.Conv) -> Value:
    """From weights along time to those of a two-dimensional layer that is one column wide."""
    stride = (layer.stride, 1)
    if isinstance(layer, train.DepthwiseConv):
        weights = layer.weights[None, :, None, :]
        return layers.depthwise_conv2d(net, value, weights, layer.bias, stride=stride, activation="RELU")
    weights = layer.weights.transpose(2, 0, 1)[:, :, None, :]
    return layers.conv2d(net, value, weights, layer.bias, stride=stride, activation="RELU")
