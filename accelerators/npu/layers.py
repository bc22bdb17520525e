"""Layers as the machine computes them: what a part reads, its packed weights, its commands and their time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from uaccel.streams import WORD, Box, Compute, Layer, Part, Placed, Places, Results, Window, dense, inside

from . import times
from .commands import FORMATS
from .machine import Npu
from .times import Timed


@dataclass(frozen=True)
class Clamp:
    """Zero points of input and output, the range of results, and whether they are rounded in single precision."""

    input_zero_point: int = 0
    output_zero_point: int = 0
    clamp_min: int = -128
    clamp_max: int = 127
    single: bool = False


@dataclass(frozen=True)
class Windowed(Layer):
    """``group_channels``: output channels that read the same input channels; blocks do not reach beyond them."""

    npu: Npu
    window: Window
    clamp: Clamp
    group_channels: int
    kind = ""
    alike_by: ClassVar[tuple[str, ...]] = ("shapes", "shape", "blocks", "steps", "window", "group_channels")

    @cached_property
    def group_blocks(self) -> int:
        return -(-self.group_channels // self.npu.columns)

    def channels(self, blocks: range) -> range:
        return range(self._first_channel(blocks.start), min(self._first_channel(blocks.stop), self.shape.channels))

    def _first_channel(self, block: int) -> int:
        group, rest = divmod(block, self.group_blocks)
        return group * self.group_channels + rest * self.npu.columns

    @abstractmethod
    def source_channels(self, blocks: range) -> range:
        """The input channels that these blocks read."""

    def needs(self, index: int, part: Part) -> Box:
        if index > 0:
            return self.result(part)  # what is added to it
        rows = self.window.covered(0, part.rows, self.shapes[0].rows)
        columns = self.window.covered(1, part.columns, self.shapes[0].columns)
        return Box(part.image, rows, columns, self.source_channels(part.blocks))

    def weight_bytes(self, blocks: range, steps: range) -> int:
        return 0

    def weights(self, blocks: range, steps: range) -> bytes:
        return b""

    def commands(self, part: Part, places: Places) -> Sequence[Compute]:
        found = []
        for some in self.pieces(part):
            fields, time = self.fields(some, part, places), self.time(some, places.inputs[0])
            found.append(Compute(self.kind, fields, time.cycles, FORMATS[self.kind].bytes, time.results))
        return found

    def pieces(self, part: Part) -> Sequence[Part]:
        """Gives what one command computes each: blocks of one group."""
        groups = self.grouped(part.blocks)
        return [part] if len(groups) == 1 else [replace(part, blocks=blocks) for blocks in groups]

    def grouped(self, blocks: range) -> Sequence[range]:
        """Divides these blocks by their groups."""
        size = self.group_blocks
        groups = range(blocks.start // size, (blocks.stop - 1) // size + 1) if blocks else range(0)
        return [range(max(g * size, blocks.start), min((g + 1) * size, blocks.stop)) for g in groups]

    def cycles(self, part: Part) -> int:
        box, pieces = self.needs(0, part), self.pieces(part)
        read = inside(0, self.shapes[0], box) if len(pieces) > 1 else dense(0, box)
        return sum(self.time(some, read).cycles for some in pieces)

    @abstractmethod
    def time(self, part: Part, read: Placed) -> Timed:
        """Says how long one command takes."""

    def block_rows(self, part: Part) -> int:
        """Rows, each of them as often as there are blocks of channels."""
        return len(part.rows) * -(-len(self.channels(part.blocks)) // self.npu.columns)

    def fields(self, some: Part, part: Part, places: Places) -> dict[str, int]:
        """``some`` is what the command computes of the part that has these places."""
        window, read, output = self.window, places.inputs[0], places.output
        source, channels = self.source_channels(some.blocks), self.channels(some.blocks)
        return {
            "input": read.address + source.start - read.box.channels.start,
            "input_row": read.row_pitch,
            "input_pixel": read.pixel_pitch,
            "input_rows": len(read.box.rows),
            "input_columns": len(read.box.columns),
            "kernel_rows": window.kernel[0],
            "kernel_columns": window.kernel[1],
            "stride_y": window.strides[0],
            "stride_x": window.strides[1],
            "dilation_y": window.dilation[0],
            "dilation_x": window.dilation[1],
            "first_row": part.rows.start * window.strides[0] - window.padding[0] - read.box.rows.start,
            "first_column": part.columns.start * window.strides[1] - window.padding[1] - read.box.columns.start,
            "output": output.address + channels.start - output.box.channels.start,
            "output_row": output.row_pitch,
            "output_pixel": output.pixel_pitch,
            "channels": len(channels),
            "rows": len(part.rows),
            "columns": len(part.columns),
            "clamp_min": self.clamp.clamp_min,
            "clamp_max": self.clamp.clamp_max,
        }


@dataclass(frozen=True)
class Pool(Windowed):
    """The mean of each window, or its largest element."""

    average: bool = False
    kind = "pool"
    alike_by = (*Windowed.alike_by, "average")

    def source_channels(self, blocks: range) -> range:
        return self.channels(blocks)

    def time(self, part: Part, read: Placed) -> Timed:
        each = times.pooled(self.npu, self.window.kernel, self.average)
        windows = self.block_rows(part) * len(part.columns)
        cycles = times.POOLED + (times.MEAN if self.average else 0) + each.row(windows)
        return Timed(cycles, Results(times.ACTIVATIONS, windows, each.following, behind=times.BEHIND))

    def fields(self, some: Part, part: Part, places: Places) -> dict[str, int]:
        return super().fields(some, part, places) | {"average": int(self.average)}


@dataclass(frozen=True, eq=False)
class Weighted(Windowed):
    """Has weights and an output stage. ``parameters``: bias, multiplier and shift of each output channel, the input's
    zero point in the bias already. ``addition`` adds a residual, which is the second input."""

    parameters: NDArray[Any]
    addition: tuple[int, ...] = ()
    once: bool = False

    @property
    @abstractmethod
    def block_weight_bytes(self) -> int:
        """Counts the bytes of all steps."""

    @abstractmethod
    def packed_weights(self, block: int, steps: range) -> bytes: ...

    def parameter_reads(self, blocks: int) -> int:
        """Cycles that they take before the first result, with what an addition needs."""
        added = 1 + times.addition_reads(self.npu) if self.addition else 0
        return blocks * -(-self.npu.parameter_bytes // self.npu.tile_bytes) + added

    def step_bytes(self, steps: range) -> int:
        return self.block_weight_bytes * len(steps) // self.steps

    def _room(self, blocks: range, each: int) -> int:
        """Counts bytes of constants. A column reads a byte for each row at once, so a command's begin at such bytes."""
        return sum(-(-len(some) * each // self.npu.rows) * self.npu.rows for some in self.grouped(blocks))

    def weight_bytes(self, blocks: range, steps: range) -> int:
        """Weights, and what the output stage needs where the sums are complete."""
        tail = self._room(blocks, self.npu.parameter_bytes) + len(self.addition) * WORD
        return self._room(blocks, self.step_bytes(steps)) + (tail if steps.stop == self.steps else 0)

    def weights(self, blocks: range, steps: range) -> bytes:
        whole, groups = steps.stop == self.steps, self.grouped(blocks)
        parts = [b"".join(self.packed_weights(block, steps) for block in some) for some in groups]
        parts += [b"".join(map(self._packed_parameters, some)) for some in groups if whole]
        data = b"".join(part + bytes(-len(part) % self.npu.rows) for part in parts)
        return data + (np.array(self.addition, "<i4").tobytes() if whole else b"")

    def _packed_parameters(self, block: int) -> bytes:
        channels = self.channels(range(block, block + 1))
        packed = np.zeros((self.parameters.shape[1], self.npu.columns), "<i4")
        packed[:, : len(channels)] = self.parameters[channels.start : channels.stop].T
        return packed.tobytes()

    def fields(self, some: Part, part: Part, places: Places) -> dict[str, int]:
        fields = super().fields(some, part, places)
        before = range(part.blocks.start, some.blocks.start)
        weights = places.weights + self._room(before, self.step_bytes(part.steps))
        fields |= {"weights": weights, "input_zero_point": self.clamp.input_zero_point}
        if part.steps.stop < self.steps:
            return fields | dict.fromkeys(("output", "output_row", "output_pixel", "clamp_min", "clamp_max"), 0)
        tail = places.weights + self._room(part.blocks, self.step_bytes(part.steps))
        fields["parameters"] = tail + self._room(before, self.npu.parameter_bytes)
        fields |= {"output_zero_point": self.clamp.output_zero_point} | ({"float32": 1} if self.clamp.single else {})
        if self.addition:
            fields |= self._residual(some, places.inputs[1], tail + self._room(part.blocks, self.npu.parameter_bytes))
        return fields

    def _residual(self, some: Part, residual: Placed, addition: int) -> dict[str, int]:
        address = residual.address + self.channels(some.blocks).start - residual.box.channels.start
        pitches = {"residual_row": residual.row_pitch, "residual_pixel": residual.pixel_pitch}
        return {"residual": address, "addition": addition, "add": 1, "once": int(self.once), **pitches}


@dataclass(frozen=True, eq=False)
class Convolution(Weighted):
    """``filters``: OHWI, I of a group. Also fully connected layers, whose rows are columns of an image."""

    filters: NDArray[Any] = field(kw_only=True)
    kind = "convolve"
    alike_by: ClassVar[tuple[str, ...]] = (*Weighted.alike_by, "run")

    @property
    def run(self) -> int:
        """Channels of a tap."""
        return int(self.filters.shape[3])

    @property
    def block_weight_bytes(self) -> int:
        return self.steps * self.npu.tile_bytes

    def source_channels(self, blocks: range) -> range:
        first, last = blocks.start // self.group_blocks, (blocks.stop - 1) // self.group_blocks
        return range(first * self.run, (last + 1) * self.run)

    def sum_bytes(self, part: Part) -> int:
        return part.pixels * len(part.blocks) * self.npu.columns * WORD

    def packed_weights(self, block: int, steps: range) -> bytes:
        """Tile after tile, in each of them column after column."""
        channels, npu = self.channels(range(block, block + 1)), self.npu
        dense = np.zeros((npu.columns, self.steps * npu.rows), np.int8)
        filters = self.filters[channels.start : channels.stop].reshape(len(channels), -1)
        dense[: len(channels), : filters.shape[1]] = filters
        tiles = dense.reshape(npu.columns, self.steps, npu.rows).transpose(1, 0, 2)
        return np.ascontiguousarray(tiles[steps.start : steps.stop]).tobytes()

    def time(self, part: Part, read: Placed) -> Timed:
        depth, steps = self.window.taps * self.run, part.steps
        whole = read.pixel_pitch == self.run and self.window.dilation[1] == 1
        run = self.run * (self.window.kernel[1] if whole else 1)
        rows = self.npu.rows
        fed = times.feeding(run, steps.start * rows, min(steps.stop * rows, depth), rows)
        blocks, array = len(part.blocks), len(part.blocks) * len(steps)
        cycles = times.convolve(fed, part.pixels, array, steps.start * rows // self.run)
        results = Results(times.ACTIVATIONS, part.pixels, max(array, fed.pieces), blocks, len(steps), times.BEHIND)
        return Timed(self.ended(cycles, part, part.pixels * array), results if steps.stop == self.steps else None)

    def ended(self, cycles: int, part: Part, array: int) -> int:
        """Adds what comes before and behind, unless the sums wait for more."""
        if part.steps.stop < self.steps:
            return cycles - times.UNFINISHED
        least = times.WEIGHED + self.parameter_reads(len(part.blocks)) + array
        return max(cycles, least) + (times.ADDED if self.addition else 0)

    def fields(self, some: Part, part: Part, places: Places) -> dict[str, int]:
        fields = super().fields(some, part, places) | {"run": self.run}
        fields |= {"first_step": part.steps.start, "steps": len(part.steps)}
        if len(part.steps) == self.steps:
            return fields
        kept = {"continue": int(part.steps.start > 0), "keep": int(part.steps.stop < self.steps)}
        return fields | kept | {"sums": places.sums}


@dataclass(frozen=True, eq=False)
class Depthwise(Weighted):
    """``filters``: HWO. Output channel o reads input channel o / multiplier."""

    filters: NDArray[Any] = field(kw_only=True)
    multiplier: int = 1
    kind = "depthwise"
    alike_by = (*Weighted.alike_by, "multiplier")

    @property
    def block_weight_bytes(self) -> int:
        return self.window.taps * self.npu.columns

    def time(self, part: Part, read: Placed) -> Timed:
        rows, shares = self.block_rows(part), self.multiplier != 1
        window = self.window
        slides = times.sliding(self.npu, window.kernel, window.strides[1], window.dilation[1])
        row = slides.row(len(part.columns))
        begin = max(times.SLID, times.SLID_WEIGHED + self.parameter_reads(rows // len(part.rows)))
        each = max(row, self.npu.columns + 1) if shares else row
        begin = max(begin, self.npu.columns + times.SHARED) if shares else begin
        cycles = begin + (rows - 1) * each + row + (times.ADDED if self.addition else 0)
        results = Results(times.ACTIVATIONS, rows, each, len(part.columns), slides.following, times.BEHIND)
        return Timed(cycles, results)

    def source_channels(self, blocks: range) -> range:
        channels = self.channels(blocks)
        return range(channels.start // self.multiplier, (channels.stop - 1) // self.multiplier + 1)

    def packed_weights(self, block: int, steps: range) -> bytes:
        """Tap after tap."""
        channels = self.channels(range(block, block + 1))
        dense = np.zeros((self.window.taps, self.npu.columns), np.int8)
        dense[:, : len(channels)] = self.filters.reshape(self.window.taps, -1)[:, channels.start : channels.stop]
        return dense.tobytes()

    def fields(self, some: Part, part: Part, places: Places) -> dict[str, int]:
        return super().fields(some, part, places) | {"multiplier": self.multiplier}


@dataclass(frozen=True)
class Elements(Layer):
    """Tensors of as many elements, seen as rows of them."""

    npu: Npu
    kind = ""
    names: ClassVar[tuple[str, ...]] = ()
    """Names the fields that are places, the output last, and the constants."""
    alike_by = ("shapes", "shape", "constants")

    @property
    @abstractmethod
    def constants(self) -> bytes:
        """What each part needs beside the tensors."""

    @abstractmethod
    def time(self, rows: int, columns: int) -> Timed:
        """Says how long a command takes."""

    def channels(self, blocks: range) -> range:
        return range(1)

    def needs(self, index: int, part: Part) -> Box:
        return self.result(part)

    def weight_bytes(self, blocks: range, steps: range) -> int:
        return len(self.constants)

    def weights(self, blocks: range, steps: range) -> bytes:
        return self.constants

    def cycles(self, part: Part) -> int:
        return self.time(*self._rows(part)).cycles

    def commands(self, part: Part, places: Places) -> Sequence[Compute]:
        rows, columns = self._rows(part)
        fields = {"bytes": columns, "rows": rows, self.names[-1]: places.weights}
        for name, placed in zip(self.names[:-1], (*places.inputs, places.output), strict=True):
            fields |= {name: placed.address, f"{name}_row": placed.row_pitch}
        time = self.time(rows, columns)
        return [Compute(self.kind, fields | self.flags(), time.cycles, FORMATS[self.kind].bytes, time.results)]

    def flags(self) -> dict[str, int]:
        return {}

    def one_a_cycle(self, before: int, results: int) -> Timed:
        return Timed(before + results, Results(times.ACTIVATIONS, results, behind=times.BEHIND))

    def _rows(self, part: Part) -> tuple[int, int]:
        """Whole rows lie one behind the other and are one."""
        if len(part.columns) == self.shape.columns:
            return 1, part.pixels
        return len(part.rows), len(part.columns)


@dataclass(frozen=True)
class Addition(Elements):
    """Adds two tensors; ``once``: the real sum is rounded."""

    addition: tuple[int, ...]
    once: bool
    kind = "add"
    names = ("first", "second", "output", "addition")

    @property
    def constants(self) -> bytes:
        return np.array(self.addition, "<i4").tobytes()

    def time(self, rows: int, columns: int) -> Timed:
        return self.one_a_cycle(times.ELEMENTS + times.addition_reads(self.npu), rows * -(-columns // self.npu.columns))

    def flags(self) -> dict[str, int]:
        return {"once": int(self.once)}


@dataclass(frozen=True)
class Table(Elements):
    """A function of each element."""

    table: bytes
    kind = "lookup"
    names = ("source", "output", "table")

    @property
    def constants(self) -> bytes:
        return self.table

    def time(self, rows: int, columns: int) -> Timed:
        """The table is copied to where each port finds its own."""
        copied = -(-len(self.table) // self.npu.tile_bytes)
        return self.one_a_cycle(times.LOOKED_UP + copied, rows * -(-columns // self.npu.ports))
