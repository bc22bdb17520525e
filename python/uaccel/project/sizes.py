"""Bytes of flash and RAM, read from what the compiler made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from uaccel.project.elf import sections

CODE_SECTIONS = (".text", ".rodata", ".init_array", ".ARM", ".srodata", "uaccel_device_constants")
DATA_SECTIONS = (".data", ".sdata", ".tdata")
ZERO_SECTIONS = (".bss", ".sbss", ".tbss", "COMMON", "uaccel_arena", "uaccel_io")
"""The last two hold zeros too: what models of devices reach in a native process has names of its own."""


@dataclass(frozen=True)
class Sizes:
    """``flash``: code and read-only data, and what .data starts from; ``ram``: .data and .bss."""

    flash: int
    ram: int


def object_sizes(objects: Iterable[Path]) -> Sizes:
    """The sum over object files, by their sections."""
    flash = ram = 0
    for file in objects:
        for name, size in sections(file):
            flash += size if name.startswith((*CODE_SECTIONS, *DATA_SECTIONS)) else 0
            ram += size if name.startswith((*DATA_SECTIONS, *ZERO_SECTIONS)) else 0
    return Sizes(flash, ram)
