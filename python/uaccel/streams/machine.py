"""A machine with three engines, each with a queue of commands: what the planner must know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from uaccel.accelerator.tensor.machine import Dma, Memory

ENGINES: Final = ("load", "compute", "store")
"""In the order in which data pass them; neighbours give each other tokens."""


@dataclass(frozen=True)
class Machine:
    """``banks`` of a memory: 2 lets the planner fill one part while the array works on another; 1 does not.

    ``weights`` holds weights and output parameters, ``sums`` what is added up by several commands. ``fetch`` brings
    the commands; a queue holds ``queue`` of them that have not begun. In bytes of a stream a transfer takes
    ``transfer_size``, and ``sync_size`` a command of the compute engine that does nothing for ``sync_cycles``.
    """

    activations: Memory
    weights: Memory
    sums: Memory
    load: Dma
    store: Dma
    fetch: Dma
    queue: int
    transfer_size: int
    sync_size: int
    sync_cycles: int = 1

    def memory(self, name: str) -> Memory:
        found: Memory = getattr(self, name)
        return found


def transfer_cycles(dma: Dma, run: int, runs: int) -> int:
    """Of ``runs`` runs of consecutive bytes."""
    return dma.start_up + runs * -(-run // dma.bytes_per_cycle)
