"""The parts that a tiling cuts a layer into: their order, and what they need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from uaccel.basics.numbers import pieces, round_up
from uaccel.machines.tiling import Tiling
from uaccel.streams.layer import Layer, Part


def parts(layer: Layer, tiling: Tiling) -> Iterator[Part]:
    """In the order of execution; steps of one sum follow each other."""
    places = [
        (image, rows, columns)
        for image in range(layer.shape.images)
        for rows in _cut(layer.shape.rows, tiling.rows)
        for columns in _cut(layer.shape.columns, tiling.columns)
    ]
    chunks, steps = _cut(layer.blocks, tiling.blocks), _cut(layer.steps, tiling.steps)
    pairs = (
        ((p, c) for c in chunks for p in places) if tiling.weights_stay else ((p, c) for p in places for c in chunks)
    )
    for (image, rows, columns), chunk in pairs:
        for some in steps:
            yield Part(image, rows, columns, chunk, some)


def typical_part(layer: Layer, tiling: Tiling) -> Part:
    """One in the middle: the largest there are, but for borders."""
    blocks, steps = range(min(tiling.blocks, layer.blocks)), range(min(tiling.steps, layer.steps))
    rows, columns = (_middle(*sizes) for sizes in _extents(layer, tiling))
    return Part(0, rows, columns, blocks, steps)


def input_bytes(layer: Layer, index: int, tiling: Tiling) -> int:
    """The most that a part needs of an input."""
    part = typical_part(layer, tiling)
    rows, columns = (_cut(*sizes) for sizes in _extents(layer, tiling))
    image, blocks, steps = part.image, part.blocks, part.steps
    height = max(len(layer.needs(index, Part(image, some, part.columns, blocks, steps)).rows) for some in rows)
    width = max(len(layer.needs(index, Part(image, part.rows, some, blocks, steps)).columns) for some in columns)
    return height * width * _widest(layer, index, tiling)


def output_bytes(layer: Layer, tiling: Tiling) -> int:
    """The most that a part gives."""
    chunks = _cut(layer.blocks, tiling.blocks)
    return tiling.rows * tiling.columns * max(len(layer.channels(chunk)) for chunk in chunks)


def total_weights(layer: Layer, tiling: Tiling, alignment: int) -> int:
    """Bytes of all chunks side by side."""
    chunks, steps = _cut(layer.blocks, tiling.blocks), _cut(layer.steps, tiling.steps)
    sizes = [layer.weight_bytes(chunk, some) for chunk in chunks for some in steps]
    return sum(round_up(size, alignment) for size in sizes)


def _widest(layer: Layer, index: int, tiling: Tiling) -> int:
    part = typical_part(layer, tiling)
    chunks = _cut(layer.blocks, tiling.blocks)
    return max(len(layer.needs(index, replace(part, blocks=chunk)).channels) for chunk in chunks)


def _extents(layer: Layer, tiling: Tiling) -> tuple[tuple[int, int], tuple[int, int]]:
    return (layer.shape.rows, tiling.rows), (layer.shape.columns, tiling.columns)


def count(layer: Layer, tiling: Tiling) -> int:
    """How many parts there are."""
    chunks = pieces(layer.blocks, tiling.blocks) * pieces(layer.steps, tiling.steps)
    return tiling.pixel_pieces(layer.shape) * chunks


def _cut(whole: int, size: int) -> list[range]:
    return [range(begin, min(begin + size, whole)) for begin in range(0, whole, size)]


def _middle(whole: int, size: int) -> range:
    """Of the pieces of a cut."""
    begin = (pieces(whole, size) - 1) // 2 * size
    return range(begin, min(begin + size, whole))
