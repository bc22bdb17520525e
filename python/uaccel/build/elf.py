"""Reads what linked firmware holds: symbols, sections, and bytes of flash and RAM by symbol.

It reads ELF files, libraries of GNU ar and maps of GNU ld itself, and needs no other program for that.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from uaccel.errors import ToolError, need
from uaccel.util import incoming

# ELF files, as far as firmware needs it: symbols and sections.

_MAGIC: Final = b"\x7fELF\x01\x01"  # 32 bits, little endian.
_WIDE: Final = 2
_LITTLE: Final = 1
_SECTION: Final = struct.Struct("<10I")
_SYMBOL: Final = struct.Struct("<3IBBH")
_SYMBOL_TABLE: Final = 2


_FUNCTION: Final = 2
_ARCHIVE: Final = b"!<arch>\n"
_MEMBER: Final = 60  # Bytes of a member's header.


@dataclass(frozen=True)
class Symbol:
    """Describes a symbol; ``defined``: in this file, and not in another one."""

    name: str
    value: int
    size: int
    is_function: bool
    defined: bool


@dataclass(frozen=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


def sections(file: Path) -> list[tuple[str, int]]:
    """The name and the size of each section. Objects for this computer, of 64 bits or 32, are read too."""
    try:
        data = incoming.read_bytes(file)
        wide, order = data[4] == _WIDE, "<" if data[5] == _LITTLE else ">"
        (begin,) = struct.unpack_from(f"{order}Q", data, 40) if wide else struct.unpack_from(f"{order}I", data, 32)
        length, count, names = struct.unpack_from(f"{order}3H", data, 58 if wide else 46)
        row = f"{order}2I4Q2I2Q" if wide else f"{order}10I"
        rows = [struct.unpack_from(row, data, begin + length * index) for index in range(count)]
        where = [rows[names][4] + fields[0] for fields in rows]
        return [(data[at : data.index(b"\0", at)].decode(), fields[5]) for at, fields in zip(where, rows, strict=True)]
    except OSError as error:
        raise ToolError(f"cannot read {file}: {error.strerror}; build the firmware first") from error
    except (struct.error, IndexError, ValueError) as error:
        raise ToolError(f"{file} is no ELF file, or a damaged one ({error}); build the firmware anew") from error


def symbols(file: Path) -> dict[str, int]:
    """The value of each named symbol."""
    return {symbol.name: symbol.value for symbol in symbol_table(file)}


def symbol_table(file: Path, member: str = "") -> list[Symbol]:
    """The named symbols of an ELF file, or of the member of an archive."""
    with incoming.reading(ToolError, file, "build the firmware first"):
        data = incoming.read_bytes(file)
    data = _member(data, member) if member else data
    need(data.startswith(_MAGIC), f"{file} is no ELF file for a 32-bit little-endian processor", ToolError)
    try:
        return _symbols(data)
    except (struct.error, IndexError, ValueError) as error:
        raise ToolError(f"{file} is a damaged ELF file ({error}); build the firmware anew") from error


def _member(archive: bytes, wanted: str) -> bytes:
    """The content of a member of a library, as GNU ar writes it; empty where it is not there. Names that do not fit
    into a header are in the member ``//``, and the header has their offset there."""
    offset, names = len(_ARCHIVE), b""
    while archive.startswith(_ARCHIVE) and offset + _MEMBER <= len(archive):
        head = archive[offset : offset + _MEMBER]
        size, name = int(head[48:58]), head[:16].rstrip()
        body = archive[offset + _MEMBER : offset + _MEMBER + size]
        if name == b"//":
            names = body
        elif name[:1] == b"/" and name[1:].isdigit():
            name = names[int(name[1:]) :].split(b"/\n")[0]
        if name.rstrip(b"/").decode(errors="replace") == wanted:
            return body
        offset += _MEMBER + size + size % 2
    return b""


def _symbols(data: bytes) -> list[Symbol]:
    (begin,) = struct.unpack_from("<I", data, 32)
    size, count = struct.unpack_from("<2H", data, 46)
    rows = (_SECTION.unpack_from(data, begin + size * index) for index in range(count))
    sections = [_Section(row[1], row[4], row[5], row[6]) for row in rows]
    found: list[Symbol] = []
    for section in sections:
        if section.kind != _SYMBOL_TABLE:
            continue
        names = sections[section.link]
        for offset in range(section.offset, section.offset + section.size, _SYMBOL.size):
            name, value, length, info, _, index = _SYMBOL.unpack_from(data, offset)
            start = names.offset + name
            text = data[start : data.index(b"\0", start)].decode()
            found += [Symbol(text, value, length, info & 15 == _FUNCTION, index != 0)] if text else []
    return found


