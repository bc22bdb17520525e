"""The machine's numbers: read from the header that its device is compiled with, so that there is one place for them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from uaccel.streams import WORD, Bus, Dma, Machine, Memory, Outside, Unpacker

from .commands import FORMATS
from .times import SYNC, UNPACKING, checking

HEADER: Final = Path("device") / "npu_machine.h"
PARAMETER_WORDS: Final = 3
"""Bias, multiplier and shift of an output channel."""


@dataclass(frozen=True)
class Npu:
    """``numbers`` by the names that the header gives them, without their prefix."""

    name: str
    numbers: dict[str, int]

    def __getattr__(self, name: str) -> int:
        try:
            number = self.__dict__[name] = self.numbers[name.upper()]
        except KeyError:
            raise AttributeError(f"the machine has no {name}") from None
        return number

    @property
    def tile_bytes(self) -> int:
        """The weights that the array reads in one cycle."""
        return self.rows * self.columns

    @property
    def parameter_bytes(self) -> int:
        """Counts the bytes that a block of output channels needs."""
        return PARAMETER_WORDS * WORD * self.columns

    @cached_property
    def machine(self) -> Machine:
        buffers, dma = self.buffers, Dma(self.bus_bytes, self.dma_start)
        fetch = Dma(self.bus_bytes, self.fetch_start)
        ram, flash = Outside(self.ram_first, self.ram_next), Outside(self.flash_first, self.flash_next)
        fetched = (self.fetched, self.fetch_room, self.fetch_held)
        gathered = max(1, self.rows // self.bus_bytes)
        bus = Bus(self.bus_bytes, self.burst, ram, flash, self.under_way, *fetched, gathered)
        return Machine(
            activations=Memory(self.activation_bytes, buffers, 16),
            weights=Memory(self.weight_bytes, buffers, math.lcm(16, self.rows)),
            sums=Memory(self.sum_bytes),
            load=dma,
            store=dma,
            fetch=fetch,
            queue=self.queue,
            transfer_size=FORMATS["load"].bytes,
            sync_size=FORMATS["sync"].bytes,
            sync_cycles=SYNC,
            bus=bus,
            unpacker=Unpacker(self.unpack, UNPACKING, self.bus_bytes) if self.unpack else None,
            checking=checking,
            answering=self.store_end,
        )

    @property
    def summary(self) -> str:
        memories = ", ".join(f"{size} bytes of {name}" for name, size in self.memories.items())
        return f"{self.name}: {self.rows}x{self.columns} multipliers, {memories}"

    @property
    def memories(self) -> dict[str, int]:
        return {"activations": self.activation_bytes, "weights": self.weight_bytes, "sums": self.sum_bytes}

    @property
    def config(self) -> int:
        """The register that says how large the array is."""
        return self.rows | self.columns << 8 | self.ports << 16 | self.queue << 24


def read_machine(folder: Path) -> Npu:
    """The machine whose header lies in this folder."""
    file = folder / HEADER
    text = file.read_text()
    name = re.search(r'^#define NPU_NAME "(\w+)"', text, re.MULTILINE)
    found = re.findall(r"^#define NPU_(\w+) (\d+)u?\b", text, re.MULTILINE)
    if name is None or not found:
        raise ValueError(f"{file}: no '#define NPU_NAME \"...\"' and '#define NPU_... number' in it")
    return Npu(name[1], {key: int(value) for key, value in found})
