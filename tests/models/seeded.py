"""Weights and calibration inputs drawn from a seed, for models that need to be exact rather than useful."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from models.grid import draw, snap

Array = npt.NDArray[Any]


class Seeded:
    """A source of parameters: each call draws the next."""

    def __init__(self, seed: int) -> None:
        self._generator = draw(seed)

    def weights(self, shape: Sequence[int], fan_in: int, channel_axis: int) -> Array:
        """Weights that keep activations in range; channels differ up to eightfold, and so do their scales."""
        limit = np.sqrt(6 / fan_in)
        values = self._generator.uniform(-limit, limit, tuple(shape))
        spread = [-1 if axis == channel_axis else 1 for axis in range(len(shape))]
        return snap(values * 2.0 ** self._generator.uniform(-2, 1, shape[channel_axis]).reshape(spread))

    def conv(self, out: int, kernel: tuple[int, int], channels: int) -> tuple[Array, Array]:
        """Weights [out, rows, columns, in] and a bias."""
        shape = (out, *kernel, channels)
        return self.weights(shape, kernel[0] * kernel[1] * channels, channel_axis=0), self.bias(out)

    def depthwise(self, kernel: tuple[int, int], channels: int) -> tuple[Array, Array]:
        """Weights [1, rows, columns, channels] and a bias."""
        return self.weights((1, *kernel, channels), kernel[0] * kernel[1], channel_axis=3), self.bias(channels)

    def dense(self, out: int, channels: int) -> tuple[Array, Array]:
        """Weights [out, in] and a bias."""
        return self.weights((out, channels), channels, channel_axis=0), self.bias(out)

    def bias(self, channels: int) -> Array:
        return snap(self._generator.uniform(-0.3, 0.3, channels))

    def inputs(self, shape: Sequence[int], count: int = 24) -> Array:
        """Noise, flat fields and spikes in [-1, 1]: what the tests feed, so that calibration fits it."""
        noise = self._generator.uniform(-1, 1, (count, *shape))
        third = count // 3
        noise[:third] = np.linspace(-1, 1, third).reshape([-1] + [1] * len(shape))
        noise[third : 2 * third] = np.sign(noise[third : 2 * third]) * np.abs(noise[third : 2 * third]) ** 0.2
        return snap(noise)
