"""What the networks of the field have in common: a convolution with its normalisation folded in, and the like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from models import layers
from models.floatops import Pair
from models.network import Network, Value
from models.quantise import activation_range
from models.seeded import Seeded

Array = npt.NDArray[Any]

SAMPLES = 4
LARGE_INPUT = 1 << 16
"""Elements from which one sample has values enough for calibration."""


@dataclass(frozen=True)
class Size:
    """How large a network is built; a ``width`` of 1 is the published one."""

    resolution: int
    classes: int
    width: float
    seed: int


class Large(Seeded):
    """Parameters in float32, drawn as int8: a hundred million of them take seconds, not minutes."""

    def weights(self, shape: Sequence[int], fan_in: int, channel_axis: int) -> Array:
        limits = np.sqrt(6 / fan_in) * 2.0 ** self._generator.uniform(-2, 1, shape[channel_axis])
        spread = [-1 if axis == channel_axis else 1 for axis in range(len(shape))]
        integers = self._generator.randint(-127, 128, tuple(shape), dtype=np.int8)
        drawn: Array = integers * (limits / 127).astype(np.float32).reshape(spread)
        return drawn

    def bias(self, channels: int) -> Array:
        return super().bias(channels).astype(np.float32)


class Blocks:
    """A network under construction, with the source of its parameters.

    ``parameters`` counts those that training had: convolutions that were normalised have two a channel (scale and
    offset), which were folded into weights and a bias.
    """

    def __init__(self, title: str, size: Size) -> None:
        self.net = Network(title)
        self.size = size
        self.parameters = 0
        self._seeded = Large(size.seed)

    def input(self, name: str, shape: Sequence[int]) -> Value:
        """Noise, of which calibration sees enough."""
        count = 1 if math.prod(shape) >= LARGE_INPUT else SAMPLES
        samples = self._seeded.inputs(shape, 3 * count)[2 * count :]
        return self.net.input(name, samples.astype(np.float32))

    def image(self) -> Value:
        return self.input("image", (self.size.resolution, self.size.resolution, 3))

    def channels(self, published: int) -> int:
        """Scaled, and eight divides what was scaled."""
        if self.size.width == 1:
            return published
        return max(8, round(published * self.size.width / 8) * 8)

    def conv(
        self,
        x: Value,
        out: int,
        kernel: int | Pair,
        *,
        stride: int | Pair = 1,
        padding: str = "SAME",
        activation: str = "RELU",
        normalised: bool = True,
    ) -> Value:
        """``out`` channels as they are: ``channels`` scales."""
        kernel, stride = _pair(kernel), _pair(stride)
        weights, bias = self._seeded.conv(out, kernel, x.shape[3])
        self._count(weights, bias, normalised)
        return layers.conv2d(self.net, x, weights, bias, stride=stride, padding=padding, activation=activation)

    def depthwise(self, x: Value, kernel: int, *, stride: int = 1, activation: str = "RELU") -> Value:
        weights, bias = self._seeded.depthwise((kernel, kernel), x.shape[3])
        self._count(weights, bias, normalised=True)
        return layers.depthwise_conv2d(self.net, x, weights, bias, stride=(stride, stride), activation=activation)

    def padded_conv(self, x: Value, out: int, kernel: int, *, activation: str = "RELU") -> Value:
        """Stride 2 with the same zeros on all sides, which TFLite writes as a pad of its own."""
        around = (kernel // 2, kernel // 2)
        padded = layers.pad(self.net, x, around, around)
        return self.conv(padded, out, kernel, stride=2, padding="VALID", activation=activation)

    def doubled(self, x: Value, out: int) -> Value:
        """Twice the size: a transposed convolution of 2x2 with stride 2."""
        weights, bias = self._seeded.conv(out, (2, 2), x.shape[3])
        self._count(weights, bias, normalised=False)
        return layers.transpose_conv2d(self.net, x, weights, bias)

    def dense(self, x: Value, out: int, *, activation: str = "NONE") -> Value:
        weights, bias = self._seeded.dense(out, x.shape[-1])
        self._count(weights, bias, normalised=False)
        return layers.dense(self.net, x, weights, bias, activation=activation)

    def max_pool(self, x: Value, size: int, stride: int, padding: str = "VALID") -> Value:
        """An image that is smaller than the window is taken as it is: a small resolution has one deep inside."""
        if min(x.shape[1:3]) < size:
            padding = "SAME"
        return layers.max_pool(self.net, x, (size, size), (stride, stride), padding)

    def pooled(self, x: Value) -> Value:
        """The mean of each channel, [1, channels]."""
        return layers.mean(self.net, x, (1, 2), keep_dims=False)

    def classify(self, x: Value) -> None:
        """The end of most: a mean of each channel and a matrix. No softmax: of a thousand classes it leaves nothing."""
        self.net.output(self.dense(self.pooled(x), self.size.classes))

    def vector(self, size: int) -> Array:
        """Small numbers: what is left of a norm's offsets."""
        self.parameters += size
        return self._seeded.bias(size)

    def recalibrated(self, fresh: Sequence[Value], others: Sequence[Value] = ()) -> list[Value]:
        """With one quantisation: ``fresh`` are what convolutions gave, unread yet; others are requantised."""
        samples = np.concatenate([value.samples.ravel() for value in (*fresh, *others)])
        common = activation_range(samples, self.net.dtype)
        alike = [self.net.recalibrated(value, common) for value in fresh]
        rest = [value if value.known == common else layers.requantise(self.net, value, common) for value in others]
        return [*alike, *rest]

    def joined(self, fresh: Sequence[Value], others: Sequence[Value] = (), axis: int = 3) -> Value:
        """One after the other, quantised alike, as converters do it."""
        return layers.concatenate(self.net, self.recalibrated(fresh, others), axis)

    def _count(self, weights: Array, bias: Array, normalised: bool) -> None:
        self.parameters += weights.size + bias.size * (2 if normalised else 1)


def _pair(value: int | Pair) -> Pair:
    return (value, value) if isinstance(value, int) else value
