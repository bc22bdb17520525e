"""Packs commands into words, and derives from what they touch which of them wait for which.

Engines run side by side and tell their neighbours by tokens what is done. :class:`Synchroniser` finds who waits for
whom, and :func:`with_tokens` states it by tokens.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple

from uaccel.accelerator.machine import ENGINES, Tile
from uaccel.accelerator.streams.machine import Access, Command, Tokens

# Commands as little-endian words, from a table that they are packed, read and printed from.
#
# The first word holds the opcode in its lowest byte, the tokens in bits 8 to 11, and flags from bit 16 on.

WORD: Final = 4
TOKENS: Final = ("wait_previous", "wait_next", "push_previous", "push_next")
_FIRST_TOKEN: Final = 8
_FIRST_FLAG: Final = 16


class Field(NamedTuple):
    """Describes a field: ``bits`` from ``shift`` on of word ``word``; in two's complement where ``signed``."""

    name: str
    word: int
    shift: int = 0
    bits: int = 32
    signed: bool = False

    @property
    def range(self) -> range:
        half = 1 << (self.bits - 1)
        return range(-half, half) if self.signed else range(2 * half)


@dataclass(frozen=True)
class Format:
    """Describes the words of one kind of command.

    ``flags``: names of the bits from 16 on of the first word; an empty name for a bit that means nothing.
    """

    opcode: int
    engine: str
    words: int
    fields: tuple[Field, ...]
    flags: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return self.words * WORD


def halves(word: int, low: str, high: str = "", signed: bool = False) -> tuple[Field, ...]:
    """Makes two fields of 16 bits, the lower one first; none without a name."""
    names = ((low, 0), (high, 16))
    return tuple(Field(name, word, shift, 16, signed) for name, shift in names if name)


def octets(word: int, *names: str, signed: bool = False) -> tuple[Field, ...]:
    """Makes fields of 8 bits, the lowest first; none without a name."""
    return tuple(Field(name, word, 8 * at, 8, signed) for at, name in enumerate(names) if name)


Formats = Mapping[str, Format]  # The format of each kind of command.


def pack(layout: Format, values: Mapping[str, int], tokens: Tokens) -> bytes:
    """Packs a command. ``values`` are those of its fields and flags; what is missing is 0."""
    words = [0] * layout.words
    words[0] = layout.opcode
    for bit, name in enumerate(TOKENS, _FIRST_TOKEN):
        words[0] |= getattr(tokens, name) << bit
    for bit, name in enumerate(layout.flags, _FIRST_FLAG):
        words[0] |= values.get(name, 0) << bit
    for part in layout.fields:
        value = values.get(part.name, 0)
        if value not in part.range:
            raise ValueError(f"{part.name} is {value}, and its {part.bits} bits hold {part.range}")
        words[part.word] |= (value & ((1 << part.bits) - 1)) << part.shift
    return struct.pack(f"<{len(words)}I", *words)


def unpack(formats: Formats, data: bytes) -> Iterator[tuple[str, dict[str, int], Tokens]]:
    """Reads kind, values and tokens of one command after the other."""
    kinds = {layout.opcode: kind for kind, layout in formats.items()}
    words = struct.unpack(f"<{len(data) // WORD}I", data)
    at = 0
    while at < len(words):
        kind = kinds[words[at] & 0xFF]
        layout = formats[kind]
        own = words[at : at + layout.words]
        tokens = Tokens(*(bool(own[0] >> bit & 1) for bit, _ in enumerate(TOKENS, _FIRST_TOKEN)))
        values = {name: own[0] >> bit & 1 for bit, name in enumerate(layout.flags, _FIRST_FLAG) if name}
        yield kind, values | {field.name: _value(field, own[field.word]) for field in layout.fields}, tokens
        at += layout.words


def _value(field: Field, word: int) -> int:
    value = word >> field.shift & ((1 << field.bits) - 1)
    return value - (1 << field.bits) if value not in field.range else value


# Who waits for whom: derived from what commands touch, expressed in tokens between neighbouring engines.
#
# Commands come in an order in which they could run one by one. Each engine runs its own in this order. Across engines a
# command waits for every earlier one that touches the same bytes, if one of the two writes. Since an engine works in
# order, it is enough to wait for its last such command, and nothing if an earlier command of the own queue has waited
# for that one or a later one. So along a pair of engines both the awaited commands and the waiting ones rise strictly:
#
# - each command pushes at most one token to a neighbour and takes at most one from it, so a bit for each is enough;
# - the nth push belongs to the nth pop, so tokens need no names, only a counter for each direction;
# - waits point backwards in the given order, so no cycle of them can block the machine.
#
# Load and store are no neighbours. Where one waits for the other, it waits for a computation instead that has itself
# waited for the far command; if there is none, a command that does nothing (a relay) is put in for it.

