"""What vendors state of a machine that reads command streams, and of a layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uaccel.accelerator import machine
from uaccel.accelerator.machine import Box, Dma, Memory, Shape
from uaccel.util.text import pieces

# Boxes on chip, and how they move between memory and a scratchpad.


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


# When a computation writes its results: what a load brings for the same memory has to wait in these cycles.


class Results(NamedTuple):
    """``groups`` of ``members`` in a ``memory``: so many cycles from group to group (``period``), and from one to the
    next in it (``step``). The last one is written ``behind`` cycles before the command ends."""

    memory: int
    groups: int
    period: int = 1
    members: int = 1
    step: int = 1
    behind: int = 0

    def free(self, now: int, end: int) -> int:
        """The next cycle from now on in which nothing is written by the command that ends then."""
        last = end - self.behind
        if self.period == 1:
            return last + 1 if last - self.groups < now <= last else now
        first = last - (self.groups - 1) * self.period - (self.members - 1) * self.step
        while first <= now <= last and self._writes(now - first):
            now += 1
        return now

    def _writes(self, since: int) -> bool:
        in_group = since % self.period
        return in_group % self.step == 0 and in_group < self.members * self.step


# Constants as a lossless code, which loads unpack: for weights that come from a slow memory.
#
# Blocks of 32 bytes, each behind 3 bits that say how its bytes are written. 7: as they are. Else with that many low
# bits:
# 0, -1, 1, -2, 2 and so on are numbered from 0 on, and a byte's number is its high part as ones, a zero, and the low
# bits
# (Rice's code). The lowest bit of a byte comes first.

BLOCK: Final = 32
KIND_BITS: Final = 3
PLAIN: Final = 7
ONES: Final = 16  # Of a number, that are looked at in a cycle.


@dataclass(frozen=True)
class Code:
    """Of so many bytes (``size``). ``ends``: how many of what it gives are whole with each word of the bus; ``most``:
    how many can be whole with one. ``long``: of bytes by number, how often so many ones (``ONES``) begin them that
    these go alone."""

    size: int
    ends: tuple[int, ...]
    most: int
    long: Mapping[int, int]

    def whole(self, words: int) -> int:
        """How many bytes are whole with so many words."""
        return self.ends[words - 1] if words else 0

    def before(self, word: int) -> int:
        """How many have to be gone before a word is taken: two are held, and what began in the first goes whole."""
        return self.ends[word - 2] + 1 if word > 1 else 0


def packed(data: bytes) -> bytes:
    """The shortest code of these bytes."""
    numbers = _numbers(data)
    bits = []
    for block, kind in zip(numbers.tolist(), np.argmin(_lengths(numbers), axis=0).tolist(), strict=True):
        codes = _codes(kind)
        bits.append(_low_bits(kind, KIND_BITS))
        bits += [codes[number] for number in block if number >= 0]
    text = "".join(bits).encode()
    return np.packbits(np.frombuffer(text, np.uint8) - ord("0"), bitorder="little").tobytes()


def code_of(data: bytes, word: int) -> Code:
    numbers = _numbers(data)
    lengths = _lengths(numbers)
    kinds = np.argmin(lengths, axis=0)
    plain, ones = kinds[:, None] == PLAIN, numbers >> kinds[:, None]
    bits = np.where(plain, 8, ones + 1 + kinds[:, None])
    bits[:, 0] += KIND_BITS
    alone = np.where(plain, 0, ones // ONES).reshape(-1)[: len(data)]
    behind = bits.reshape(-1)[: len(data)].cumsum()
    words = range(1, pieces(int(behind[-1]), word) + 1)
    ends = np.searchsorted(behind, [word * number for number in words], side="right")
    size, most = pieces(int(behind[-1]), 8), int(np.diff(ends, prepend=0).max())
    return Code(size, tuple(ends.tolist()), most, {int(at): int(alone[at]) for at in np.flatnonzero(alone)})


def _numbers(data: bytes) -> NDArray[Any]:
    """By block; -1 behind the last byte."""
    values = np.frombuffer(data, np.int8).astype(np.int32)
    numbers = np.where(values < 0, -2 * values - 1, 2 * values)
    return np.pad(numbers, (0, -len(numbers) % BLOCK), constant_values=-1).reshape(-1, BLOCK)


def _lengths(numbers: NDArray[Any]) -> NDArray[Any]:
    """Bits of each block, by the way in which it is written."""
    there = numbers >= 0
    ways = [np.where(there, (numbers >> low) + 1 + low, 0).sum(axis=1) for low in range(PLAIN)]
    return np.array([*ways, 8 * there.sum(axis=1)])


def _low_bits(value: int, count: int) -> str:
    return "".join(str(value >> bit & 1) for bit in range(count))


@cache
def _codes(kind: int) -> tuple[str, ...]:
    """By a byte's number."""
    if kind == PLAIN:
        return tuple(_low_bits((number >> 1) ^ -(number & 1), 8) for number in range(256))
    return tuple("1" * (number >> kind) + "0" + _low_bits(number, kind) for number in range(256))


