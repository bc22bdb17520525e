"""A machine with three engines, each with a queue of commands: what the planner must know of it."""

from __future__ import annotations

from dataclasses import dataclass

from uaccel.machines import machine
from uaccel.machines.machine import Dma, Memory


@dataclass(frozen=True)
class Machine(machine.Machine):
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
