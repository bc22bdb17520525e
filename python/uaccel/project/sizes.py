"""Bytes of flash and RAM, read from what the compiler made."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from uaccel.errors import ToolError

CODE_SECTIONS = (".text", ".rodata", ".init_array", ".ARM", ".srodata", "uaccel_device_constants")
DATA_SECTIONS = (".data", ".sdata", ".tdata")
ZERO_SECTIONS = (".bss", ".sbss", ".tbss", "COMMON", "uaccel_arena", "uaccel_io")
"""The last two hold zeros too: what models of devices reach in a native process has names of its own."""


@dataclass(frozen=True)
class Sizes:
    """``flash``: code and read-only data, and what .data starts from; ``ram``: .data and .bss."""

    flash: int
    ram: int


def size_tool(toolchain: str) -> str:
    """The ``size`` of a compiler, which stands beside it under the same prefix."""
    return "size" if toolchain == "native" else f"{toolchain}-size"


def object_sizes(objects: Iterable[Path], tool: str) -> Sizes:
    """The sum over object files, as ``size -A`` reports their sections."""
    command = [tool, "-A", "-d", *map(str, objects)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolError(f"cannot run {tool}: {error.strerror}; install binutils") from error
    if done.returncode != 0:
        raise ToolError(f"{tool} failed: {done.stderr.strip().splitlines()[0]}")
    flash = ram = 0
    for line in done.stdout.splitlines():
        fields = line.split()
        if len(fields) != 3 or not fields[1].isdigit():
            continue
        name, size = fields[0], int(fields[1])
        flash += size if name.startswith((*CODE_SECTIONS, *DATA_SECTIONS)) else 0
        ram += size if name.startswith((*DATA_SECTIONS, *ZERO_SECTIONS)) else 0
    return Sizes(flash, ram)
