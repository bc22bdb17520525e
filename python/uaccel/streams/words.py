"""Commands as little-endian words, from a table that they are packed, read and printed from.

The first word holds the opcode in its lowest byte, the tokens in bits 8 to 11, and flags from bit 16 on.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from uaccel.streams.command import Tokens

WORD: Final = 4
TOKENS: Final = ("wait_previous", "wait_next", "push_previous", "push_next")
_FIRST_TOKEN: Final = 8
_FIRST_FLAG: Final = 16


class Field(NamedTuple):
    """``bits`` from ``shift`` on of word ``word``; in two's complement where ``signed``."""

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
    """``flags``: names of the bits from 16 on of the first word; empty for one that means nothing."""

    opcode: int
    engine: str
    words: int
    fields: tuple[Field, ...]
    flags: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return self.words * WORD


def halves(word: int, low: str, high: str = "", signed: bool = False) -> tuple[Field, ...]:
    """Two fields of 16 bits, the lower one first."""
    names = ((low, 0), (high, 16))
    return tuple(Field(name, word, shift, 16, signed) for name, shift in names if name)


def octets(word: int, *names: str, signed: bool = False) -> tuple[Field, ...]:
    """Fields of 8 bits, the lowest first; without a name there is none."""
    return tuple(Field(name, word, 8 * at, 8, signed) for at, name in enumerate(names) if name)


Formats = Mapping[str, Format]
"""By the kind of command."""


def pack(layout: Format, values: Mapping[str, int], tokens: Tokens) -> bytes:
    """``values`` of fields and flags; what is not there is 0."""
    words = [0] * layout.words
    words[0] = layout.opcode
    for bit, name in enumerate(TOKENS, _FIRST_TOKEN):
        words[0] |= getattr(tokens, name) << bit
    for bit, name in enumerate(layout.flags, _FIRST_FLAG):
        words[0] |= values.get(name, 0) << bit
    for field in layout.fields:
        value = values.get(field.name, 0)
        if value not in field.range:
            raise ValueError(f"{field.name} is {value}, and its {field.bits} bits hold {field.range}")
        words[field.word] |= (value & ((1 << field.bits) - 1)) << field.shift
    return struct.pack(f"<{len(words)}I", *words)


def unpack(formats: Formats, data: bytes) -> Iterator[tuple[str, dict[str, int], Tokens]]:
    """Kind, values and tokens of one command after the other."""
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
