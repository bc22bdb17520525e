"""Training of small 1-D convolutional classifiers in plain NumPy: stochastic gradient descent with momentum.

Parameters and momenta are rounded to a grid after each step; `models.grid` says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from models.floatops import padding_before
from models.grid import draw, snap

Array = npt.NDArray[Any]


class Layer:
    """A step from [batch, steps, channels] to the same; `weights` and `bias` are what training changes."""

    weights: Array
    bias: Array
    weights_gradient: Array
    bias_gradient: Array

    def forward(self, x: Array) -> Array:
        raise NotImplementedError

    def backward(self, gradient: Array) -> Array:
        """From the loss's gradient by the output of the last `forward` to that by its input."""
        raise NotImplementedError


class Conv(Layer):
    """Convolution along time, TFLite's SAME padding, then ReLU; weights are [kernel, in, out]."""

    def __init__(self, weights: Array, stride: int) -> None:
        self.weights = weights
        self.bias = np.zeros(weights.shape[-1])
        self.stride = stride

    def forward(self, x: Array) -> Array:
        self._seen = _frames(x, self.weights.shape[0], self.stride)
        total = sum(self._apply(frame, tap) for frame, tap in zip(self._seen, self.weights, strict=True))
        self._steps = x.shape[1]
        result: Array = np.maximum(total + self.bias, 0)
        self._result = result
        return result

    def backward(self, gradient: Array) -> Array:
        gradient = np.where(self._result > 0, gradient, 0)
        self.bias_gradient = gradient.sum(axis=(0, 1))
        self.weights_gradient = np.stack([self._weights_gradient(frame, gradient) for frame in self._seen])
        parts = [self._input_gradient(gradient, tap) for tap in self.weights]
        return _unframe(parts, self._steps, self.stride)

    def _apply(self, frame: Array, tap: Array) -> Array:
        return frame @ tap

    def _weights_gradient(self, frame: Array, gradient: Array) -> Array:
        return np.tensordot(frame, gradient, axes=((0, 1), (0, 1)))

    def _input_gradient(self, gradient: Array, tap: Array) -> Array:
        return gradient @ tap.T


class DepthwiseConv(Conv):
    """The same with one filter per channel; weights are [kernel, channels]."""

    def _apply(self, frame: Array, tap: Array) -> Array:
        return frame * tap

    def _weights_gradient(self, frame: Array, gradient: Array) -> Array:
        total: Array = (frame * gradient).sum(axis=(0, 1))
        return total

    def _input_gradient(self, gradient: Array, tap: Array) -> Array:
        return gradient * tap


class MeanDense(Layer):
    """The mean over time, then a matrix [in, out]: the logits, [batch, out]."""

    def __init__(self, weights: Array) -> None:
        self.weights = weights
        self.bias = np.zeros(weights.shape[-1])

    def forward(self, x: Array) -> Array:
        self._steps = x.shape[1]
        self._mean = x.mean(axis=1)
        logits: Array = self._mean @ self.weights + self.bias
        return logits

    def backward(self, gradient: Array) -> Array:
        self.bias_gradient = gradient.sum(axis=0)
        self.weights_gradient = self._mean.T @ gradient
        return np.repeat((gradient @ self.weights.T)[:, None] / self._steps, self._steps, axis=1)


def initial(generator: np.random.RandomState, fan_in: int, shape: Sequence[int]) -> Array:
    """Uniform weights that keep the variance of activations through ReLU layers."""
    limit = np.sqrt(6 / fan_in)
    return snap(generator.uniform(-limit, limit, tuple(shape)))


def predict(network: Sequence[Layer], x: Array) -> Array:
    """The logits."""
    for layer in network:
        x = layer.forward(x)
    return x


def fit(network: Sequence[Layer], x: Array, labels: Array, *, epochs: int, rate: float, seed: int) -> None:
    """Change the network's parameters in place, to lower the cross entropy of its softmax."""
    generator = draw(seed)
    momenta = [[np.zeros_like(layer.weights), np.zeros_like(layer.bias)] for layer in network]
    for epoch in range(epochs):
        order = np.argsort(generator.uniform(size=len(x)), kind="stable")
        for batch in np.array_split(order, len(x) // 50):
            _step(network, momenta, x[batch], labels[batch], rate * (1 - epoch / epochs))


def _step(network: Sequence[Layer], momenta: list[list[Array]], x: Array, labels: Array, rate: float) -> None:
    logits = predict(network, x)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    gradient = powers / powers.sum(axis=1, keepdims=True)
    gradient[np.arange(len(x)), labels] -= 1
    gradient /= len(x)
    for layer in reversed(network):
        gradient = layer.backward(gradient)
    for layer, momentum in zip(network, momenta, strict=True):
        momentum[0] = snap(0.9 * momentum[0] - rate * layer.weights_gradient)
        momentum[1] = snap(0.9 * momentum[1] - rate * layer.bias_gradient)
        layer.weights = layer.weights + momentum[0]
        layer.bias = layer.bias + momentum[1]


def _frames(x: Array, kernel: int, stride: int) -> list[Array]:
    """For each tap of the kernel, the inputs that it sees."""
    steps, before, after = padding_before(x.shape[1], kernel, stride, 1, "SAME")
    padded = np.pad(x, ((0, 0), (before, after), (0, 0)))
    return [padded[:, tap : tap + (steps - 1) * stride + 1 : stride] for tap in range(kernel)]


def _unframe(parts: Sequence[Array], size: int, stride: int) -> Array:
    """The transpose of `_frames`: what each tap sends back, added up."""
    steps, before, after = padding_before(size, len(parts), stride, 1, "SAME")
    padded = np.zeros((parts[0].shape[0], before + size + after, parts[0].shape[2]))
    for tap, part in enumerate(parts):
        padded[:, tap : tap + (steps - 1) * stride + 1 : stride] += part
    return padded[:, before : before + size]
