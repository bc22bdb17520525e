"""Tensors, parts of them, and windows that slide over them: what of an input a part of the output reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """Bytes of a dense int8 tensor: one after the other in this order, the last one fastest."""

    images: int
    rows: int
    columns: int
    channels: int

    @property
    def bytes(self) -> int:
        return self.pixels * self.channels

    @property
    def pixels(self) -> int:
        return self.images * self.rows * self.columns

    @property
    def row_pitch(self) -> int:
        return self.columns * self.channels

    def offset(self, box: Box) -> int:
        """Of the box's first byte."""
        row = box.image * self.rows + box.rows.start
        return (row * self.columns + box.columns.start) * self.channels + box.channels.start


@dataclass(frozen=True)
class Box:
    """Part of one image."""

    image: int
    rows: range
    columns: range
    channels: range

    @property
    def bytes(self) -> int:
        return len(self.rows) * len(self.columns) * len(self.channels)

    def __str__(self) -> str:
        image = f"image {self.image} " if self.image else ""
        return f"{image}rows {span(self.rows)} columns {span(self.columns)} channels {span(self.channels)}"


def span(values: range) -> str:
    """``2:5``, as Python's slices."""
    return f"{values.start}:{values.stop}"


@dataclass(frozen=True)
class Window:
    """Kernel, strides and dilation in rows and columns; padding above and to the left."""

    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    def extent(self, axis: int, outputs: int) -> int:
        """Rows (axis 0) or columns (1) of the input, padding included, that so many of the output depend on."""
        return (outputs - 1) * self.strides[axis] + (self.kernel[axis] - 1) * self.dilation[axis] + 1

    def covered(self, axis: int, outputs: range, extent: int) -> range:
        """What these outputs read along an axis, without padding; something at least, where all of it is padding."""
        first = outputs.start * self.strides[axis] - self.padding[axis]
        begin = min(max(first, 0), extent - 1)
        return range(begin, max(min(first + self.extent(axis, len(outputs)), extent), begin + 1))
