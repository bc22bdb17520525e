"""Describes a tensor machine, a layer that it computes, and how the layer is cut into pieces."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from uaccel.accelerator import machine
from uaccel.accelerator.machine import Dma, Memory, Shape, SlidingWindow, Tiling
from uaccel.accelerator.region import Region
from uaccel.model import Array
from uaccel.ops.exact import FLOAT32
from uaccel.ops.windows import window_of
from uaccel.util.text import pieces, round_up

# A matrix unit with on-chip memories and DMA, as its designers state it.
#
# Each cycle the array multiplies ``depth`` int8 values of one pixel with the weights of ``columns`` output channels and
# adds to int32 accumulators. Three engines work side by side, each in the order of its commands: one loads (and fills),
# one multiplies, one stores. A command waits until all earlier commands that use one of the same banks of on-chip
# memory are done, by interlocks in hardware or by waits that the driver adds.
#
# The intrinsics are C functions of the driver, named by the machine (``matrix8_load``). Offsets, pitches and strides
# count bytes:
#
#     void X_begin(void)                                          commands follow; forget earlier errors
#     void X_share(const void *memory, int32_t bytes)             the device will read or write this memory
#     void X_output(zero_point, clamp_min, clamp_max)             how later stores end; with ``single`` the machine has
#                                                                 a fourth argument: 1 for single precision's rounding
#     void X_window(kernel_rows, kernel_columns, run, kernel_row_pitch, kernel_column_pitch, row_pitch, column_pitch)
#                                                                 what later multiplications read for one output pixel:
#                                                                 kernel_rows x kernel_columns runs of `run` bytes
#     void X_fill(memory, offset, bytes, value)                   bytes of on-chip memory, all alike
#     void X_load(memory, offset, pitch, const void *from, at, stride, rows, bytes)
#                                                                 2-D DMA: `bytes` from each of `rows`; 0 does nothing
#     void X_multiply(accumulators, activations, weights, rows, columns, blocks, add)
#                                                                 rows x columns pixels times `blocks` x `columns of the
#                                                                 array` channels; adds to the accumulators if `add`
#     void X_store(void *to, at, stride, accumulators, parameters, pixels, channels)
#                                                                 output stage: bias, multiplier and shift per channel
#                                                                 in TFLite's rounding, zero point, clamp; then 2-D DMA
#     int32_t X_finish(void *memory, int32_t bytes)               wait for all; 0, or the first error since X_begin;
#                                                                 this memory was written
#
# The memories are X_ACTIVATIONS, X_WEIGHTS and X_PARAMETERS in capitals. After an error commands do nothing.

PARAMETERS_PER_CHANNEL: Final = 3  # Bias, multiplier, shift: int32 each.
WORD: Final = 4
MEMORIES: Final = ("activations", "weights", "accumulators", "parameters")


@dataclass(frozen=True)
class Machine(machine.Machine):
    """Describes the machine. ``parameters`` holds bias, multiplier and shift of output channels.

    ``start_up``: cycles that each multiplication takes in addition. ``issue``: cycles of the CPU to give one command.
    ``single``: the output stage also rounds as single precision does, where a multiplier's low 7 bits are added to the
    sum in 128ths (:mod:`uaccel.ops.exact`).
    """

    name: str
    columns: int
    depth: int
    activations: Memory
    weights: Memory
    accumulators: Memory
    parameters: Memory
    load: Dma
    store: Dma
    start_up: int
    fill_bytes_per_cycle: int = 8
    issue: int = 0
    single: bool = False

    def __post_init__(self) -> None:
        blocks = {"weights": self.block_bytes, "accumulators": self.pixel_bytes, "parameters": self.parameter_bytes}
        for name, size in blocks.items():
            alignment = self.memory(name).alignment
            if size % alignment:
                raise ValueError(
                    f"{self.name}: {name} come in units of {size} bytes, which cannot be aligned to {alignment}"
                )

    @cached_property
    def step(self) -> int:
        """Input channels in a step: as many as the array takes at once, rounded up so that pixels are aligned."""
        return round_up(self.depth, self.activations.alignment)

    @property
    def block_bytes(self) -> int:
        """The weights that the array takes in one cycle."""
        return self.columns * self.depth

    @property
    def pixel_bytes(self) -> int:
        """The accumulators of one pixel's ``columns`` channels."""
        return self.columns * WORD

    @property
    def parameter_bytes(self) -> int:
        """The output stage's parameters for ``columns`` channels."""
        return self.columns * PARAMETERS_PER_CHANNEL * WORD

    def intrinsic(self, name: str) -> str:
        return f"{self.name}_{name}"

    @property
    def memories(self) -> dict[str, int]:
        """The bytes of each memory, as :class:`uaccel.accelerator.Accelerator` takes them."""
        return {name: self.memory(name).bytes for name in MEMORIES}


