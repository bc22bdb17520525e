"""What a stand-in's flash memory takes: firmware for its processor, within its memories."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uaccel.board import Board
from uaccel.errors import DeviceError

MACHINES: Final = {"arm": 40, "riscv": 243}
_MAGIC: Final = b"\x7fELF\x01\x01"
"""32 bits, little endian."""
_SEGMENT: Final = struct.Struct("<8I")
_LOAD: Final = 1


@dataclass(frozen=True)
class _Part:
    """Bytes of a file, and where they are loaded."""

    address: int
    size: int


def check_image(board: Board, image: Path) -> None:
    """Refuse, in a flash tool's place, what the board could not be flashed with."""
    try:
        data = image.read_bytes()
    except OSError as error:
        raise DeviceError(f"cannot read {image}: {error.strerror}") from error
    if not data.startswith(_MAGIC):
        raise DeviceError(f"{image.name} is no ELF file for a 32-bit little-endian processor")
    try:
        (machine,) = struct.unpack_from("<H", data, 18)
        parts = list(_parts(data))
    except struct.error as error:
        raise DeviceError(f"{image.name} is cut short") from error
    wanted = MACHINES["riscv" if board.cpu.arch == "rv32" else "arm"]
    if machine != wanted:
        raise DeviceError(f"{image.name} is for ELF machine {machine}; the chip is of {wanted}")
    for part in parts:
        if not any(
            m.kind == "flash" and m.origin <= part.address and part.address + part.size <= m.end for m in board.memories
        ):
            raise DeviceError(f"no flash of the chip is at {part.address:#010x}, {part.size} bytes")


def _parts(data: bytes) -> Iterator[_Part]:
    (begin,) = struct.unpack_from("<I", data, 28)
    size, count = struct.unpack_from("<2H", data, 42)
    for index in range(count):
        kind, _, _, physical, in_file, *_ = _SEGMENT.unpack_from(data, begin + size * index)
        if kind == _LOAD and in_file:
            yield _Part(physical, in_file)
