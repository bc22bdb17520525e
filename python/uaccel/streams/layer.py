"""What a vendor says of one layer: what its parts need, how long they take, and the commands that compute them.

The planner cuts the output into parts: an image, rows, columns, blocks of channels, and steps of the sums where they
can be added up by several commands. It moves inputs, weights and results; the vendor's commands find them on chip.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uaccel.machines.geometry import Box, Shape
from uaccel.streams.geometry import Placed
from uaccel.streams.results import Results


@dataclass(frozen=True)
class Part:
    """What one round of commands computes; ``blocks`` and ``steps`` count in the layer's own units."""

    image: int
    rows: range
    columns: range
    blocks: range
    steps: range

    @property
    def pixels(self) -> int:
        return len(self.rows) * len(self.columns)


@dataclass(frozen=True)
class Places:
    """Where a part's data lie on chip. ``weights`` and ``sums`` are addresses in memories of those names."""

    inputs: tuple[Placed, ...]
    output: Placed
    weights: int
    sums: int


@dataclass(frozen=True)
class Compute:
    """A command of the compute engine; ``size``: its bytes in the stream; ``results``: when it writes to a memory that
    loads write, too."""

    kind: str
    fields: Mapping[str, int]
    cycles: int
    size: int
    results: Results | None = None


@dataclass(frozen=True)
class Layer(ABC):
    """``inputs`` and ``output`` name tensors, seen in these shapes. ``blocks`` of output channels, each with weights of
    its own, are computed from ``steps``, as many at a time as the planner likes.

    Names may stand for the same bytes in another shape; ``shapes`` count, since tensors are dense."""

    name: str
    inputs: tuple[str, ...]
    shapes: tuple[Shape, ...]
    output: str
    shape: Shape
    blocks: int
    steps: int

    @property
    def whole(self) -> Part:
        """The first image."""
        rows, columns = range(self.shape.rows), range(self.shape.columns)
        return Part(0, rows, columns, range(self.blocks), range(self.steps))

    @abstractmethod
    def channels(self, blocks: range) -> range:
        """The output channels of these blocks."""

    @abstractmethod
    def needs(self, index: int, part: Part) -> Box:
        """Of the input of that index."""

    @abstractmethod
    def weight_bytes(self, blocks: range, steps: range) -> int:
        """What the weight memory holds for such a part."""

    @abstractmethod
    def weights(self, blocks: range, steps: range) -> bytes:
        """These bytes, as the commands read them, but for what is made on chip."""

    def made_bytes(self, blocks: range, steps: range) -> int:
        """The first of them, if commands of the part make them: they are not loaded."""
        return 0

    def sum_bytes(self, part: Part) -> int:
        """What sums take that wait for further steps."""
        assert self.steps == 1, f"{self.name} has several steps"
        return 0

    @abstractmethod
    def cycles(self, part: Part) -> int:
        """Of the compute engine."""

    @abstractmethod
    def commands(self, part: Part, places: Places) -> Sequence[Compute]: ...

    def result(self, part: Part) -> Box:
        """The box of the output that a part is."""
        return Box(part.image, part.rows, part.columns, self.channels(part.blocks))
