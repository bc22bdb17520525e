"""Describes a machine that reads command streams: its memories, DMA, bus and decompressor, and the layers it computes.

A vendor states a :class:`Machine` and a :class:`Layer` for each layer of the network. The planner cuts a layer into
parts and turns them into :class:`Command` objects. :class:`Code` is the lossless compression of weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uaccel.accelerator import machine
from uaccel.accelerator.machine import Box, Dma, Memory, Shape
from uaccel.util.text import pieces

# Boxes on chip, and how they move between memory and a scratchpad.


@dataclass(frozen=True)
class Placed:
    """Places a box in on-chip memory: the address of its first byte, and the distances of its rows and pixels."""

    address: int
    row_pitch: int
    pixel_pitch: int
    box: Box

    @property
    def end(self) -> int:
        """The address behind its last byte."""
        rows, columns = len(self.box.rows) - 1, len(self.box.columns) - 1
        return self.address + rows * self.row_pitch + columns * self.pixel_pitch + len(self.box.channels)


def dense(address: int, box: Box) -> Placed:
    """Places a box without gaps between its rows and pixels."""
    pixel = len(box.channels)
    return Placed(address, len(box.columns) * pixel, pixel, box)


def inside(address: int, shape: Shape, box: Box) -> Placed:
    """Places a box within its tensor, which lies as a whole from ``address`` on."""
    return Placed(address + shape.offset(box), shape.row_pitch, shape.channels, box)


class Move(NamedTuple):
    """Describes a DMA transfer: ``planes`` times ``runs`` runs of ``run`` bytes; strides in memory, pitches on chip."""

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
    """Describes the transfer of a box between memory and its place on chip.

    A run begins as the channels of one pixel. It grows over the columns, and then over the rows, while its pieces are
    adjacent both in memory and on chip (or there is one only). At most two levels are left: runs and planes.
    """
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


# When a computation writes its results: a load into the same memory cannot write in these cycles.


class Results(NamedTuple):
    """States in which cycles a command writes to ``memory``: ``groups`` of ``members`` writes each.

    Groups begin every ``period`` cycles, and the writes in a group are ``step`` cycles apart. The last write is
    ``behind`` cycles before the command ends.
    """

    memory: int
    groups: int
    period: int = 1
    members: int = 1
    step: int = 1
    behind: int = 0

    def free(self, now: int, end: int) -> int:
        """The first cycle, not before ``now``, in which the command that ends at ``end`` writes nothing."""
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


# Weights as a lossless code that loads decompress on the fly: for weights that come from a slow memory.
#
# The code is Rice's, with a parameter k for each block of 32 bytes. A block begins with 3 bits that hold k. Bytes are
# numbered by magnitude: 0, -1, 1, -2, 2 ... become 0, 1, 2, 3, 4 ..., so small weights have small numbers. A byte is
# written as number >> k ones, a zero, and the k low bits of the number. The 3 bits allow k from 0 to 6; the eighth
# value, 7, marks a block whose bytes stand as they are, so a block never exceeds 3 bits plus its bytes. The lowest bit
# of each byte of the stream comes first. Blocks do not depend on each other: the shortest kind for each gives the
# shortest whole.

BLOCK: Final = 32
KIND_BITS: Final = 3
PLAIN: Final = 7
ONES: Final = 16  # How many ones of a number the decompressor counts in a cycle; longer prefixes take further cycles.


@dataclass(frozen=True)
class Code:
    """Describes compressed bytes, ``size`` of them, as far as the time of their decompression depends on them.

    ``ends[i]``: how many decompressed bytes are complete once word i of the bus is there. ``most``: the most bytes
    that one word completes. ``long``: for bytes, by position, that begin with many ones: the cycles that go to
    counting them (``ONES`` each) before the cycle that gives the byte.
    """

    size: int
    ends: tuple[int, ...]
    most: int
    long: Mapping[int, int]

    def whole(self, words: int) -> int:
        """How many bytes are complete once so many words are there."""
        return self.ends[words - 1] if words else 0

    def before(self, word: int) -> int:
        """How many bytes must have been given before ``word`` is taken. Two words are held, so the one two before it
        must be used up, with the byte that ends in the next word."""
        return self.ends[word - 2] + 1 if word > 1 else 0


def packed(data: bytes) -> bytes:
    """Compresses bytes, each block in its shortest kind."""
    numbers = _numbers(data)
    bits = []
    for block, kind in zip(numbers.tolist(), np.argmin(_lengths(numbers), axis=0).tolist(), strict=True):
        codes = _codes(kind)
        bits.append(_low_bits(kind, KIND_BITS))
        bits += [codes[number] for number in block if number >= 0]
    text = "".join(bits).encode()
    return np.packbits(np.frombuffer(text, np.uint8) - ord("0"), bitorder="little").tobytes()


def code_of(data: bytes, word: int) -> Code:
    """Describes the code that ``packed`` makes of ``data``, for a bus with words of ``word`` bits."""
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
    """The bytes' numbers, one row a block; -1 behind the last byte."""
    values = np.frombuffer(data, np.int8).astype(np.int32)
    numbers = np.where(values < 0, -2 * values - 1, 2 * values)
    return np.pad(numbers, (0, -len(numbers) % BLOCK), constant_values=-1).reshape(-1, BLOCK)


