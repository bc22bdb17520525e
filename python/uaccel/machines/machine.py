"""What every machine has: memories on chip, and DMA between them and the memory outside."""

from __future__ import annotations

from dataclasses import dataclass

from uaccel.basics.numbers import pieces


@dataclass(frozen=True)
class Memory:
    """On-chip memory. ``banks``: 2 lets one engine fill a half while another works on the other half.

    ``alignment``: of every address that an engine is given, in bytes.
    """

    bytes: int
    banks: int = 1
    alignment: int = 1

    def __post_init__(self) -> None:
        if self.banks not in (1, 2):
            raise ValueError(f"a memory has {self.banks} banks, wanted 1 or 2")
        if self.bytes < 1 or self.alignment < 1 or self.bank_bytes % self.alignment or self.bytes % self.banks:
            raise ValueError(
                f"a memory of {self.bytes} bytes in {self.banks} banks cannot be aligned to {self.alignment}"
            )

    @property
    def bank_bytes(self) -> int:
        return self.bytes // self.banks


@dataclass(frozen=True)
class Dma:
    """A transfer takes ``start_up`` cycles, and each of its rows as many as it has bytes by ``bytes_per_cycle``."""

    bytes_per_cycle: int
    start_up: int

    def cycles(self, row: int, rows: int = 1) -> int:
        """Of ``rows`` rows of so many bytes."""
        return self.start_up + rows * pieces(row, self.bytes_per_cycle)


class Machine:
    """What stands in every machine, whichever way its commands come."""

    activations: Memory
    weights: Memory
    load: Dma
    store: Dma

    def memory(self, name: str) -> Memory:
        """One of its memories on chip."""
        found: Memory = getattr(self, name)
        return found
