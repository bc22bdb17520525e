"""What is wanted of the machine: a convolution over NHWC tensors, which a fully connected layer is as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from uaccel.accelerator.region import Region

FULLY_CONNECTED: Final = "uaccel.fully_connected"


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass(frozen=True)
class Layer:
    """``in_channels`` and ``out_channels`` are a group's; ``padding`` is above and to the left."""

    batch: int
    groups: int
    in_height: int
    in_width: int
    in_channels: int
    out_height: int
    out_width: int
    out_channels: int
    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    input_zero_point: int = 0
    output_zero_point: int = 0
    clamp_min: int = -128
    clamp_max: int = 127

    def needed(self, axis: int, outputs: int) -> int:
        """Rows (axis 0) or columns (1) of the input, padding included, that so many of the output depend on."""
        return (outputs - 1) * self.strides[axis] + (self.kernel[axis] - 1) * self.dilation[axis] + 1

    def is_padded(self, axis: int) -> bool:
        """Whether windows reach over the input's edges."""
        inside = (self.in_height, self.in_width)[axis]
        outputs = (self.out_height, self.out_width)[axis]
        return self.padding[axis] > 0 or self.needed(axis, outputs) > inside

    @property
    def pixel_in(self) -> int:
        """Bytes from one pixel of the input to the next."""
        return self.groups * self.in_channels

    @property
    def pixel_out(self) -> int:
        return self.groups * self.out_channels

    @property
    def input_bytes(self) -> int:
        return self.batch * self.in_height * self.in_width * self.pixel_in

    @property
    def output_bytes(self) -> int:
        return self.batch * self.out_height * self.out_width * self.pixel_out


def layer_of(region: Region) -> Layer:
    """``uaccel.conv2d`` or ``uaccel.fully_connected``; where pixels do not see their neighbours, in one long row."""
    attrs, data, output = region.attrs, region.operands[0].info, region.output
    finish = (attrs.input_zero_point, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max)
    if region.root.op == FULLY_CONNECTED:
        rows, depth = data.shape
        return Layer(1, 1, 1, rows, depth, 1, rows, output.shape[1], (1, 1), (1, 1), (1, 1), (0, 0), *finish)
    batch, height, width, channels = data.shape
    kernel = region.operands[1].info.shape[1:3]
    depth, channels_out = channels // attrs.groups, output.shape[3] // attrs.groups
    if tuple(kernel) == tuple(attrs.strides) == (1, 1) and not any(attrs.padding):
        pixels = batch * height * width
        flat = (1, attrs.groups, 1, pixels, depth, 1, pixels, channels_out)
        return Layer(*flat, (1, 1), (1, 1), (1, 1), (0, 0), *finish)
    extents = (batch, attrs.groups, height, width, depth, output.shape[1], output.shape[2], channels_out)
    windows = (_pair(kernel), _pair(attrs.strides), _pair(attrs.dilation), _pair(attrs.padding))
    return Layer(*extents, *windows, *finish)


def _pair(values: Sequence[int]) -> tuple[int, int]:
    """The first two: of height and width, or of padding above and to the left."""
    return int(values[0]), int(values[1])
