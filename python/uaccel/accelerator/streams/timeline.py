"""Computes when the commands of a stream run, and what they cost.

Without a shared bus one pass in the commands' order is enough (:func:`timeline`). With a bus, fetching and loading
compete for its words, and ``streams.bus`` simulates the machine from event to event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from uaccel.accelerator.description import OBJECTIVES
from uaccel.accelerator.machine import ENGINES, BusySpan, Timeline
from uaccel.accelerator.streams.bus import shared
from uaccel.accelerator.streams.commands import LOAD, NUMBERS, Synchronised
from uaccel.accelerator.streams.machine import Command, Machine
from uaccel.util.text import pieces

# What a stream costs, and by which objective costs are compared.

# The objective is cycles (latency) or bytes moved between memory and chip (energy); the other one breaks ties.
LATENCY, ENERGY = OBJECTIVES


Key = tuple[int, int]  # A cost in the order that the objective wants: the smaller one is better.


@dataclass(frozen=True)
class Cost:
    """Holds the cycles of a stream, and the bytes that it moves between memory and chip."""

    cycles: int
    bytes: int

    def key(self, objective: str) -> Key:
        """The cost as a key for comparisons."""
        return (self.cycles, self.bytes) if objective == LATENCY else (self.bytes, self.cycles)


@dataclass(frozen=True)
class Work:
    """Holds for how many cycles each engine is busy, and the bytes that are moved."""

    busy: Mapping[str, int]
    moved: int

    def until(self, later: Work) -> Work:
        """What is in ``later`` besides."""
        busy = {engine: cycles - self.busy.get(engine, 0) for engine, cycles in later.busy.items()}
        return Work(busy, later.moved - self.moved)


NOTHING: Final = Work({}, 0)

# When the commands of a stream run: engines with fetching, full queues and tokens.


def fetching(machine: Machine, size: int) -> int:
    """The cycles that fetching a command of so many bytes takes, on the bus where there is one."""
    if machine.bus is None:
        return pieces(size, machine.fetch.bytes_per_cycle)
    return pieces(size, machine.bus.word) * (1 + machine.bus.constants.further)


class Estimate:
    """Computes when commands run that are given one by one.

    Without a shared bus this is exact, as a command depends on earlier ones only. It needs its engine, those that it
    waits for, all fetches before it, and room in its queue. The command ``machine.queue`` places before it in the queue
    leaves that room when it begins. With a bus, fetching competes with loads, so the time that it takes counts as the
    load engine's, too.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.free, self.busy = [0] * len(ENGINES), [0] * len(ENGINES)
        self.begun = [deque([0] * machine.queue, machine.queue) for _ in ENGINES]
        self.begins: list[int] = []
        self.ends: list[int] = []
        self.fetched = machine.fetch.start_up
        self.fetching: dict[int, int] = {}

    def copy(self) -> Estimate:
        """The same, to go on in another way."""
        other = Estimate(self.machine)
        other.free, other.busy, other.fetched = list(self.free), list(self.busy), self.fetched
        other.begins, other.ends = list(self.begins), list(self.ends)
        other.begun, other.fetching = [begun.copy() for begun in self.begun], self.fetching
        return other

    def end(self, busy: Mapping[str, int]) -> int:
        """When all is done if each engine is busy for so long after what it has run."""
        return max(free + busy.get(engine, 0) for engine, free in zip(ENGINES, self.free, strict=True))

    def skip(self, cycles: int) -> None:
        """Passes over commands that take so long in all, and with which nothing else runs."""
        self.free = [max(self.free) + cycles] * len(ENGINES)
        self.busy = [busy + cycles for busy in self.busy]

    def run(self, command: Command, waits: Iterable[int]) -> None:
        """Runs the next command, which waits for those with these numbers."""
        engine, size, free = NUMBERS[command.engine], command.size, self.free
        begun = self.begun[engine]
        if size not in self.fetching:
            self.fetching[size] = fetching(self.machine, size)
        fetch = self.fetching[size]
        if self.machine.bus is not None:
            free[LOAD] += fetch
            self.busy[LOAD] += fetch
        self.fetched = begin = max(self.fetched + fetch, begun[0])
        begin = max(begin, free[engine])
        for number in waits:
            begin = max(begin, self.ends[number])
        begun.append(begin)
        free[engine] = end = begin + command.cycles
        self.busy[engine] += command.cycles
        self.begins.append(begin)
        self.ends.append(end)

    @property
    def timeline(self) -> Timeline:
        spans = tuple(map(BusySpan, self.begins, self.ends))
        return Timeline(spans, max(self.free), dict(zip(ENGINES, self.busy, strict=True)))


def timeline(machine: Machine, stream: Synchronised) -> Timeline:
    """Computes when the commands of a stream run."""
    if machine.bus is not None:
        return shared(machine, stream, machine.bus)
    estimate = Estimate(machine)
    for command, waits in zip(stream.commands, stream.waits, strict=True):
        estimate.run(command, waits)
    return estimate.timeline
