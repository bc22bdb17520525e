"""Boxes on chip, and how they move between memory and a scratchpad."""

from __future__ import annotations

from dataclasses import dataclass

from uaccel.machines.geometry import Box, Shape


@dataclass(frozen=True)
class Placed:
    """A box in on-chip memory: where its first byte lies, and how far rows and pixels are from each other."""

    address: int
    row_pitch: int
    pixel_pitch: int
    box: Box

    @property
    def end(self) -> int:
        """Behind its last byte."""
        rows, columns = len(self.box.rows) - 1, len(self.box.columns) - 1
        return self.address + rows * self.row_pitch + columns * self.pixel_pitch + len(self.box.channels)


def dense(address: int, box: Box) -> Placed:
    """A box on its own, without gaps."""
    pixel = len(box.channels)
    return Placed(address, len(box.columns) * pixel, pixel, box)


def inside(address: int, shape: Shape, box: Box) -> Placed:
    """A box of a tensor that lies there as a whole."""
    return Placed(address + shape.offset(box), shape.row_pitch, shape.channels, box)


@dataclass(frozen=True)
class Move:
    """What DMA is told: ``planes`` of ``runs`` runs of ``run`` consecutive bytes; strides in memory and on chip."""

    run: int
    runs: int = 1
    planes: int = 1
    strides: tuple[int, int] = (0, 0)
    pitches: tuple[int, int] = (0, 0)

    @property
    def total_runs(self) -> int:
        return self.runs * self.planes

    @property
    def bytes(self) -> int:
        return self.run * self.total_runs

    @property
    def extent(self) -> int:
        """Bytes from the first to the last in memory, gaps included."""
        return (self.planes - 1) * self.strides[1] + (self.runs - 1) * self.strides[0] + self.run


def move_of(shape: Shape, placed: Placed) -> Move:
    """Of a box of a tensor in memory, from or to its place on chip; runs that continue each other are one."""
    box = placed.box
    levels = [
        (len(box.columns), shape.channels, placed.pixel_pitch),
        (len(box.rows), shape.row_pitch, placed.row_pitch),
    ]
    run = len(box.channels)
    while levels and (levels[0][0] == 1 or levels[0][1] == levels[0][2] == run):
        run *= levels.pop(0)[0]
    levels = [level for level in levels if level[0] > 1]
    counts, strides, pitches = zip(*(levels + [(1, 0, 0)] * (2 - len(levels))), strict=True)
    return Move(run, counts[0], counts[1], (strides[0], strides[1]), (pitches[0], pitches[1]))