# The linker's map: which piece of which object file went into the firmware, and where.

_BEGIN, _END = "\nLinker script and memory map\n", "\nOUTPUT("
# A long name has a line of its own.
_PIECE: Final = re.compile(r"^ ([.\w]\S*)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S.*)$", re.MULTILINE)
_IN_LIBRARY: Final = re.compile(r"(.+)\((.+)\)")


@dataclass(frozen=True)
class Piece:
    """Describes a section of an object file in the firmware; ``member`` is set where that file is in a library."""

    section: str
    address: int
    size: int
    file: str
    member: str


def read_map(file: Path) -> list[Piece]:
    """The pieces that the linker kept, by address."""
    with incoming.reading(ToolError, file, "build the firmware anew"):
        text = incoming.read_text(file, incoming.MODEL, errors="replace")
    begin, end = text.find(_BEGIN), text.find(_END)
    need(0 <= begin < end, f"{file} is no map of GNU ld; build the firmware anew", ToolError)
    pieces = [_piece(match) for match in _PIECE.finditer(text, begin, end)]
    return sorted((piece for piece in pieces if piece.size), key=lambda piece: piece.address)


def _piece(match: re.Match[str]) -> Piece:
    section, address, size, file = match.groups()
    library = _IN_LIBRARY.fullmatch(file)
    path, member = library.groups() if library else (file, "")
    return Piece(section, int(address, 16), int(size, 16), path, member)


# Bytes of flash and RAM, from the sections of object files.

CODE_SECTIONS = (".text", ".rodata", ".init_array", ".ARM", ".srodata", "uaccel_device_constants")
DATA_SECTIONS = (".data", ".sdata", ".tdata")
# The last two also hold zeros: in a native process, sections that models of devices reach have names of their own.
ZERO_SECTIONS = (".bss", ".sbss", ".tbss", "COMMON", "uaccel_arena", "uaccel_io")


@dataclass(frozen=True)
class Sizes:
    """Holds bytes of ``flash`` (code, read-only data, initial values of .data) and of ``ram`` (.data and .bss)."""

    flash: int
    ram: int


def object_sizes(objects: Iterable[Path]) -> Sizes:
    """The sizes of object files together, by their sections."""
    flash = ram = 0
    for file in objects:
        for name, size in sections(file):
            flash += size if name.startswith((*CODE_SECTIONS, *DATA_SECTIONS)) else 0
            ram += size if name.startswith((*DATA_SECTIONS, *ZERO_SECTIONS)) else 0
    return Sizes(flash, ram)


# Flash and RAM of linked firmware by symbol, without what the linker dropped.
#
# The map gives the pieces and the files that they come from, the ELF file the symbols in them. A piece belongs to the
# model, to start-up code, or to the session server. Members of the compiler's libraries belong to the model where its
# objects need them: a product needs them as well.

MODEL_LIBRARY: Final = "libmodel.a"
PORT: Final = "/firmware/ports/"
# Files of a port that a product needs as well: from reset to main, clocks, and what reports a fault.
STARTUP: Final = frozenset({"startup", "boot", "core", "fault", "report", "clock"})
WEIGHTS: Final = (".rodata.uaccel_weights", ".rodata.uaccel_device", ".rodata.uaccel_pool.")
ARENA, IO = (".bss.uaccel_arena", ".bss.uaccel_pool."), ".bss.uaccel_io"
FLASH_SECTIONS: Final = (*CODE_SECTIONS, *DATA_SECTIONS, ".uaccel_vectors")
RAM_SECTIONS: Final = (*DATA_SECTIONS, *ZERO_SECTIONS)


@dataclass(frozen=True)
class SizeRow:
    """Gives the bytes of a symbol, or of the rest of a section; ``part`` says whose it is."""

    name: str
    bytes: int
    part: str


