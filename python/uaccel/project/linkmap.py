"""The linker's map: which piece of which object file went into the firmware, and where."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uaccel.errors import ToolError

_BEGIN, _END = "\nLinker script and memory map\n", "\nOUTPUT("
_PIECE: Final = re.compile(r"^ ([.\w]\S*)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S.*)$", re.MULTILINE)
"""A long name has a line of its own."""
_IN_LIBRARY: Final = re.compile(r"(.+)\((.+)\)")


@dataclass(frozen=True)
class Piece:
    """A section of an object file; ``member`` where that is in a library."""

    section: str
    address: int
    size: int
    file: str
    member: str


def read_map(file: Path) -> list[Piece]:
    """What is left after the linker dropped what nobody needs; by address."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ToolError(f"cannot read {file}: {error.strerror}; build the firmware anew") from error
    begin, end = text.find(_BEGIN), text.find(_END)
    if not 0 <= begin < end:
        raise ToolError(f"{file} is no map of GNU ld; build the firmware anew")
    pieces = [_piece(match) for match in _PIECE.finditer(text, begin, end)]
    return sorted((piece for piece in pieces if piece.size), key=lambda piece: piece.address)


def _piece(match: re.Match[str]) -> Piece:
    section, address, size, file = match.groups()
    library = _IN_LIBRARY.fullmatch(file)
    path, member = library.groups() if library else (file, "")
    return Piece(section, int(address, 16), int(size, 16), path, member)