def _lengths(numbers: NDArray[Any]) -> NDArray[Any]:
    """The bits of each block in each kind: a row for every k, and the last one for plain bytes."""
    there = numbers >= 0
    ways = [np.where(there, (numbers >> low) + 1 + low, 0).sum(axis=1) for low in range(PLAIN)]
    return np.array([*ways, 8 * there.sum(axis=1)])


def _low_bits(value: int, count: int) -> str:
    return "".join(str(value >> bit & 1) for bit in range(count))


@cache
def _codes(kind: int) -> tuple[str, ...]:
    """The bits of a byte, by its number, in a block of this kind."""
    if kind == PLAIN:
        return tuple(_low_bits((number >> 1) ^ -(number & 1), 8) for number in range(256))
    return tuple("1" * (number >> kind) + "0" + _low_bits(number, kind) for number in range(256))


# Commands as the planner sees them: which engine runs them, which bytes they touch, how long they take.


class Access(NamedTuple):
    """Names the bytes ``begin`` to ``end`` of a memory that a command touches, on chip or outside (``place 3``)."""

    memory: str
    begin: int
    end: int
    writes: bool


@dataclass(frozen=True)
class Command:
    """Holds one command of a stream. ``kind`` and ``fields`` are the vendor's, except for ``load`` and ``store``.

    ``size``: its bytes in the stream. ``moved``: bytes that it carries between memory and chip. ``code``: how its
    data are compressed, None where they are not. ``results``: when it writes what it computes. ``layer`` and
    ``label`` are for readers.
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
    """States the handshake of a command: which neighbouring engines it takes a token from and gives one to.

    ``previous`` is the engine before its own in ``ENGINES``, ``next`` the one after. A command waits for its tokens
    before it begins, and pushes when it is done.
    """

    wait_previous: bool = False
    wait_next: bool = False
    push_previous: bool = False
    push_next: bool = False


def place_name(number: int) -> str:
    """The memory outside that a stream knows by this number."""
    return f"place {number}"


# What a vendor states of one layer: what its parts need, how long they take, and the commands that compute them.
#
# The planner cuts the output into parts: an image, rows, columns, blocks of output channels, and steps of the sums
# where several commands can add up one sum. It moves inputs, weights and results; the vendor's commands find them on
# chip.


@dataclass(frozen=True)
class Part:
    """Names what one round of commands computes; ``blocks`` and ``steps`` count in the layer's own units."""

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
    """Holds where a part's data lie on chip. ``weights`` and ``sums`` are addresses in the memories of those names."""

    inputs: tuple[Placed, ...]
    output: Placed
    weights: int
    sums: int


