"""Models machines with memories on chip, DMA and engines that work side by side.

This module holds what both kinds of such machines share: memories and DMA, boxes of tensors, tilings, the search by
estimated cost, and engines in time. The two kinds differ in who gives the commands:

``accelerator.tensor``: C loops over intrinsics
    The CPU gives every command, through functions of the driver. uaccel knows the array itself, so this way adds its
    numbers, the layouts of weights, loops with symbolic bounds, and time by banks that interlock.
``accelerator.streams``: a command stream
    The machine fetches commands that were made ahead of time. The vendor states what computes a part of a layer, so
    this way adds layers as vendors state them, places on chip over several layers, tokens between engines, and time
    with fetching and full queues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from uaccel.ops.windows import SlidingWindow as SlidingWindow
from uaccel.util.text import pieces

# What every machine has: memories on chip, and DMA between them and the memory outside.


@dataclass(frozen=True)
class Memory:
    """Describes an on-chip memory. ``banks``: with 2, one engine fills a half while another works on the other half.

    ``alignment``: every address that an engine is given is a multiple of so many bytes.
    """

    bytes: int
    banks: int = 1
    alignment: int = 1

    def __post_init__(self) -> None:
        if self.banks not in (1, 2):
            raise ValueError(f"a memory has {self.banks} banks, wanted 1 or 2")
        if self.bytes < 1 or self.alignment < 1 or self.bank_bytes % self.alignment or self.bytes % self.banks:
            raise ValueError(
                f"a memory of {self.bytes} bytes in {self.banks} banks cannot be aligned to {self.alignment}"
            )

    @property
    def bank_bytes(self) -> int:
        return self.bytes // self.banks


@dataclass(frozen=True)
class Dma:
    """Describes DMA: a transfer takes ``start_up`` cycles, and each of its rows its bytes by ``bytes_per_cycle``."""

    bytes_per_cycle: int
    start_up: int

    def cycles(self, row: int, rows: int = 1) -> int:
        """How long a transfer of ``rows`` rows of ``row`` bytes takes."""
        return self.start_up + rows * pieces(row, self.bytes_per_cycle)


class Machine:
    """Holds what every machine has, whichever way its commands come."""

    activations: Memory
    weights: Memory
    load: Dma
    store: Dma

    def memory(self, name: str) -> Memory:
        """One of its memories on chip."""
        found: Memory = getattr(self, name)
        return found


# Tensors, and boxes of them; ``SlidingWindow`` says which box of an input a part of the output reads.


@dataclass(frozen=True)
class Shape:
    """Holds the extents of a dense int8 tensor in NHWC order: channels are adjacent."""

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
        """The offset of the box's first byte in the tensor."""
        row = box.image * self.rows + box.rows.start
        return (row * self.columns + box.columns.start) * self.channels + box.channels.start


@dataclass(frozen=True)
class Box:
    """Names a part of one image by ranges of its rows, columns and channels."""

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
    """A range as Python writes slices: ``2:5``."""
    return f"{values.start}:{values.stop}"


# How a layer is cut into pieces: their largest extents, the order of the loops, and which sizes are worth trying.


@dataclass(frozen=True)
class Tiling:
    """Holds the largest piece: output rows and columns, ``blocks`` of output channels, and ``steps`` of the sums.

    ``weights_stay``: each piece of the weights is used for all pixels before the next one comes; else each piece of
    the image is used with all weights. ``buffered``: the activations of one piece come or go while another is computed.
    """

    rows: int
    columns: int
    blocks: int
    steps: int
    weights_stay: bool
    buffered: bool = True

    def pixel_pieces(self, shape: Shape) -> int:
        """How many pieces an output of this shape has if channels are not cut."""
        return shape.images * pieces(shape.rows, self.rows) * pieces(shape.columns, self.columns)


def extents(whole: int, *, sparsely: bool = False) -> list[int]:
    """Sizes of pieces to try, the largest first, each as equal as can be. The number of pieces grows by one each time
    or, ``sparsely``, by half of itself. So the sizes are few: at most about twice the root of ``whole``, and sparsely
    about log(``whole``) / log(1.5)."""
    sizes = [whole]
    count = 1
    while sizes[-1] > 1:
        count += max(1, count // 2) if sparsely else 1
        size = pieces(whole, count)
        if size < sizes[-1]:
            sizes.append(size)
    return sizes


# Search by cost: every option is estimated, and the cheapest ones that fit are given first.

Option = TypeVar("Option")
Placed = TypeVar("Placed")


def promising(
    options: Iterable[Option], estimate: Callable[[Option], Any], place: Callable[[Option], Placed | None]
) -> Iterator[tuple[Any, Placed]]:
    """The options that can be placed, with their estimates, the least first. All are estimated and sorted before any is
    placed, since placing takes longer and few are asked for."""
    costs = [(estimate(option), option) for option in options]
    for cost, option in sorted(costs, key=lambda pair: pair[0]):
        placed = place(option)
        if placed is not None:
            yield cost, placed


# What lies on chip meanwhile, for readers of reports.


class Tile(NamedTuple):
    """Says that the bytes ``begin`` to ``end`` of a memory on chip are in use from command ``first`` to ``last``."""

    memory: str
    begin: int
    end: int
    first: int
    last: int


# When commands run: three engines side by side, each with its commands in their order.

# Engines in the order in which data pass them; neighbours give each other tokens.
ENGINES: Final = ("load", "compute", "store")


class BusySpan(NamedTuple):
    """Holds when a command runs: from ``begin`` up to ``end``."""

    begin: int
    end: int


@dataclass(frozen=True)
class Timeline:
    """Holds when each command runs, the cycles in all, and for how many of them each engine is busy."""

    spans: tuple[BusySpan, ...]
    total: int
    busy: dict[str, int]

    @property
    def commands(self) -> int:
        """The number of commands."""
        return len(self.spans)


@dataclass
class Engines:
    """Computes when commands run that are given one after the other. ``free``: when an engine can begin the next."""

    spans: list[BusySpan] = field(default_factory=list)
    free: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENGINES, 0))
    busy: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENGINES, 0))

    def copy(self) -> Engines:
        """The same, to go on in another way."""
        return Engines(list(self.spans), dict(self.free), dict(self.busy))

    def run(self, engine: str, cycles: int, awaited: Iterable[int]) -> BusySpan:
        """Runs a command as soon as its engine is free and all of ``awaited`` has passed."""
        begin = max([self.free[engine], *awaited])
        span = BusySpan(begin, begin + cycles)
        self.free[engine] = span.end
        self.busy[engine] += cycles
        self.spans.append(span)
        return span

    @property
    def timeline(self) -> Timeline:
        return Timeline(tuple(self.spans), max(self.free.values()), self.busy)