# A layer for the machine: a convolution over NHWC tensors, which includes fully connected layers.

FULLY_CONNECTED: Final = "uaccel.fully_connected"
DEPTHWISE: Final = "uaccel.depthwise_conv2d"


@dataclass(frozen=True)
class TensorLayer:
    """Describes a convolution; its window slides over each of ``groups`` of the channels separately."""

    input: Shape
    output: Shape
    window: SlidingWindow
    groups: int = 1
    input_zero_point: int = 0
    output_zero_point: int = 0
    clamp_min: int = -128
    clamp_max: int = 127
    single: bool = False

    @cached_property
    def in_channels(self) -> int:
        """Input channels of a group."""
        return self.input.channels // self.groups

    @cached_property
    def out_channels(self) -> int:
        """Output channels of a group."""
        return self.output.channels // self.groups

    def is_padded(self, axis: int) -> bool:
        """Whether windows reach beyond the input's edges along an axis."""
        inside = (self.input.rows, self.input.columns)[axis]
        outputs = (self.output.rows, self.output.columns)[axis]
        return self.window.padding[axis] > 0 or self.window.extent(axis, outputs) > inside


def layer_of(region: Region) -> TensorLayer:
    """The layer of a convolution (depthwise only with one channel) or a fully connected region. If each output pixel
    reads one input pixel, all pixels become one long row, which is easier to cut."""
    attrs, data, output = region.attrs, region.operands[0].info.shape, region.output.shape
    finish = (
        attrs.input_zero_point,
        attrs.output_zero_point,
        attrs.clamp_min,
        attrs.clamp_max,
        attrs.rounding == FLOAT32,
    )
    if region.root.op == FULLY_CONNECTED:
        return TensorLayer(Shape(1, 1, *data), Shape(1, 1, data[0], output[1]), SlidingWindow(), 1, *finish)
    window = window_of(attrs, filters(region).shape[1:3])
    if window.kernel == window.strides == (1, 1) and not any(window.padding):
        pixels = math.prod(data[:3])
        return TensorLayer(
            Shape(1, 1, pixels, data[3]), Shape(1, 1, pixels, output[3]), SlidingWindow(), attrs.groups, *finish
        )
    return TensorLayer(Shape(*data), Shape(*output), window, attrs.groups, *finish)


def filters(region: Region) -> Array:
    """The weights with the output channel first; a depthwise convolution has it last."""
    weights = region.operands[1].value
    return weights.transpose(2, 0, 1)[..., None] if region.root.op == DEPTHWISE else weights


# A layer in pieces: how large they are, what they need on chip, and how often each memory is loaded.


