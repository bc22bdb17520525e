"""Successive layers that pass some rows at a time through the chip: what lies between them never leaves it.

A chain computes a band of its last output's rows after the other. For each of them every layer computes the rows that
the layers behind it read. What two neighbouring bands both read is computed for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from uaccel.machines.geometry import Shape
from uaccel.streams.decided import Slots, Where
from uaccel.streams.layer import Layer, Part

Rows = dict[str, range]
"""Of tensors: what a band computes or reads."""


@dataclass(frozen=True)
class Links:
    """The layers of a chain. Only the last one's output is read by others."""

    layers: tuple[Layer, ...]

    @property
    def output(self) -> Layer:
        """Whose rows are cut into bands."""
        return self.layers[-1]

    @cached_property
    def inner(self) -> frozenset[str]:
        """What never leaves the chip."""
        return frozenset(layer.output for layer in self.layers[:-1])

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """Of inputs, as their first readers see them, and of what is made."""
        seen: dict[str, Shape] = {}
        for layer in self.layers:
            for name, shape in zip(layer.inputs, layer.shapes, strict=True):
                seen.setdefault(name, shape)
            seen[layer.output] = layer.shape
        return seen

    @cached_property
    def spans(self) -> dict[str, tuple[int, int]]:
        """From which layer to which one a band has rows of a tensor on chip."""
        spans: dict[str, tuple[int, int]] = {}
        for number, layer in enumerate(self.layers):
            for name in (*layer.inputs, layer.output):
                spans[name] = (spans.get(name, (number, number))[0], number)
        return spans

    def rows(self, band: range) -> Rows:
        """What a band of the last output needs of every tensor."""
        needed = {self.output.output: band}
        for layer in reversed(self.layers):
            part = whole_width(layer, needed[layer.output])
            for index, name in enumerate(layer.inputs):
                rows, before = layer.needs(index, part).rows, needed.get(name)
                needed[name] = rows if before is None else _hull(rows, before)
        return needed

    def bands(self, height: int) -> Iterator[Rows]:
        """One after the other."""
        whole = self.output.shape.rows
        for begin in range(0, whole, height):
            yield self.rows(range(begin, min(begin + height, whole)))


def whole_width(layer: Layer, rows: range, blocks: range | None = None) -> Part:
    """All columns of these rows."""
    return Part(0, rows, range(layer.shape.columns), blocks or range(layer.blocks), range(layer.steps))


def linked(layers: Sequence[Layer], others: Iterable[Layer]) -> bool:
    """Whether ``layers`` can pass rows to each other: all see rows of a tensor alike, and they alone read what lies
    between them."""
    inner = {layer.output for layer in layers[:-1]}
    if any(inner.intersection(layer.inputs) for layer in others):
        return False
    read = {name for layer in layers for name in layer.inputs}
    rows: dict[str, tuple[int, int]] = {}
    for layer in layers:
        for name, shape in zip((*layer.inputs, layer.output), (*layer.shapes, layer.shape), strict=True):
            if shape.images > 1 or rows.setdefault(name, (shape.rows, shape.row_pitch)) != (
                shape.rows,
                shape.row_pitch,
            ):
                return False
    return inner <= read


def _hull(one: range, other: range) -> range:
    return range(min(one.start, other.start), max(one.stop, other.stop))


@dataclass(frozen=True)
class Weights:
    """Of a layer of a chain: so many blocks at a time, in these slots. What is still there is not loaded again."""

    blocks: int
    slots: Slots


@dataclass(frozen=True)
class Chain:
    """With everything that has been decided of it: rows of a band, and where tensors and each layer's weights lie."""

    links: Links
    height: int
    places: Mapping[str, Where]
    weights: tuple[Weights, ...]
