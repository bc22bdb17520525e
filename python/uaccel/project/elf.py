"""As much of an ELF file as is asked of firmware: its symbols and sections. No other program is needed for that."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uaccel.errors import ToolError

_MAGIC: Final = b"\x7fELF\x01\x01"
"""32 bits, little endian."""
_WIDE: Final = 2
_LITTLE: Final = 1
_SECTION: Final = struct.Struct("<10I")
_SYMBOL: Final = struct.Struct("<3IBBH")
_SYMBOL_TABLE: Final = 2


_FUNCTION: Final = 2
_ARCHIVE: Final = b"!<arch>\n"
_MEMBER: Final = 60
"""Bytes of a member's header."""


@dataclass(frozen=True)
class Symbol:
    """``defined``: here, and not elsewhere."""

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
    """The name and the size of each section; of objects for this computer, too, which may have 64 bits."""
    try:
        data = file.read_bytes()
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
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ToolError(f"cannot read {file}: {error.strerror}; build the firmware first") from error
    data = _member(data, member) if member else data
    if not data.startswith(_MAGIC):
        raise ToolError(f"{file} is no ELF file for a 32-bit little-endian processor")
    try:
        return _symbols(data)
    except (struct.error, IndexError, ValueError) as error:
        raise ToolError(f"{file} is a damaged ELF file ({error}); build the firmware anew") from error


def _member(archive: bytes, wanted: str) -> bytes:
    """Of a library, as GNU ar writes it; empty where it is not there."""
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