NEIGHBOURS: Final = frozenset({("load", "compute"), ("compute", "load"), ("compute", "store"), ("store", "compute")})


LOAD, COMPUTE, STORE = range(len(ENGINES))
NUMBERS: Final = {engine: number for number, engine in enumerate(ENGINES)}
NOBODY: Final = -1  # Stands for the number of a command where there is none.


@dataclass(frozen=True)
class Synchronised:
    """Holds commands with their tokens; ``waits[i]``: the commands whose tokens command i takes."""

    commands: tuple[Command, ...]
    tokens: tuple[Tokens, ...]
    waits: tuple[tuple[int, ...], ...]


@dataclass
class _Pair:
    """Lists for two engines which commands of the one are awaited, and by which of the other. Both lists rise."""

    awaited: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)

    def knows(self, command: int) -> bool:
        """Whether the waiting engine has waited for this command or a later one already."""
        return bool(self.awaited) and self.awaited[-1] >= command

    def add(self, awaited: int, waiting: int) -> None:
        self.awaited.append(awaited)
        self.waiting.append(waiting)

    def first_to_know(self, command: int) -> int | None:
        """The first command that waited for this one or a later one of its engine; None if none did."""
        at = bisect_left(self.awaited, command)
        return self.waiting[at] if at < len(self.waiting) else None


Waiting = tuple[Command, tuple[int, ...]]  # A command, and the numbers of those that it waits for.


class Synchroniser:
    """Finds for commands that come one by one which earlier ones each waits for. ``relay`` makes a command of the
    compute engine that does nothing. Such relays may come among the others, and all numbers count them."""

    def __init__(self, relay: Callable[[Command], Command]) -> None:
        self.relay = relay
        self.pairs = {pair: _Pair() for pair in NEIGHBOURS}
        self.memory = _Memory()
        self.count = 0

    def copy(self) -> Synchroniser:
        """The same, to go on in another way."""
        other = Synchroniser(self.relay)
        other.pairs = {pair: _Pair(list(one.awaited), list(one.waiting)) for pair, one in self.pairs.items()}
        other.memory, other.count = self.memory.copy(), self.count
        return other

    def take(self, command: Command) -> list[Waiting]:
        """The command with the numbers of those that it waits for, perhaps behind a relay."""
        engine = NUMBERS[command.engine]
        awaited = self.memory.conflicts(command)
        awaited[engine] = NOBODY
        if engine == COMPUTE:
            self.memory.add(command, self.count)
            return [self._next(command, awaited)]
        relays = self._through_compute(command, awaited)
        self.memory.add(command, self.count)
        return [*relays, self._next(command, awaited)]

    def _next(self, command: Command, awaited: Sequence[int]) -> Waiting:
        waits = []
        for engine, number in enumerate(awaited):
            if number != NOBODY:
                pair = self.pairs[ENGINES[engine], command.engine]
                if not pair.knows(number):
                    pair.add(number, self.count)
                    waits.append(number)
        self.count += 1
        return command, tuple(sorted(waits) if len(waits) > 1 else waits)

    def _through_compute(self, command: Command, awaited: list[int]) -> list[Waiting]:
        """Replaces a wait for an engine that is no neighbour by one for a computation that has waited for it. The first
        such computation is taken, since it is done earliest. Where there is none, the result is a relay."""
        far = STORE if command.engine == "load" else LOAD
        number, awaited[far] = awaited[far], NOBODY
        if number == NOBODY:
            return []
        known = self.pairs[ENGINES[far], "compute"].first_to_know(number)
        relays = []
        if known is None:
            known = self.count
            alone = [number if engine == far else NOBODY for engine in range(len(ENGINES))]
            relays = [self._next(self.relay(command), alone)]
        awaited[COMPUTE] = max(known, awaited[COMPUTE])
        return relays


def with_tokens(commands: Sequence[Waiting]) -> Synchronised:
    """States by tokens who waits for whom."""
    flags: list[dict[str, bool]] = [{} for _ in commands]
    for flag, (command, numbers) in zip(flags, commands, strict=True):
        for number in numbers:
            forward = ENGINES.index(commands[number][0].engine) < ENGINES.index(command.engine)
            flags[number]["push_next" if forward else "push_previous"] = True
            flag["wait_previous" if forward else "wait_next"] = True
    ordered, waits = zip(*commands, strict=True) if commands else ((), ())
    return Synchronised(ordered, tuple(Tokens(**flag) for flag in flags), waits)


# Who touched some bytes last: engine and number of the command that wrote them, and the number of each engine's last
# reader since then.
_Touched = tuple[int, int, int, int, int]
_UNTOUCHED: Final[_Touched] = (NOBODY,) * 5


