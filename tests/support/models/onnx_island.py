"""What rows of ONNX's islands are made of: grids, weights, and what a row says."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from support.models.onnx_models import OPSET, Graph, Grid

U8, S8 = Grid(0.05, 120, "uint8"), Grid(0.04, -3)
TO_U8, TO_S8 = Grid(0.11, 100, "uint8"), Grid(0.09, 5)
WIDE, TO_WIDE = Grid(0.0003, 0, "int16"), Grid(0.0011, 0, "int16")
U16, TO_U16 = Grid(0.0003, 30000, "uint16"), Grid(0.0011, 27000, "uint16")
TO_ONE = Grid(1 / 32768, 0, "int16")
RANDOM = np.random.default_rng(7)
RARELY = 0.01
"""The share of elements that may be a step apart, where float noise decides between two neighbours."""


def stored(*shape: int, low: int = -127, high: int = 127) -> Any:
    return RANDOM.integers(low, high, shape, endpoint=True)


def filled(grid: Grid, *shape: int) -> Any:
    """Of all values that weights of its type may have."""
    limits = {"int8": (-127, 127), "uint8": (0, 254), "int4": (-8, 7), "uint4": (0, 15)}
    return stored(*shape, low=limits[grid.dtype][0], high=limits[grid.dtype][1])


def per_channel(count: int, axis: int = 0, dtype: str = "int8") -> Grid:
    return Grid(tuple(np.linspace(0.002, 0.02, count).tolist()), 0, dtype, axis)


def bias(graph: Graph, count: int, data: Grid, weights: Grid) -> str:
    scales = np.broadcast_to(data.scales * weights.scales, (count,))
    return graph.weights(stored(count, low=-900, high=900), Grid(tuple(map(float, scales)), 0, "int32"))


Build = Callable[[Graph], None]


@dataclass(frozen=True)
class Case:
    """``operators`` are those of uaccel's that the island becomes, ``bits`` its weights have. Only later opsets have
    steps to 16 bits, and weights of four."""

    name: str
    build: Build
    operators: tuple[str, ...]
    rarely: float = RARELY
    opset: int = OPSET
    bits: int = 8

    def make(self, graph: Graph) -> None:
        """The same numbers whatever other cases ran before."""
        RANDOM.bit_generator.state = np.random.default_rng(zlib.crc32(self.name.encode())).bit_generator.state
        self.build(graph)
