"""Spreads the stored values of a sparse tensor over all its elements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import tflite

from uaccel.model import Array, Shape

# The dimensions are visited in a stated order; blocks of a dimension are dimensions of their own, behind the others.
# A dense dimension has each of its indices below each index of the dimension before. A sparse one lists them.

VECTORS: Final[Mapping[int, tuple[Any, str]]] = {
    tflite.SparseIndexVector.Int32Vector: (tflite.Int32Vector, "<i4"),
    tflite.SparseIndexVector.Uint16Vector: (tflite.Uint16Vector, "<u2"),
    tflite.SparseIndexVector.Uint8Vector: (tflite.Uint8Vector, "u1"),
}


def dense(table: Any, values: Array, shape: Shape) -> Array:
    """The tensor of that shape; ValueError where the table contradicts the shape or the values."""
    order = _numbers(table.TraversalOrderAsNumpy(), table.TraversalOrderLength())
    blocked = _numbers(table.BlockMapAsNumpy(), table.BlockMapLength())
    rank = len(shape)
    if sorted(order) != list(range(rank + len(blocked))) or len(order) != table.DimMetadataLength():
        raise ValueError(f"a sparse tensor of rank {rank} visits the dimensions {order[:9]}")
    if any(not 0 <= axis < rank for axis in blocked) or len(set(blocked)) != len(blocked):
        raise ValueError(f"a sparse tensor of rank {rank} has blocks of the dimensions {blocked[:9]}")
    most = math.prod(shape)
    at: dict[int, Array] = {}
    count = 1
    for position, dimension in enumerate(order):
        parents, index = _below(table.DimMetadata(position), count, most)
        at = {known: places[parents] for known, places in at.items()} | {dimension: index}
        count = len(index)
    if count != len(values):
        raise ValueError(f"a sparse tensor has {len(values)} values and places for {count}")
    result = np.zeros(shape, values.dtype)
    result[tuple(_places(table, order, blocked, at, axis, shape[axis]) for axis in range(rank))] = values
    return result


def _below(entry: Any, count: int, most: int) -> tuple[Array, Array]:
    """The indices of a dimension, and for each the number of the one that it lies below."""
    if entry.Format() == tflite.DimensionType.DENSE:
        size = entry.DenseSize()
        if not 0 <= size * count <= most:
            raise ValueError(f"a sparse tensor of {most} elements has {size} times {count} of them")
        return np.repeat(np.arange(count), size), np.tile(np.arange(size), count)
    segments = _vector(entry.ArraySegmentsType(), entry.ArraySegments()).astype(np.int64)
    indices = _vector(entry.ArrayIndicesType(), entry.ArrayIndices()).astype(np.int64)
    lengths = np.diff(segments)
    right = len(segments) == count + 1 and segments[0] == 0 and segments[-1] == len(indices) and (lengths >= 0).all()
    if not right or len(indices) > most:
        raise ValueError(f"the segments of a sparse tensor do not divide its {len(indices)} indices among {count}")
    return np.repeat(np.arange(count), lengths), indices


def _places(table: Any, order: list[int], blocked: list[int], at: dict[int, Array], axis: int, extent: int) -> Array:
    """The index of each value along one axis."""
    places = at[axis]
    if axis in blocked:
        block = len(at) - len(blocked) + blocked.index(axis)
        size = table.DimMetadata(order.index(block)).DenseSize()
        places = places * size + at[block]
    if places.size and not 0 <= int(places.min()) <= int(places.max()) < extent:
        raise ValueError(f"a sparse tensor has a value at {int(places.max())} of an axis of {extent}")
    return places


def _vector(kind: int, table: Any) -> Array:
    if kind not in VECTORS or table is None:
        raise ValueError(f"a sparse dimension keeps its indices in a vector of kind {kind}")
    view, dtype = VECTORS[kind]
    vector = view()
    vector.Init(table.Bytes, table.Pos)
    return np.frombuffer(vector.ValuesAsNumpy().tobytes() if vector.ValuesLength() else b"", dtype)


def _numbers(vector: Any, length: int) -> list[int]:
    return [int(number) for number in vector] if length else []
