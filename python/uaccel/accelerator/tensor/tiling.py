"""A layer in pieces: how large they are, what they need on chip, and how often each memory is loaded."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from uaccel.accelerator.tensor.layer import Layer
from uaccel.accelerator.tensor.machine import MEMORIES, Machine
from uaccel.basics.numbers import pieces, round_up
from uaccel.machines.tiling import Tiling


@dataclass(frozen=True)
class Tiled:
    """A layer on a machine in pieces: blocks are of the array's columns, steps of :attr:`Machine.step` channels."""

    machine: Machine
    layer: Layer
    tiling: Tiling

    @functools.cached_property
    def channels(self) -> int:
        """Of the output, in a piece."""
        return min(self.layer.out_channels, self.tiling.blocks * self.machine.columns)

    @functools.cached_property
    def depth(self) -> int:
        """Channels of the input in a piece."""
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
        """Of the pieces of the input channels: all but the last are alike."""
        return self.depth, self.layer.in_channels - (self.depth_pieces - 1) * self.depth

    @functools.cached_property
    def runs_whole_rows(self) -> bool:
        """Whether a row of the kernel reads bytes of the tile that lie one after the other."""
        alignment = self.machine.activations.alignment
        return self.layer.window.dilation[1] == 1 and not any(depth % alignment for depth in self.depths)

    @property
    def kernel_columns(self) -> int:
        """Runs a row of the kernel."""
        return 1 if self.runs_whole_rows else self.layer.window.kernel[1]

    @property
    def run_pixels(self) -> int:
        """Pixels that one run covers."""
        return self.layer.window.kernel[1] if self.runs_whole_rows else 1

    def steps(self, depth: int) -> int:
        """Cycles of the array for one run."""
        return pieces(self.run_pixels * depth, self.machine.depth)

    def weight_bytes(self, depth: int) -> int:
        """Of ``machine.columns`` output channels."""
        return self.layer.window.kernel[0] * self.kernel_columns * self.steps(depth) * self.machine.block_bytes

    @property
    def channel_weight_bytes(self) -> int:
        """Of ``machine.columns`` output channels, and all input channels."""
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
