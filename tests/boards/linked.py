"""Firmware that is linked for a board: where its parts lie, read from the ELF file by nobody of uaccel's."""

from __future__ import annotations

import struct
from pathlib import Path

from support.models.networks import OWN
from uaccel.board import Board
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import archive_of


def link(board: Board, folder: Path) -> Path:
    """A small network with its session server."""
    create_project(archive_of(compile_model(OWN / "gesture.tflite", board=str(board.file))), board, folder)
    return firmware_of(build_project(folder))


def check_linked(board: Board, elf: Path) -> None:
    """All that is loaded, and all that is used, lies in the board's memories; the core finds its way in."""
    data = elf.read_bytes()
    (begin,), (size, count) = struct.unpack_from("<I", data, 28), struct.unpack_from("<2H", data, 42)
    spans = [(memory.origin, memory.end, memory.kind) for memory in board.memories]
    used = 0
    for index in range(count):
        kind, at, virtual, physical, in_file, in_memory, *_ = struct.unpack_from("<8I", data, begin + size * index)
        if kind != 1 or not in_memory:
            continue
        used += in_memory
        assert any(low <= virtual and virtual + in_memory <= high for low, high, _ in spans), hex(virtual)
        if in_file:
            assert any(low <= physical and physical + in_file <= high for low, high, k in spans if k == "flash")
        first = next(low for low, _, k in spans if k == "flash")
        if physical == first and board.cpu.arch != "rv32":
            boot = 256 if (board.port.name, board.cpu.arch) == ("rp2", "armv6m") else 0
            stack, reset = struct.unpack_from("<2I", data, at + boot)
            assert any(low < stack <= high for low, high, k in spans if k in ("ram", "tcm"))
            assert reset & 1
            assert any(low <= reset < high for low, high, k in spans if k == "flash")
    assert used > 10_000