class _Memory:
    """Remembers who touched which bytes, as long as somebody may have to wait for it.

    A memory is divided where touches begin or end. A write makes everything before it needless: whoever had to wait for
    that waits for the write, which has itself waited. Among reads of one engine the last one is enough.
    """

    def __init__(self) -> None:
        self.memories: dict[str, tuple[list[int], list[_Touched]]] = {}

    def copy(self) -> _Memory:
        """The same, to go on in another way."""
        other = _Memory()
        other.memories = {name: (list(begins), list(touched)) for name, (begins, touched) in self.memories.items()}
        return other

    def conflicts(self, command: Command) -> list[int]:
        """The last command of each engine that this one must come after."""
        last = [NOBODY] * len(ENGINES)
        for memory, begin, end, writes in command.accesses:
            if memory not in self.memories:
                continue
            begins, touched = self.memories[memory]
            for at in range(bisect_right(begins, begin) - 1, bisect_left(begins, end)):
                writer, number, load, compute, store = touched[at]
                if number > last[writer]:
                    last[writer] = number
                if writes:
                    if load > last[LOAD]:
                        last[LOAD] = load
                    if compute > last[COMPUTE]:
                        last[COMPUTE] = compute
                    if store > last[STORE]:
                        last[STORE] = store
        return last

    def add(self, command: Command, number: int) -> None:
        engine = NUMBERS[command.engine]
        own = (engine, number, NOBODY, NOBODY, NOBODY)
        for memory, begin, end, writes in command.accesses:
            if begin == end:
                continue
            if memory not in self.memories:
                self.memories[memory] = ([0], [_UNTOUCHED])
            begins, touched = self.memories[memory]
            first, behind = _divide(begins, touched, begin), _divide(begins, touched, end)
            if writes:
                begins[first:behind], touched[first:behind] = [begin], [own]
                continue
            for at in range(first, behind):
                writer, wrote, load, compute, store = touched[at]
                if engine == LOAD:
                    touched[at] = (writer, wrote, number, compute, store)
                elif engine == COMPUTE:
                    touched[at] = (writer, wrote, load, number, store)
                else:
                    touched[at] = (writer, wrote, load, compute, number)


def _divide(begins: list[int], touched: list[_Touched], bound: int) -> int:
    """Makes a division begin at ``bound``; the result is its position."""
    at = bisect_left(begins, bound)
    if at == len(begins) or begins[at] != bound:
        begins.insert(at, bound)
        touched.insert(at, touched[at - 1])
    return at


# What lies on chip while commands run, for readers of reports.

OUTSIDE: Final = "place "  # Begins the names of memories that are not on chip.
MOST: Final = 5000  # Commands of a stream whose tiles are told; a picture of more shows nothing.
Life = tuple[int, int]  # The commands that write a value first and read it last.


def tiles_of(commands: Sequence[Command]) -> tuple[Tile, ...]:
    """The tiles in the order of their memories and addresses. Bytes are in use from the command that writes them to the
    last one that reads what was written; several writes before a read are parts of one value. A stream of more than
    ``MOST`` commands has none."""
    if len(commands) > MOST:
        return ()
    touched: dict[str, list[tuple[int, Access]]] = {}
    for number, command in enumerate(commands):
        for access in command.accesses:
            if not access.memory.startswith(OUTSIDE):
                touched.setdefault(access.memory, []).append((number, access))
    return tuple(tile for memory, accesses in touched.items() for tile in _in_memory(memory, accesses))


def _in_memory(memory: str, accesses: Sequence[tuple[int, Access]]) -> Iterator[Tile]:
    """Cuts the memory where any access begins or ends; neighbouring pieces with equal lives are one tile."""
    edges = sorted({edge for _, access in accesses for edge in (access.begin, access.end)})
    places = {edge: place for place, edge in enumerate(edges)}
    pieces: list[list[tuple[int, bool]]] = [[] for _ in edges[1:]]
    for number, access in accesses:
        for piece in pieces[places[access.begin] : places[access.end]]:
            piece.append((number, access.writes))
    open_tiles: dict[Life, int] = {}
    for begin, piece in zip(edges, [*pieces, []], strict=True):
        lives = dict.fromkeys(_lives(piece))
        for life in [life for life in open_tiles if life not in lives]:
            yield Tile(memory, open_tiles.pop(life), begin, *life)
        for life in lives:
            open_tiles.setdefault(life, begin)


def _lives(uses: Sequence[tuple[int, bool]]) -> Iterator[Life]:
    """The lives of the values that some bytes hold one after the other; what nobody reads has none."""
    first: int | None = None
    for writes, group in groupby(uses, key=lambda use: use[1]):
        numbers = [number for number, _ in group]
        if writes:
            first = numbers[0]
        elif first is not None:
            yield first, numbers[-1]
            first = None
