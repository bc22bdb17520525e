"""When the commands of a stream run: engines with fetching, full queues and tokens."""

from __future__ import annotations

from uaccel.basics.numbers import pieces
from uaccel.machines.timeline import ENGINES, Engines, Timeline
from uaccel.streams.machine import Machine
from uaccel.streams.shared import shared
from uaccel.streams.tokens import Synchronised


def timeline(machine: Machine, stream: Synchronised) -> Timeline:
    """Without a bus that is shared, waiting points backwards only: one pass in the commands' order sees everything in
    time."""
    if machine.bus is not None:
        return shared(machine, stream, machine.bus)
    engines = Engines()
    begun: dict[str, list[int]] = {engine: [] for engine in ENGINES}
    fetched = machine.fetch.start_up
    for command, waits in zip(stream.commands, stream.waits, strict=True):
        queue = begun[command.engine]
        room = queue[-machine.queue] if len(queue) >= machine.queue else 0
        fetched = max(fetched + pieces(command.size, machine.fetch.bytes_per_cycle), room)
        awaited = (engines.spans[number].end for number in waits)
        queue.append(engines.run(command.engine, command.cycles, (fetched, *awaited)).begin)
    return engines.timeline
