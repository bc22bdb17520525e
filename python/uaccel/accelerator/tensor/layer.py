"""What is wanted of the machine: a convolution over NHWC tensors, which a fully connected layer is as well."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from uaccel.accelerator.region import Region
from uaccel.machines.geometry import Shape, Window
from uaccel.model import Array
from uaccel.ops.rounding import FLOAT32

FULLY_CONNECTED: Final = "uaccel.fully_connected"
DEPTHWISE: Final = "uaccel.depthwise_conv2d"


@dataclass(frozen=True)
class Layer:
    """The window slides over each of ``groups`` of the channels by itself."""

    input: Shape
    output: Shape
    window: Window
    groups: int = 1
    input_zero_point: int = 0
    output_zero_point: int = 0
    clamp_min: int = -128
    clamp_max: int = 127
    single: bool = False

    @cached_property
    def in_channels(self) -> int:
        """Of a group."""
        return self.input.channels // self.groups

    @cached_property
    def out_channels(self) -> int:
        """Of a group."""
        return self.output.channels // self.groups

    def is_padded(self, axis: int) -> bool:
        """Whether windows reach over the input's edges."""
        inside = (self.input.rows, self.input.columns)[axis]
        outputs = (self.output.rows, self.output.columns)[axis]
        return self.window.padding[axis] > 0 or self.window.extent(axis, outputs) > inside


def layer_of(region: Region) -> Layer:
    """A convolution, depthwise with one channel, or a fully connected layer; where pixels do not see their neighbours,
    in one long row."""
    attrs, data, output = region.attrs, region.operands[0].info.shape, region.output.shape
    finish = (
        attrs.input_zero_point,
        attrs.output_zero_point,
        attrs.clamp_min,
        attrs.clamp_max,
        attrs.rounding == FLOAT32,
    )
    if region.root.op == FULLY_CONNECTED:
        return Layer(Shape(1, 1, *data), Shape(1, 1, data[0], output[1]), Window(), 1, *finish)
    kernel = filters(region).shape[1:3]
    if tuple(kernel) == tuple(attrs.strides) == (1, 1) and not any(attrs.padding):
        pixels = math.prod(data[:3])
        return Layer(Shape(1, 1, pixels, data[3]), Shape(1, 1, pixels, output[3]), Window(), attrs.groups, *finish)
    window = Window(_pair(kernel), _pair(attrs.strides), _pair(attrs.dilation), _pair(attrs.padding))
    return Layer(Shape(*data), Shape(*output), window, attrs.groups, *finish)


def filters(region: Region) -> Array:
    """The weights by output channel: a depthwise convolution has them last."""
    weights = region.operands[1].value
    return weights.transpose(2, 0, 1)[..., None] if region.root.op == DEPTHWISE else weights


def _pair(values: Sequence[int]) -> tuple[int, int]:
    """The first two: of height and width, or of padding above and to the left."""
    return int(values[0]), int(values[1])
