"""What linked firmware takes of its board, symbol by symbol: without what the linker dropped."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from uaccel.project.elf import Symbol, symbol_table
from uaccel.project.linkmap import Piece, read_map
from uaccel.project.sizes import CODE_SECTIONS, DATA_SECTIONS, ZERO_SECTIONS

MODEL_LIBRARY: Final = "libmodel.a"
PORT: Final = "/firmware/ports/"
STARTUP: Final = frozenset({"startup", "boot", "core", "fault", "report", "clock"})
"""Files of a port that a product needs as well: from reset to main, clocks, and what reports a fault."""
WEIGHTS: Final = (".rodata.uaccel_weights", ".rodata.uaccel_device", ".rodata.uaccel_pool.")
ARENA, IO = (".bss.uaccel_arena", ".bss.uaccel_pool."), ".bss.uaccel_io"
FLASH_SECTIONS: Final = (*CODE_SECTIONS, *DATA_SECTIONS, ".uaccel_vectors")
RAM_SECTIONS: Final = (*DATA_SECTIONS, *ZERO_SECTIONS)


@dataclass(frozen=True)
class Row:
    """A symbol, or what of a section has no symbol; ``part`` says whose it is."""

    name: str
    bytes: int
    part: str


@dataclass(frozen=True)
class Linked:
    """Rows of flash and of RAM, the largest first; what starts out of flash and lives in RAM is in both."""

    flash: tuple[Row, ...]
    ram: tuple[Row, ...]

    def flash_of(self, *parts: str) -> int:
        return sum(row.bytes for row in self.flash if row.part in parts)

    def ram_of(self, *parts: str) -> int:
        return sum(row.bytes for row in self.ram if row.part in parts)


def read_linked(build: Path) -> Linked:
    """Of firmware for a board, from its ELF file and the linker's map."""
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


def _sorted(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.name)))


def _named(table: Sequence[Symbol], pieces: Sequence[Piece]) -> list[list[Symbol]]:
    """The symbols of each piece; of several for the same bytes the first one."""
    starts = [piece.address for piece in pieces]
    found: list[dict[int, Symbol]] = [{} for _ in pieces]
    for symbol in sorted(table, key=lambda symbol: symbol.name):
        address = symbol.value & ~1 if symbol.is_function else symbol.value  # bit 0 says Thumb
        at = bisect_right(starts, address) - 1
        if at >= 0 and address < pieces[at].address + pieces[at].size:
            found[at].setdefault(address, symbol)
    return [[symbols[address] for address in sorted(symbols)] for symbols in found]


def _rows(piece: Piece, symbols: Sequence[Symbol], part: str) -> list[Row]:
    """What has no symbol, literals say, is called after its section."""
    rows = [Row(symbol.name, symbol.size, part) for symbol in symbols]
    rest = piece.size - sum(row.bytes for row in rows)
    name = f"{PurePosixPath(piece.member or piece.file).name}:{piece.section}"
    return rows + ([Row(name, rest, part)] if rest > 0 else [])


def _is_model(piece: Piece) -> bool:
    return PurePosixPath(piece.file).name == MODEL_LIBRARY


def _is_library(piece: Piece) -> bool:
    """Of the C compiler's own."""
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
    """Members of the compiler's libraries that the model's objects need, directly or through others."""
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
