"""What has been decided of a layer: how it is cut, and where its tensors lie."""

from __future__ import annotations

from dataclasses import dataclass

from uaccel.machines.tiling import Tiling
from uaccel.streams.layer import Layer


@dataclass(frozen=True)
class Home:
    """Where a tensor lies in memory: ``offset`` bytes into a place."""

    place: int
    offset: int


@dataclass(frozen=True)
class Slots:
    """Memory on chip for pieces of a tensor, which take turns; each has room for so many bytes."""

    addresses: tuple[int, ...]
    room: int


Where = int | Slots
"""A tensor that is on chip as a whole, by its address, or passes through in pieces."""


@dataclass(frozen=True)
class Decided:
    """A layer with everything that has been decided of it: one ``where`` for each input, and the output's."""

    layer: Layer
    tiling: Tiling
    inputs: tuple[Where, ...]
    output: Where
