"""Streams as the device plays them: little-endian 32-bit words, bytes that are the same for the same stream.

    header    magic "CNVY", format, bytes of all of it, places, commands, cycles that it will take
    places    for each: kind, bytes
    commands  for each 32 words: operation, place and offset of up to four tensors, up to 20 fields, zeros
    checksum  CRC-32 of everything before it

What the commands read of weights lies in a place of its own (``constants``).
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from uaccel.accelerator import AcceleratorError

from .commands import OPERATIONS, At, Command, Place, Stream

MAGIC: Final = int.from_bytes(b"CNVY", "little")
FORMAT: Final = 1
KINDS: Final = ("constants", "input", "output", "scratch")
HEADER_WORDS: Final = 6
PLACE_WORDS: Final = 2
RECORD_WORDS: Final = 32
MOST_TENSORS: Final = 4
MOST_PLACES: Final = 64
MOST_COMMANDS: Final = 65535
_WORD: Final = 4
_FIRST_FIELD: Final = 1 + 2 * MOST_TENSORS
_ALL_ONES: Final = 0xFFFFFFFF


def pack(stream: Stream) -> bytes:
    """The bytes that lie in flash."""
    if len(stream.places) > MOST_PLACES or len(stream.commands) > MOST_COMMANDS:
        raise AcceleratorError(
            f"a region of {len(stream.commands)} layers with {len(stream.places)} tensors at its border is too large "
            f"for one stream ({MOST_COMMANDS} and {MOST_PLACES}); forbid conveyor a layer in its middle"
        )
    words = [word for place in stream.places for word in (KINDS.index(place.kind), place.bytes)]
    for command in stream.commands:
        words += _record(command)
    total = _WORD * (HEADER_WORDS + len(words) + 1)
    counts = (len(stream.places), len(stream.commands), min(stream.cycles, _ALL_ONES))
    body = _bytes([MAGIC, FORMAT, total, *counts, *words])
    return body + _bytes([zlib.crc32(body)])


def unpack(data: bytes) -> Stream:
    """The stream that was packed; the layers' names are not in there."""
    if len(data) % _WORD or len(data) < _WORD * (HEADER_WORDS + 1):
        raise _damaged(f"{len(data)} bytes are no whole stream")
    words = struct.unpack(f"<{len(data) // _WORD}I", data)
    magic, version, total, places, commands, cycles = words[:HEADER_WORDS]
    if magic != MAGIC:
        raise _damaged(f"it begins with 0x{magic:08x}, wanted 0x{MAGIC:08x}")
    if version != FORMAT:
        raise _damaged(f"its format is {version}, wanted {FORMAT}")
    expected = _WORD * (HEADER_WORDS + PLACE_WORDS * places + RECORD_WORDS * commands + 1)
    if not len(data) == total == expected:
        raise _damaged(f"it has {len(data)} bytes, says {total}, and its counts make {expected}")
    if zlib.crc32(data[:-_WORD]) != words[-1]:
        raise _damaged("its checksum is wrong")
    at = HEADER_WORDS + PLACE_WORDS * places
    found = tuple(_place(*words[i : i + PLACE_WORDS]) for i in range(HEADER_WORDS, at, PLACE_WORDS))
    records = range(at, at + RECORD_WORDS * commands, RECORD_WORDS)
    stream = Stream(found, tuple(_command(words[i : i + RECORD_WORDS]) for i in records))
    if min(stream.cycles, _ALL_ONES) != cycles:
        raise _damaged(f"it says {cycles} cycles, and its commands take {stream.cycles}")
    return stream


def _record(command: Command) -> list[int]:
    operation = OPERATIONS[command.operation]
    words = [operation.code]
    for name in operation.tensors:
        words += [command.tensors[name].place, command.tensors[name].offset]
    words += [0] * (_FIRST_FIELD - len(words))
    words += [command.fields[name] for name in operation.fields]
    return words + [0] * (RECORD_WORDS - len(words))


def _command(words: tuple[int, ...]) -> Command:
    name = next((name for name, operation in OPERATIONS.items() if operation.code == words[0]), None)
    if name is None:
        raise _damaged(f"there is no operation {words[0]}")
    operation = OPERATIONS[name]
    tensors = {role: At(words[1 + 2 * i], words[2 + 2 * i]) for i, role in enumerate(operation.tensors)}
    values = struct.unpack(f"<{len(operation.fields)}i", _bytes(words[_FIRST_FIELD:][: len(operation.fields)]))
    command = Command(name, tensors, dict(zip(operation.fields, values, strict=True)))
    if _bytes(_record(command)) != _bytes(words):
        raise _damaged(f"what operation '{name}' does not use is not 0")
    return command


def _place(kind: int, size: int) -> Place:
    if kind >= len(KINDS):
        raise _damaged(f"there is no kind {kind} of places")
    return Place(KINDS[kind], size)


def _bytes(words: list[int] | tuple[int, ...]) -> bytes:
    return struct.pack(f"<{len(words)}I", *(word & _ALL_ONES for word in words))


def _damaged(what: str) -> AcceleratorError:
    return AcceleratorError(f"conveyor: the command stream cannot be read: {what}; compile the model again")