@dataclass(frozen=True)
class Tiled:
    """Describes a layer in pieces: a block has as many channels as the array columns, a step :attr:`Machine.step`."""

    machine: Machine
    layer: TensorLayer
    tiling: Tiling

    @functools.cached_property
    def channels(self) -> int:
        """Output channels in a piece."""
        return min(self.layer.out_channels, self.tiling.blocks * self.machine.columns)

    @functools.cached_property
    def depth(self) -> int:
        """Input channels in a piece."""
        return min(self.layer.in_channels, self.tiling.steps * self.machine.step)

    @property
    def is_split(self) -> bool:
        """Whether several pieces add up to one sum."""
        return self.depth < self.layer.in_channels

    @functools.cached_property
    def depth_pieces(self) -> int:
        return pieces(self.layer.in_channels, self.depth)

    @property
    def depths(self) -> tuple[int, int]:
        """The input channels of all pieces but the last, and of the last one."""
        return self.depth, self.layer.in_channels - (self.depth_pieces - 1) * self.depth

    @functools.cached_property
    def runs_whole_rows(self) -> bool:
        """Whether a row of the kernel reads bytes of the tile that lie one after the other."""
        alignment = self.machine.activations.alignment
        return self.layer.window.dilation[1] == 1 and not any(depth % alignment for depth in self.depths)

    @property
    def kernel_columns(self) -> int:
        """The runs of adjacent bytes that a row of the kernel reads."""
        return 1 if self.runs_whole_rows else self.layer.window.kernel[1]

    @property
    def run_pixels(self) -> int:
        """Pixels that one run covers."""
        return self.layer.window.kernel[1] if self.runs_whole_rows else 1

    def steps(self, depth: int) -> int:
        """Cycles of the array for one run."""
        return pieces(self.run_pixels * depth, self.machine.depth)

    def weight_bytes(self, depth: int) -> int:
        """Bytes of the weights of a block, for ``depth`` input channels."""
        return self.layer.window.kernel[0] * self.kernel_columns * self.steps(depth) * self.machine.block_bytes

    @property
    def channel_weight_bytes(self) -> int:
        """Bytes of the weights of a block, for all input channels."""
        usual, last = self.depths
        return (self.depth_pieces - 1) * self.weight_bytes(usual) + self.weight_bytes(last)

    @property
    def group_weight_bytes(self) -> int:
        return self.channel_weight_bytes * self.blocks(self.layer.out_channels)

    def blocks(self, channels: int) -> int:
        return pieces(channels, self.machine.columns)

    @property
    def row_pixels(self) -> int:
        """Pixels from one row of the input tile to the next."""
        return self.layer.window.extent(1, self.tiling.columns)

    def footprint(self, memory: str) -> int:
        """Bytes of one piece. The array reads in whole steps, and so a little beyond the last run."""
        tiling, machine = self.tiling, self.machine
        blocks = self.blocks(self.channels)
        if memory == "activations":
            pitch = round_up(self.depth, machine.activations.alignment)
            pixels = self.layer.window.extent(0, tiling.rows) * self.row_pixels
            beyond = max(self.steps(d) * machine.depth - self.run_pixels * d for d in self.depths)
            return pixels * pitch + beyond
        if memory == "weights":
            return blocks * self.weight_bytes(self.depth)
        if memory == "accumulators":
            return tiling.rows * tiling.columns * blocks * machine.pixel_bytes
        return blocks * machine.parameter_bytes

    @property
    def lacking(self) -> str | None:
        """The memory that a piece does not fit into."""
        return next((name for name in MEMORIES if self.footprint(name) > self.machine.memory(name).bytes), None)

    @functools.cached_property
    def channel_pieces(self) -> int:
        return pieces(self.layer.out_channels, self.channels)

    def loads(self, memory: str) -> int:
        """How many pieces come into a memory during the layer."""
        groups, depths = self.layer.groups, self.depth_pieces
        pixels = self.tiling.pixel_pieces(self.layer.output)
        everything = groups * pixels * self.channel_pieces
        if memory == "accumulators":
            return everything
        if memory == "parameters":
            return groups * self.channel_pieces if self.tiling.weights_stay else everything
        if self.is_split:
            return everything * depths
        stays = self.tiling.weights_stay == (memory == "weights")
        return groups * (self.channel_pieces if memory == "weights" else pixels) if stays else everything

    def is_double_buffered(self, memory: str) -> bool:
        """Whether a piece comes in, or goes out, while the array works on another one."""
        there = self.machine.memory(memory)
        return there.banks > 1 and self.footprint(memory) <= there.bank_bytes and self.loads(memory) > 1
