"""Flatbuffers that are wrong by structure: fields, vtables, offsets and lengths of vectors, found without a schema."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

WORDS = (0, 1, 2, 3, 4, 7, 8, 255, 256, 65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 32) - 4)
MOST_VTABLE = 200


def places(data: bytes) -> list[tuple[int, int]]:
    """Where something stands that has a meaning, and its bytes: words of tables, of vectors, and halves of vtables."""
    found: dict[int, int] = {}
    waiting, seen = [struct.unpack_from("<I", data)[0]], set[int]()
    while waiting:
        table = waiting.pop()
        if table in seen or not _is_table(data, table):
            continue
        seen.add(table)
        vtable = table - struct.unpack_from("<i", data, table)[0]
        found[table] = 4
        for at in range(vtable, vtable + struct.unpack_from("<H", data, vtable)[0], 2):
            found[at] = 2
        for field in _fields(data, table, vtable):
            found[field] = 4
            target = field + struct.unpack_from("<I", data, field)[0]
            waiting.append(target)
            for element in _elements(data, target):
                found[element] = 4
                waiting.append(element + struct.unpack_from("<I", data, element)[0])
    return sorted(found.items())


def _is_table(data: bytes, at: int) -> bool:
    if not 4 <= at <= len(data) - 4:
        return False
    vtable = at - struct.unpack_from("<i", data, at)[0]
    if not 0 <= vtable <= len(data) - 4:
        return False
    size, inside = struct.unpack_from("<HH", data, vtable)
    sound = 4 <= size <= MOST_VTABLE and size % 2 == 0 and 4 <= inside <= 4 * MOST_VTABLE
    return sound and bool(vtable + size <= len(data))


def _fields(data: bytes, table: int, vtable: int) -> Iterator[int]:
    for at in range(vtable + 4, vtable + struct.unpack_from("<H", data, vtable)[0], 2):
        offset = struct.unpack_from("<H", data, at)[0]
        if offset and table + offset + 4 <= len(data):
            yield table + offset


def _elements(data: bytes, vector: int) -> Iterator[int]:
    """The length, and the first of the words of a vector; strings and bytes look alike."""
    if vector + 4 <= len(data):
        count = struct.unpack_from("<I", data, vector)[0]
        yield vector
        yield from range(vector + 4, min(len(data) - 3, vector + 4 + 4 * min(count, 64)), 4)


def mutant(data: bytes, rng: random.Random) -> bytes:
    """One to three places have another value: a special one, one of nearby, or that of another place."""
    changed, known = bytearray(data), places(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, size = rng.choice(known)
        other = rng.choice([place for place, alike in rng.sample(known, min(40, len(known))) if alike == size] or [at])
        old = int.from_bytes(changed[at : at + size], "little")
        near = rng.choice((old + 1, old - 1, old * 2, old ^ 1 << rng.randrange(8 * size)))
        lent = int.from_bytes(data[other : other + size], "little")
        value = rng.choice((rng.choice(WORDS), near, lent, lent + other - at))
        changed[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(changed)