@dataclass(frozen=True)
class Linked:
    """Holds rows of flash and of RAM, the largest first. Variables with initial values are in both."""

    flash: tuple[SizeRow, ...]
    ram: tuple[SizeRow, ...]

    def flash_of(self, *parts: str) -> int:
        return sum(row.bytes for row in self.flash if row.part in parts)

    def ram_of(self, *parts: str) -> int:
        return sum(row.bytes for row in self.ram if row.part in parts)


def read_linked(build: Path) -> Linked:
    """The bytes of firmware for a board by symbol, from its ELF file and the linker's map."""
    pieces = read_map(build / "firmware.map")
    table = [symbol for symbol in symbol_table(build / "firmware.elf") if symbol.defined and symbol.size]
    shared = _called_by_model(build, pieces)
    named = _named(table, pieces)
    flash, ram = [], []
    for piece, symbols in zip(pieces, named, strict=True):
        if piece.section.startswith(FLASH_SECTIONS):
            flash += _rows(piece, symbols, _flash_part(piece, shared))
        if piece.section.startswith(RAM_SECTIONS):
            ram += _rows(piece, symbols, _ram_part(piece, shared))
    return Linked(_sorted(flash), _sorted(ram))


def _sorted(rows: Iterable[SizeRow]) -> tuple[SizeRow, ...]:
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.name)))


def _named(table: Sequence[Symbol], pieces: Sequence[Piece]) -> list[list[Symbol]]:
    """The symbols of each piece; of several at the same address the first by name."""
    starts = [piece.address for piece in pieces]
    found: list[dict[int, Symbol]] = [{} for _ in pieces]
    for symbol in sorted(table, key=lambda symbol: symbol.name):
        address = symbol.value & ~1 if symbol.is_function else symbol.value  # bit 0 says Thumb
        at = bisect_right(starts, address) - 1
        if at >= 0 and address < pieces[at].address + pieces[at].size:
            found[at].setdefault(address, symbol)
    return [[symbols[address] for address in sorted(symbols)] for symbols in found]


def _rows(piece: Piece, symbols: Sequence[Symbol], part: str) -> list[SizeRow]:
    """A row for each symbol of a piece. Bytes without a symbol, such as literals, are called after the section."""
    rows = [SizeRow(symbol.name, symbol.size, part) for symbol in symbols]
    rest = piece.size - sum(row.bytes for row in rows)
    name = f"{PurePosixPath(piece.member or piece.file).name}:{piece.section}"
    return rows + ([SizeRow(name, rest, part)] if rest > 0 else [])


def _is_model(piece: Piece) -> bool:
    return PurePosixPath(piece.file).name == MODEL_LIBRARY


def _is_library(piece: Piece) -> bool:
    """Whether a piece is from a library of the C compiler's."""
    return not _is_model(piece) and bool(piece.member)


def _flash_part(piece: Piece, shared: frozenset[tuple[str, str]]) -> str:
    if _is_model(piece) or (piece.file, piece.member) in shared:
        if piece.section.startswith(WEIGHTS):
            return "weights"
        return "rodata" if ".rodata" in piece.section or ".srodata" in piece.section else "code"
    stem = PurePosixPath(piece.file).name.partition(".")[0]
    return "startup" if PORT in piece.file and stem in STARTUP else "session"


def _ram_part(piece: Piece, shared: frozenset[tuple[str, str]]) -> str:
    if piece.section.startswith((*ARENA, IO)):
        return "arena" if piece.section.startswith(ARENA) else "io"
    return "static" if _is_model(piece) or (piece.file, piece.member) in shared else "session"


def _called_by_model(build: Path, pieces: Sequence[Piece]) -> frozenset[tuple[str, str]]:
    """Members of the compiler's libraries that the model's objects need, directly or through others: the closure over
    symbols that one leaves undefined and another defines."""
    model = {(piece.file, piece.member) for piece in pieces if _is_model(piece)}
    library = {(piece.file, piece.member) for piece in pieces if _is_library(piece)}
    tables = {key: symbol_table(build / key[0], key[1]) for key in model | library}
    owner = {symbol.name: key for key in library for symbol in tables[key] if symbol.defined}
    found: set[tuple[str, str]] = set()
    todo = list(model)
    while todo:
        for symbol in tables[todo.pop()]:
            other = None if symbol.defined else owner.get(symbol.name)
            if other is not None and other not in found:
                found.add(other)
                todo.append(other)
    return frozenset(found)