@dataclass(frozen=True)
class Compute:
    """Describes a command of the compute engine, as a vendor gives it.

    ``size``: its bytes in the stream; ``results``: when it writes to a memory that loads write, too.
    """

    kind: str
    fields: Mapping[str, int]
    cycles: int
    size: int
    results: Results | None = None


@dataclass(frozen=True)
class Layer(ABC):
    """Describes a layer. ``inputs`` and ``output`` name tensors, with the shapes in which this layer sees them.

    The output's channels come in ``blocks``, each with its own weights, and a block's sums in ``steps``. The planner
    chooses how many of both a part has. Two layers may see the same tensor in different shapes, since tensors are
    dense.
    """

    name: str
    inputs: tuple[str, ...]
    shapes: tuple[Shape, ...]
    output: str
    shape: Shape
    blocks: int
    steps: int

    # Names what the needs and times of all its parts depend on, beside its type. Bytes count by their length. Without
    # names nothing that is found of one layer holds for others.
    alike_by: ClassVar[tuple[str, ...]] = ()

    @property
    def alike(self) -> Hashable | None:
        """Equal for layers whose parts need and take the same, whatever their names and the bytes of their weights."""
        values = (getattr(self, name) for name in self.alike_by)
        known = tuple(len(value) if isinstance(value, bytes) else value for value in values)
        return (type(self), *known) if known else None

    @cached_property
    def known(self) -> dict[Hashable, Any]:
        """What the planner has found of it."""
        return {}

    @property
    def whole(self) -> Part:
        """The whole first image as one part."""
        rows, columns = range(self.shape.rows), range(self.shape.columns)
        return Part(0, rows, columns, range(self.blocks), range(self.steps))

    @abstractmethod
    def channels(self, blocks: range) -> range:
        """The output channels of these blocks."""

    @abstractmethod
    def needs(self, index: int, part: Part) -> Box:
        """The box of the input ``index`` that a part reads."""

    @abstractmethod
    def weight_bytes(self, blocks: range, steps: range) -> int:
        """How many bytes of the weight memory such a part needs."""

    @abstractmethod
    def weights(self, blocks: range, steps: range) -> bytes:
        """The weights as the commands read them, without the first ``made_bytes``, which are made on chip."""

    def made_bytes(self, blocks: range, steps: range) -> int:
        """How many of the weight bytes, from the first on, the part's commands make themselves: they are not loaded."""
        return 0

    def sum_bytes(self, part: Part) -> int:
        """How many bytes the sums take that wait for further steps."""
        assert self.steps == 1, f"{self.name} has several steps"
        return 0

    @abstractmethod
    def cycles(self, part: Part) -> int:
        """How long the compute engine takes for a part."""

    @abstractmethod
    def commands(self, part: Part, places: Places) -> Sequence[Compute]: ...

    def result(self, part: Part) -> Box:
        """The box of the output that a part is."""
        return Box(part.image, part.rows, part.columns, self.channels(part.blocks))


# The decompressor in the load engine, and how long it keeps the words of the bus waiting.


@dataclass(frozen=True, eq=False)
class Unpacker:
    """Describes the decompressor: up to ``bytes_per_cycle``, the first ones ``behind`` cycles after their word.

    ``word``: bytes of a word of the bus. ``known`` keeps the codes by layer (held, so that its ``id`` stays its own).
    """

    bytes_per_cycle: int
    behind: int = 0
    word: int = 8
    known: dict[tuple[int, range, range], tuple[Layer, Code]] = field(default_factory=dict)

    def code(self, layer: Layer, part: Part) -> Code:
        """The code of a part's weights."""
        key = (id(layer), part.blocks, part.steps)
        if key not in self.known:
            self.known[key] = (layer, code_of(layer.weights(part.blocks, part.steps), 8 * self.word))
        return self.known[key][1]

    def cycles(self, size: int) -> int:
        """The least that so many bytes take, from the first word on."""
        return pieces(size, self.bytes_per_cycle)