# Commands as the planner sees them: which engine, what they touch, how long they take.


class Access(NamedTuple):
    """Bytes ``begin`` to ``end`` of a memory, on chip (by its name) or outside (``place 3``)."""

    memory: str
    begin: int
    end: int
    writes: bool


@dataclass(frozen=True)
class Command:
    """``kind`` and ``fields`` are the vendor's, but for transfers (``load`` and ``store``); ``size`` is its length.

    ``moved``: bytes that it carries between memory and chip. ``code``: how what it loads is packed, if it is;
    ``results``: when it writes what it computes. ``layer`` and ``label`` are for readers.
    """

    kind: str
    engine: str
    fields: Mapping[str, int]
    accesses: tuple[Access, ...]
    cycles: int
    size: int
    layer: str
    label: str
    moved: int = 0
    code: Code | None = None
    results: Results | None = None


@dataclass(frozen=True)
class Tokens:
    """What a command waits for and tells when it is done, by the engine before its own and the one after."""

    wait_previous: bool = False
    wait_next: bool = False
    push_previous: bool = False
    push_next: bool = False


def place_name(number: int) -> str:
    """The memory outside that a stream knows by this number."""
    return f"place {number}"


# What a vendor says of one layer: what its parts need, how long they take, and the commands that compute them.
#
# The planner cuts the output into parts: an image, rows, columns, blocks of channels, and steps of the sums where they
# can be added up by several commands. It moves inputs, weights and results; the vendor's commands find them on chip.


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


# What loads bring as a code, and how long unpacking keeps the words of the bus waiting.


@dataclass(frozen=True, eq=False)
class Unpacker:
    """Gives up to ``bytes_per_cycle``, a word's first ones ``behind`` cycles later. ``known``: the codes by layer and
    part of it. ``word``: bytes of the bus."""

    bytes_per_cycle: int
    behind: int = 0
    word: int = 8
    known: dict[tuple[int, range, range], tuple[Layer, Code]] = field(default_factory=dict)

    def code(self, layer: Layer, part: Part) -> Code:
        """Of a part's weights."""
        key = (id(layer), part.blocks, part.steps)
        if key not in self.known:
            self.known[key] = (layer, code_of(layer.weights(part.blocks, part.steps), 8 * self.word))
        return self.known[key][1]

    def cycles(self, size: int) -> int:
        """That so many bytes take at least, behind the first word."""
        return pieces(size, self.bytes_per_cycle)


class Unpacking:
    """A load that unpacks: when it takes a word that it is offered, and when it has given all bytes."""

    def __init__(self, unpacker: Unpacker, code: Code, further: int) -> None:
        self._code, self._rate, self._behind = code, unpacker.bytes_per_cycle, unpacker.behind
        self.is_slow = code.most > self._rate * (1 + further)
        """Whether a word can have more bytes than go while the next one comes."""
        self._words = self._given = self._now = self._alone = 0

    def take(self, offered: int) -> int:
        """Once no more bits wait than the unpacker holds."""
        self._give(self._code.before(self._words), inf)
        taken = max(offered, self._now)
        self._give(self._code.whole(self._words), taken + 1)
        self._now = max(self._now, taken + 1)
        self._words += 1
        return taken

    def end(self, last: int) -> int:
        """With the last word."""
        words = len(self._code.ends)
        if not self.is_slow:
            self._words, self._given, self._now = words, self._code.whole(words - 1), last + 1
        self._give(self._code.ends[-1], inf)
        return self._now + self._behind - 1

    def _give(self, count: int, until: float) -> None:
        """Up to so many bytes of the words that are there. None go together with those of the next block."""
        there, long = self._code.whole(self._words), self._code.long
        while self._given < min(count, there) and self._now < until:
            self._now += 1
            if self._alone < long.get(self._given, 0):
                self._alone += 1
                continue
            self._alone = 0
            together = min(self._rate, there - self._given, BLOCK - self._given % BLOCK)
            self._given += next((n for n in range(1, together) if self._given + n in long), together)


# The bus that fetching, loading and storing share, and the memories behind it: how long words take to come.

RAM, CONSTANTS = range(2)
FIRST_COMMAND = 1 << 60  # The word in which the stream begins: no place's.
PLACE = 1 << 40  # Words from place to place.


