"""Convolution-like single-operator models from a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from support.models.single_op import Activation, Constant, single_op


@dataclass(frozen=True)
class Window:
    """One CONV_2D or DEPTHWISE_CONV_2D; ``depth`` is the weights' channels a group for the former."""

    input: tuple[int, int, int, int] = (1, 6, 5, 4)
    channels: int = 6
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: str = "SAME"
    groups: int = 1
    dtype: str = "int8"
    input_scale: float = 0.05
    output_scale: float = 0.1
    input_zero_point: int = 3
    output_zero_point: int = -7
    weight_scales: tuple[float, ...] = (0.01,)
    activation: str = "NONE"
    bias: str | None = "int32"
    bias_range: int = 2000
    weight_range: int = 127
    seed: int = 0

    def output_extent(self, axis: int) -> int:
        effective = (self.kernel[axis] - 1) * self.dilation[axis] + 1
        extent = self.input[1 + axis]
        spare = extent if self.padding == "SAME" else extent - effective + 1
        return -(-spare // self.stride[axis])

    @property
    def fits(self) -> bool:
        return self.output_extent(0) > 0 and self.output_extent(1) > 0


def spread_scales(count: int, seed: int = 0) -> tuple[float, ...]:
    """Weight scales that differ by up to a factor of a thousand."""
    generator = np.random.default_rng(seed)
    scales = 0.02 * 10.0 ** generator.uniform(-2.5, 0.5, count)
    return tuple(float(np.float32(scale)) for scale in scales)


def conv_2d(case: Window) -> bytes:
    shape = (case.channels, *case.kernel, case.input[3] // case.groups)
    return _window(case, "CONV_2D", shape, axis=0, extra={})


def depthwise_conv_2d(case: Window) -> bytes:
    extra = {"depth_multiplier": case.channels // case.input[3]}
    return _window(case, "DEPTHWISE_CONV_2D", (1, *case.kernel, case.channels), axis=3, extra=extra)


def _window(case: Window, operator: str, weights: tuple[int, ...], axis: int, extra: dict[str, int]) -> bytes:
    generator = np.random.default_rng(case.seed)
    scales = case.weight_scales if len(case.weight_scales) == 1 else case.weight_scales[: case.channels]
    values = generator.integers(-case.weight_range, case.weight_range + 1, weights).astype(np.int8)
    arguments: list[Activation | Constant | None] = [
        Activation(case.input, case.dtype, case.input_scale, 0 if case.dtype == "int16" else case.input_zero_point),
        Constant(values, scales=scales, axis=axis),
    ]
    if case.bias:
        bias = generator.integers(-case.bias_range, case.bias_range + 1, case.channels).astype(case.bias)
        arguments.append(Constant(bias, scales=tuple(case.input_scale * s for s in scales)))
    output_shape = (case.input[0], case.output_extent(0), case.output_extent(1), case.channels)
    zero_point = 0 if case.dtype == "int16" else case.output_zero_point
    options: dict[str, bool | int | float | str | Sequence[int]] = {
        "padding": case.padding,
        "stride_h": case.stride[0],
        "stride_w": case.stride[1],
        "dilation_h_factor": case.dilation[0],
        "dilation_w_factor": case.dilation[1],
        "fused_activation_function": case.activation,
        **extra,
    }
    output = Activation(output_shape, case.dtype, case.output_scale, zero_point)
    return single_op(operator, arguments, [output], options)
