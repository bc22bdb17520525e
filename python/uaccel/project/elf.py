"""As much of a 32-bit ELF file as is asked of firmware: its symbols. No other program is needed for that."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uaccel.errors import ToolError

_MAGIC: Final = b"\x7fELF\x01\x01"
"""32 bits, little endian."""
_SECTION: Final = struct.Struct("<10I")
_SYMBOL: Final = struct.Struct("<3IBBH")
_SYMBOL_TABLE: Final = 2


@dataclass(frozen=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


def symbols(file: Path) -> dict[str, int]:
    """The value of each named symbol."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ToolError(f"cannot read {file}: {error.strerror}; build the firmware first") from error
    if not data.startswith(_MAGIC):
        raise ToolError(f"{file} is no ELF file for a 32-bit little-endian processor")
    try:
        return _symbols(data)
    except (struct.error, IndexError, ValueError) as error:
        raise ToolError(f"{file} is a damaged ELF file ({error}); build the firmware anew") from error


def _symbols(data: bytes) -> dict[str, int]:
    (begin,) = struct.unpack_from("<I", data, 32)
    size, count = struct.unpack_from("<2H", data, 46)
    rows = (_SECTION.unpack_from(data, begin + size * index) for index in range(count))
    sections = [_Section(row[1], row[4], row[5], row[6]) for row in rows]
    values: dict[str, int] = {}
    for section in sections:
        if section.kind != _SYMBOL_TABLE:
            continue
        names = sections[section.link]
        for offset in range(section.offset, section.offset + section.size, _SYMBOL.size):
            name, value, *_ = _SYMBOL.unpack_from(data, offset)
            start = names.offset + name
            values[data[start : data.index(b"\0", start)].decode()] = value
    values.pop("", None)
    return values