@dataclass(frozen=True)
class Outside:
    """A memory outside: cycles that the bus waits for the ``first`` word of a burst, and for each ``further`` one. A
    burst that goes on where the memory's last one ended has no first word. A memory that has a word in each cycle takes
    addresses ahead: of a transfer's bursts the first one waits, from when it was asked for."""

    first: int
    further: int

    def __post_init__(self) -> None:
        if not 0 <= self.further <= self.first:
            raise ValueError(
                f"a memory waits {self.first} cycles for a first word and {self.further} for a further one; wanted "
                "neither below 0, and the first wait no shorter"
            )

    @property
    def ahead(self) -> bool:
        return self.further == 0

    def cycles(self, words: int, *, goes_on: bool) -> int:
        """Of a burst."""
        return words * (1 + self.further) + (0 if goes_on else self.first - self.further)


@dataclass(frozen=True)
class Waiting(Dma):
    """What waits for each word: ``further`` cycles."""

    further: int

    def cycles(self, row: int, rows: int = 1) -> int:
        return self.start_up + rows * pieces(row, self.bytes_per_cycle) * (1 + self.further)


@dataclass(frozen=True)
class Bus:
    """``word``: bytes. Loads and stores ask for up to ``burst`` words at once, and loads for the next ones while fewer
    than ``under_way`` are missing. Fetching comes before loads; stores have words of their own.

    Fetching asks for ``fetched`` words at once. They wait in a memory with ``room`` for so many words, for ``held``
    cycles at least. What a load brings is written on chip ``gathered`` words at once. Commands and constants
    (place 0) lie in ``constants``, everything else in ``ram``."""

    word: int
    burst: int
    ram: Outside
    constants: Outside
    under_way: int = 8
    fetched: int = 8
    room: int = 16
    held: int = 2
    gathered: int = 1

    def constants_by(self, load: Dma) -> Dma:
        """As fast as constants come, if nobody else has the bus."""
        waits = self.constants
        return Waiting(self.word, load.start_up + waits.first - waits.further, waits.further)

    def runs(self, fields: Mapping[str, int]) -> Iterator[tuple[int, int]]:
        """Of a transfer: the words that each run touches, by the first one and their number."""
        base = fields["place"] * PLACE * self.word + fields["offset"]
        for plane in range(fields["planes"]):
            for run in range(fields["runs"]):
                yield self.words(base + plane * fields["stride_plane"] + run * fields["stride_run"], fields["run"])

    def words(self, begin: int, size: int) -> tuple[int, int]:
        first = begin // self.word
        return first, pieces(begin + size, self.word) - first


# A machine with three engines, each with a queue of commands: what the planner must know of it.


@dataclass(frozen=True)
class Machine(machine.Machine):
    """``banks`` of a memory: 2 lets the planner fill one part while the array works on another; 1 does not.

    ``weights`` holds weights and output parameters, ``sums`` what is added up by several commands. ``fetch`` brings
    the commands; a queue holds ``queue`` of them that have not begun. In bytes of a stream a transfer takes
    ``transfer_size``, and ``sync_size`` a command of the compute engine that does nothing for ``sync_cycles``.

    With a ``bus``, ``load``, ``store`` and ``fetch`` use it, and are as fast as it is; a command is in hand no sooner
    than so many cycles behind the one before as ``checking`` says, and a store ends ``answering`` cycles behind its
    last word. While results are written, loads into the same memory wait. With an ``unpacker`` loads may bring
    weights as a code.
    """

    activations: Memory
    weights: Memory
    sums: Memory
    load: Dma
    store: Dma
    fetch: Dma
    queue: int
    transfer_size: int
    sync_size: int
    sync_cycles: int = 1
    bus: Bus | None = None
    unpacker: Unpacker | None = None
    checking: Callable[[Command], int] = lambda _command: 0
    answering: int = 0

    @property
    def constants(self) -> Dma:
        """What brings weights."""
        return self.load if self.bus is None else self.bus.constants_by(self.load)

    def brought(self, cycles: int) -> int:
        """Bytes of weights that come in so many cycles, at most."""
        return cycles * self.load.bytes_per_cycle // (1 if self.bus is None else 1 + self.bus.constants.further)

    def unpacked_cycles(self, size: int, coded: int) -> int:
        """Of a load of so many bytes that come as a code."""
        if self.unpacker is None:
            return self.constants.cycles(coded)
        first = 0 if self.bus is None else self.bus.constants.first
        least = self.load.start_up + first + self.unpacker.cycles(size)
        return max(self.constants.cycles(coded), least) + self.unpacker.behind
