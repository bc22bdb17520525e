"""A machine with three engines, each with a queue of commands: what the planner must know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from uaccel.machines import machine
from uaccel.machines.machine import Dma, Memory
from uaccel.streams.bus import Bus
from uaccel.streams.command import Command
from uaccel.streams.unpacker import Unpacker


@dataclass(frozen=True)
class Machine(machine.Machine):
    """``banks`` of a memory: 2 lets the planner fill one part while the array works on another; 1 does not.

    ``weights`` holds weights and output parameters, ``sums`` what is added up by several commands. ``fetch`` brings
    the commands; a queue holds ``queue`` of them that have not begun. In bytes of a stream a transfer takes
    ``transfer_size``, and ``sync_size`` a command of the compute engine that does nothing for ``sync_cycles``.

    With a ``bus``, ``load``, ``store`` and ``fetch`` use it, and are as fast as it is; a command is in hand no sooner
    than so many cycles behind the one before as ``checking`` says, and a store ends ``answering`` cycles behind its
    last word. While results are written, loads into the same memory wait. With an ``unpacker`` loads may bring
    weights as a code.
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
    bus: Bus | None = None
    unpacker: Unpacker | None = None
    checking: Callable[[Command], int] = lambda _command: 0
    answering: int = 0

    @property
    def constants(self) -> Dma:
        """What brings weights."""
        return self.load if self.bus is None else self.bus.constants_by(self.load)

    def brought(self, cycles: int) -> int:
        """Bytes of weights that come in so many cycles, at most."""
        return cycles * self.load.bytes_per_cycle // (1 if self.bus is None else 1 + self.bus.constants.further)

    def unpacked_cycles(self, size: int, coded: int) -> int:
        """Of a load of so many bytes that come as a code."""
        if self.unpacker is None:
            return self.constants.cycles(coded)
        first = 0 if self.bus is None else self.bus.constants.first
        least = self.load.start_up + first + self.unpacker.cycles(size)
        return max(self.constants.cycles(coded), least) + self.unpacker.behind
