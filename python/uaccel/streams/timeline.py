"""When commands run: the three engines in their own order, with fetching, full queues and tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from uaccel.streams.machine import ENGINES, Machine
from uaccel.streams.tokens import Synchronised


class Span(NamedTuple):
    begin: int
    end: int


@dataclass(frozen=True)
class Timeline:
    """``spans`` by command; ``busy`` by engine, of ``total`` cycles."""

    spans: tuple[Span, ...]
    total: int
    busy: dict[str, int]


def timeline(machine: Machine, stream: Synchronised) -> Timeline:
    """Waiting points backwards only, so one pass in the commands' order sees everything in time."""
    spans: list[Span] = []
    busy = dict.fromkeys(ENGINES, 0)
    begun: dict[str, list[int]] = {engine: [] for engine in ENGINES}
    free = dict.fromkeys(ENGINES, 0)
    fetched = machine.fetch.start_up
    for command, waits in zip(stream.commands, stream.waits, strict=True):
        engine = command.engine
        queue = begun[engine]
        room = queue[-machine.queue] if len(queue) >= machine.queue else 0
        fetched = max(fetched + -(-command.size // machine.fetch.bytes_per_cycle), room)
        begin = max([fetched, free[engine], *(spans[number].end for number in waits)])
        free[engine] = begin + command.cycles
        spans.append(Span(begin, free[engine]))
        queue.append(begin)
        busy[engine] += command.cycles
    return Timeline(tuple(spans), max(free.values()), busy)