# The bus that fetching, loading and storing share, and the memories behind it: how long words take to come.
#
# Words have numbers, which only say whether a burst goes on where another one ended. Places are so far apart that no
# transfer reaches from one to the next, and the stream of commands is behind 2**20 of them.

RAM, CONSTANTS = range(2)
FIRST_COMMAND = 1 << 60  # The word in which the stream begins.
PLACE = 1 << 40  # Words from one place to the next.


@dataclass(frozen=True)
class Outside:
    """Describes a memory outside: cycles that the bus waits for the ``first`` word of a burst and each ``further`` one.

    A burst that goes on where the memory's last one ended waits for all its words as for further ones. A memory with
    ``further`` 0 gives a word in each cycle and takes addresses ahead: it is ``first`` cycles behind the request, and
    only the first burst of a transfer waits for that.
    """

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
        """How long a burst takes; ``goes_on``: it follows the memory's last one."""
        return words * (1 + self.further) + (0 if goes_on else self.first - self.further)


@dataclass(frozen=True)
class Waiting(Dma):
    """Describes DMA that waits ``further`` cycles for each word."""

    further: int

    def cycles(self, row: int, rows: int = 1) -> int:
        return self.start_up + rows * pieces(row, self.bytes_per_cycle) * (1 + self.further)


@dataclass(frozen=True)
class Bus:
    """Describes the bus. A ``word`` has so many bytes. Fetching goes before loads; stores have a channel of their own.

    Loads and stores ask for bursts of up to ``burst`` words. A load asks for the next burst while fewer than
    ``under_way`` words are outstanding. Fetching asks for ``fetched`` words at once; they wait for ``held`` cycles at
    least in a buffer with ``room`` for so many words. A load writes ``gathered`` words at once on chip. Commands and
    constants (place 0) lie in ``constants``, everything else in ``ram``.
    """

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
        """The load engine as fast as constants come while nobody else uses the bus."""
        waits = self.constants
        return Waiting(self.word, load.start_up + waits.first - waits.further, waits.further)

    def runs(self, fields: Mapping[str, int]) -> Iterator[tuple[int, int]]:
        """The words that each run of a transfer touches: the number of the first one, and how many."""
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
    """Describes the machine. ``banks`` of a memory: with 2, one half is filled while the array works on the other.

    ``weights`` holds weights and output parameters, ``sums`` what several commands add up. ``fetch`` brings the
    commands; an engine's queue holds ``queue`` of them that have not begun. A transfer is ``transfer_size`` bytes
    long in the stream, and a command of the compute engine that does nothing for ``sync_cycles`` is ``sync_size``.

    With a ``bus``, ``load``, ``store`` and ``fetch`` share it and are as fast as it is. A command then enters its
    queue ``checking(command)`` cycles after it has been fetched, and a store ends ``answering`` cycles after its last
    word. While results are written, loads into the same memory wait. With an ``unpacker``, loads may bring weights in
    compressed form. ``known`` keeps what was found of layers that are alike.
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
    known: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def constants(self) -> Dma:
        """The DMA that brings weights."""
        return self.load if self.bus is None else self.bus.constants_by(self.load)

    def brought(self, cycles: int) -> int:
        """The most bytes of weights that come in so many cycles."""
        return cycles * self.load.bytes_per_cycle // (1 if self.bus is None else 1 + self.bus.constants.further)

    def unpacked_cycles(self, size: int, coded: int) -> int:
        """How long a load of ``size`` bytes takes that come as ``coded`` compressed ones."""
        if self.unpacker is None:
            return self.constants.cycles(coded)
        first = 0 if self.bus is None else self.bus.constants.first
        least = self.load.start_up + first + self.unpacker.cycles(size)
        return max(self.constants.cycles(coded), least) + self.unpacker.behind
