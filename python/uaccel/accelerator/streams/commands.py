"""Packs commands into words, and derives from what they touch which of them wait for which.

Engines run side by side and tell their neighbours by tokens what is done. :func:`synchronise` finds the tokens.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from uaccel.accelerator.machine import ENGINES
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

PAGE: Final = 1 << 12  # Bytes of a page of the index below; it decides how long a search takes, not what it finds.
NEIGHBOURS: Final = frozenset({("load", "compute"), ("compute", "load"), ("compute", "store"), ("store", "compute")})


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


def synchronise(commands: Sequence[Command], relay: Callable[[Command], Command]) -> Synchronised:
    """Finds the tokens of commands in order. ``relay`` makes a command of the compute engine that does nothing. The
    commands may come back with relays among them; all numbers count these."""
    pairs = {pair: _Pair() for pair in NEIGHBOURS}
    memory = _Memory()
    ordered: list[Command] = []
    for command in commands:
        awaited = memory.conflicts(command)
        awaited.pop(command.engine, None)
        if command.engine != "compute":
            _through_compute(command, awaited, pairs, ordered, relay)
        for engine, number in awaited.items():
            pair = pairs[engine, command.engine]
            if not pair.knows(number):
                pair.add(number, len(ordered))
        memory.add(command, len(ordered))
        ordered.append(command)
    return _with_tokens(ordered, pairs)


def _through_compute(
    command: Command,
    awaited: dict[str, int],
    pairs: dict[tuple[str, str], _Pair],
    ordered: list[Command],
    relay: Callable[[Command], Command],
) -> None:
    """Replaces a wait for an engine that is no neighbour by one for a computation that has waited for it. The first
    such computation is taken, since it is done earliest."""
    far = "store" if command.engine == "load" else "load"
    number = awaited.pop(far, None)
    if number is None:
        return
    known = pairs[far, "compute"].first_to_know(number)
    if known is None:
        known = len(ordered)
        pairs[far, "compute"].add(number, known)
        ordered.append(relay(command))
    awaited["compute"] = max(known, awaited.get("compute", -1))


def _with_tokens(commands: list[Command], pairs: dict[tuple[str, str], _Pair]) -> Synchronised:
    flags: list[dict[str, bool]] = [{} for _ in commands]
    waits: list[list[int]] = [[] for _ in commands]
    for (giver, taker), pair in pairs.items():
        forward = ENGINES.index(giver) < ENGINES.index(taker)
        for awaited, waiting in zip(pair.awaited, pair.waiting, strict=True):
            flags[awaited]["push_next" if forward else "push_previous"] = True
            flags[waiting]["wait_previous" if forward else "wait_next"] = True
            waits[waiting].append(awaited)
    tokens = tuple(Tokens(**flag) for flag in flags)
    return Synchronised(tuple(commands), tokens, tuple(tuple(sorted(numbers)) for numbers in waits))


class _Touch(NamedTuple):
    begin: int
    end: int
    writes: bool
    number: int
    engine: str


class _Memory:
    """Remembers who touched which bytes, as long as somebody may have to wait for it (see ``_replaces``). Touches are
    kept by page, each in all pages that it reaches into: a large tensor is touched by thousands of commands, and only
    those nearby are compared."""

    def __init__(self) -> None:
        self.pages: dict[tuple[str, int], list[_Touch]] = {}

    def conflicts(self, command: Command) -> dict[str, int]:
        """The last command of each engine that this one must come after."""
        last: dict[str, int] = {}
        for access in command.accesses:
            for page in _pages(access):
                for old in self.pages.get(page, ()):
                    if old.begin < access.end and access.begin < old.end and (old.writes or access.writes):
                        last[old.engine] = max(old.number, last.get(old.engine, -1))
        return last

    def add(self, command: Command, number: int) -> None:
        for access in command.accesses:
            touch = _Touch(access.begin, access.end, access.writes, number, command.engine)
            for page in _pages(access):
                there = self.pages.get(page, ())
                self.pages[page] = [old for old in there if not _replaces(access, command.engine, old)] + [touch]


def _pages(access: Access) -> Iterator[tuple[str, int]]:
    return ((access.memory, page) for page in range(access.begin // PAGE, -(-access.end // PAGE)))


def _replaces(access: Access, engine: str, old: _Touch) -> bool:
    """Whether a new access makes an old one needless: whoever had to wait for the old one waits for the new one.

    The new one must cover the old one's bytes. If it writes, it conflicts with all later accesses to them, and has
    itself waited for the old one. If both read and are of one engine, later writes wait for the new one, which comes
    after the old one in its engine's order.
    """
    covers = access.begin <= old.begin and old.end <= access.end
    return covers and (access.writes or (engine == old.engine and not old.writes))
