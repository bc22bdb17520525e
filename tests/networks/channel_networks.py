"""Small networks of int8 layers whose weights are zero where a test wants them to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from support.device.hostlib import Array
from uaccel.ops.binary import Add, AddAttrs, WeightedSum, WeightedSumAttrs
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.exact import FLOAT32, ROUNDINGS, float32_scales
from uaccel.ops.fixedpoint import quantize_multiplier, quantize_multipliers
from uaccel.ops.lookup import Lookup, LookupAttrs
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import constant, get, info_of
from uaccel.ops.pool import AveragePool2d, MaxPool2d, PoolAttrs
from uaccel.ops.quantize import Requantize, RequantizeAttrs
from uaccel.tvm_api import FunctionBlock, relax

ZERO_POINT = -5
"""Of every tensor."""
Channels = Sequence[int] | range


class Layers:
    """Emits layers of random weights into an open function; each is bound to the name it is given.

    Of odd seeds they round in single precision.
    """

    def __init__(self, block: FunctionBlock, seed: int = 0) -> None:
        self.block = block
        self.random = np.random.default_rng(seed)
        self.rounding = ROUNDINGS[seed % 2]

    def conv(
        self,
        name: str,
        source: Any,
        channels: int,
        *,
        zero: Channels = (),
        unread: Channels = (),
        own: Channels = (),
        level: int = 0,
        raised: int = 0,
        kernel: int = 1,
        padding: int = 0,
    ) -> Any:
        """Output channels ``zero`` have no weights and hold ``level`` above the zero point.

        Input channels ``unread`` have no readers, those of ``own`` only the output channel of their number.
        ``raised`` is added to every bias.
        """
        weights = self._weights((channels, kernel, kernel, info_of(source).shape[-1]))
        weights[list(zero)] = 0
        weights[..., list(unread)] = 0
        for channel in own:
            weights[np.arange(channels) != channel, ..., channel] = 0
        return self._window(
            Conv2d, name, source, weights, self._bias(channels, zero, level) + np.int32(raised), padding, 1
        )

    def depthwise(
        self,
        name: str,
        source: Any,
        *,
        zero: Channels = (),
        level: int = 0,
        kernel: int = 3,
        padding: int = 1,
        times: int = 1,
    ) -> Any:
        inputs = info_of(source).shape[-1]
        weights = self._weights((kernel, kernel, inputs * times))
        weights[..., list(zero)] = 0
        bias = self._bias(inputs * times, zero, level)
        return self._window(DepthwiseConv2d, name, source, weights, bias, padding, inputs)

    def dense(self, name: str, source: Any, units: int, *, zero: Channels = (), unread: Channels = ()) -> Any:
        weights = self._weights((units, info_of(source).shape[-1]))
        weights[list(zero)] = 0
        weights[..., list(unread)] = 0
        attrs = FullyConnectedAttrs(ZERO_POINT, ZERO_POINT, -128, 127, self.rounding)
        arguments = _scaled(weights, self._bias(units, zero, 0), units, self.rounding)
        return self.block.emit(get(FullyConnected)(source, *arguments, attrs=attrs), name)

    def add(self, name: str, one: Any, other: Any) -> Any:
        half, whole = quantize_multiplier(0.5), quantize_multiplier(2.0**-19)
        attrs = AddAttrs(20, ZERO_POINT, *half, ZERO_POINT, *half, ZERO_POINT, *whole, -128, 127)
        return self.block.emit(get(Add)(one, other, attrs=attrs), name)

    def total(self, name: str, one: Any, other: Any) -> Any:
        """A sum that is rounded once, as ONNX models mean it."""
        end = {"shift": 21, "tolerance": 0, "output_zero_point": ZERO_POINT, "clamp_min": -128, "clamp_max": 127}
        attrs = WeightedSumAttrs(ZERO_POINT, 1 << 20, ZERO_POINT, -(1 << 19), **end)
        return self.block.emit(get(WeightedSum)(one, other, attrs=attrs), name)

    def lookup(self, name: str, source: Any) -> Any:
        table = self.random.integers(-128, 128, 256).astype(np.int8)
        return self.block.emit(get(Lookup)(source, constant(table), attrs=LookupAttrs("any")), name)

    def requantize(self, name: str, source: Any) -> Any:
        attrs = RequantizeAttrs(ZERO_POINT, ZERO_POINT, *quantize_multiplier(0.7), -128, 90, "int8")
        return self.block.emit(get(Requantize)(source, attrs=attrs), name)

    def pool(self, name: str, source: Any, window: int, *, mean: bool, padding: int = 0) -> Any:
        attrs = PoolAttrs((window, window), (1, 1), (padding,) * 4, -100, 100)
        return self.block.emit(get(AveragePool2d if mean else MaxPool2d)(source, attrs=attrs), name)

    def flat(self, name: str, source: Any) -> Any:
        """[1, 1, 1, C] as [1, C]."""
        return self.block.emit(relax.op.reshape(source, (1, info_of(source).shape[-1])), name)

    def _weights(self, shape: tuple[int, ...]) -> Array:
        magnitudes = self.random.integers(1, 64, shape)
        return np.asarray(np.where(self.random.random(shape) < 0.5, magnitudes, -magnitudes), np.int8)

    def _bias(self, channels: int, zero: Channels, level: int) -> Array:
        bias = self.random.integers(-400, 400, channels).astype(np.int32)
        bias[list(zero)] = 64 * level
        return bias

    def _window(self, kind: Any, name: str, source: Any, weights: Array, bias: Array, padding: int, groups: int) -> Any:
        attrs = Conv2dAttrs((1, 1), (padding,) * 4, (1, 1), groups, ZERO_POINT, ZERO_POINT, -128, 127, self.rounding)
        arguments = _scaled(weights, bias, len(bias), self.rounding)
        return self.block.emit(get(kind)(source, *arguments, attrs=attrs), name)


def _scaled(weights: Array, bias: Array, channels: int, rounding: str) -> list[Any]:
    """With a scale of 1/64 for the first channel, a little less for each one that follows.

    So that a slice of the wrong channels shows, and so small that ``level`` of a channel is still its number.
    """
    scales = [(1 - i / 10000) / 64 for i in range(channels)]
    multiplier, shift = float32_scales(scales) if rounding == FLOAT32 else quantize_multipliers(scales)
    return [constant(array) for array in (weights, bias, multiplier, shift)]
