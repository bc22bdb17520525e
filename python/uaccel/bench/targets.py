"""Chips that pyOCD knows, where it is installed: their memories. It does not tell which core they have."""

from __future__ import annotations

from typing import Any, Final

from uaccel.board.chips import CLOCK_HZ, Chip, unknown_chip
from uaccel.board.pack import chip_in_installed_packs
from uaccel.errors import BoardError

LEAST: Final = 8 << 10
"""Bytes; what is smaller are option bytes and the like."""
RAM_FROM, RAM_TO = 0x20000000, 0x30000000


def chip_of_pyocd(name: str, core: str) -> Chip:
    """A chip by pyOCD's name for it: of a pack that is installed, which tells the core, or built in."""
    installed = chip_in_installed_packs(name, core)
    if installed is not None:
        return installed
    try:
        from pyocd.target.builtin import BUILTIN_TARGETS
    except ImportError:
        raise unknown_chip(name) from None
    wanted = name.lower().replace("-", "_")
    if wanted not in BUILTIN_TARGETS:
        raise unknown_chip(name, list(BUILTIN_TARGETS))
    if not core:
        raise BoardError(f"pyOCD knows {wanted}, but not its core: say it with --core, as in --core cortex-m4f")
    regions = list(getattr(BUILTIN_TARGETS[wanted], "MEMORY_MAP", ()))
    flash = _joined([region for region in regions if region.is_flash and region.length >= LEAST])
    ram = _joined([region for region in regions if region.is_ram and RAM_FROM <= region.start < RAM_TO])
    if not flash or not ram:
        raise BoardError(f"pyOCD does not tell the memories of {wanted}; use 'uaccel new board NAME --like BOARD'")
    about = f"{wanted}, as pyOCD knows it"
    return Chip(wanted, about, core, CLOCK_HZ, flash[0], tuple(ram), wanted, guessed_clock=True)


def _joined(regions: list[Any]) -> list[tuple[int, int]]:
    """Origins and lengths, where those that touch are one; in KiB, since board files have them so."""
    found: list[tuple[int, int]] = []
    for region in sorted(regions, key=lambda region: int(region.start)):
        if found and found[-1][0] + found[-1][1] == region.start:
            found[-1] = found[-1][0], found[-1][1] + region.length
        else:
            found.append((region.start, region.length))
    return [(origin, length & ~0x3FF) for origin, length in found]
