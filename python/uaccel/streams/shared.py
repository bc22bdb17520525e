"""When the commands of a stream run whose fetching, loading and storing share a bus: from one event to the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from math import inf

from uaccel.errors import InternalError
from uaccel.machines.timeline import ENGINES, Span, Timeline
from uaccel.streams.bus import CONSTANTS, RAM, Bus
from uaccel.streams.command import Command
from uaccel.streams.fetching import Fetching
from uaccel.streams.gather import Free, Gather
from uaccel.streams.machine import Machine
from uaccel.streams.reads import Reads, Take, Window
from uaccel.streams.tokens import Synchronised
from uaccel.streams.unpacker import Unpacking

LOAD, COMPUTE, STORE = range(len(ENGINES))


class _Loading:
    """What the load engine asks for: words from ``word`` on, then further runs. ``asks``: when it does; ``end``: when
    its command ends."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._runs: Iterator[tuple[int, int]] = iter(())
        self._memory = self._word = self._left = 0
        self._window, self._gather = Window(bus.under_way), Gather(bus.gathered)
        self._unpacking: Unpacking | None = None
        self.asks = self.end = inf

    def start(self, memory: int, runs: Iterator[tuple[int, int]], now: int, unpacking: Unpacking | None) -> None:
        self._memory, self._runs, self._unpacking = memory, runs, unpacking
        self._word, self._left = next(runs)
        self.asks, self.end = now, inf

    def ask(self, reads: Reads, now: int, until: float, free: Free | None) -> None:
        """While nobody else asks, and nothing else happens ``until`` then, for as much as it can. ``free``: when the
        memory on chip can be written, where that is not always."""
        take, most = self._taking(reads.free, free), self._bus.burst
        words = min(self._left, most)
        memory = reads.memories[self._memory]
        if take is None and words == most and self._bus.under_way > (memory.first if memory.ahead else 1):
            each = most * (1 + memory.further)
            room = max(now, reads.free - self._bus.under_way)
            spare = self._left if until == inf else int(max(0, until - room)) // each * most
            words = max(words, min(self._left, spare) // most * most)
        self._gather.left = self._left
        burst = reads.ask(self._memory, self._word, words, now, take)
        if take is None:
            self._gather.take_all(words, burst.last)
        self._word += words
        self._left -= words
        self.asks = self._window.asked(burst, now + (words - 1) // most)
        if not self._left:
            self._word, self._left = next(self._runs, (0, 0))
        if not self._left:
            self.asks = inf
            self.end = self._gather.end if self._unpacking is None else self._unpacking.end(burst.last)

    def _taking(self, offered: int, free: Free | None) -> Take | None:
        """When it takes words, of which none is offered before; None: at once."""
        if self._unpacking is not None:
            return self._unpacking.take if self._unpacking.is_slow else None
        if free is None and not self._gather.is_late(offered):
            return None
        return partial(self._gather.take, free=free or int)


class _Play:
    def __init__(self, machine: Machine, stream: Synchronised, bus: Bus) -> None:
        self.machine, self.stream, self.bus = machine, stream, bus
        self.reads, self.loading = Reads(bus), _Loading(bus)
        self.fetching = Fetching(bus, [command.size for command in stream.commands], machine.fetch.start_up)
        self.queues: list[deque[int]] = [deque() for _ in ENGINES]
        self.current: list[int | None] = [None for _ in ENGINES]
        self.computed = self.stored = inf
        self.begun = [0] * len(stream.commands)
        self.ended = [0] * len(stream.commands)
        self.following = 0
        self.judged: int | None = None
        self.engines = [ENGINES.index(command.engine) for command in stream.commands]

    def play(self) -> Timeline:
        now = 0
        while True:
            self._end(now)
            while self._dispatch(now) or any(self._start(engine, now) for engine in range(len(ENGINES))):
                pass
            event = self._ask(now)
            if event == inf:
                return self._timeline(now)
            now = int(event)

    def _ask(self, now: int) -> float:
        """One burst in a cycle, for fetching first. When something happens next."""
        fetching, loading = self.fetching, self.loading
        judged = inf if self.judged is None or self.judged <= now else self.judged
        whole = fetching.whole if fetching.whole > now else inf
        others = min(self.computed, self.stored, judged, whole)
        if fetching.asks <= now:
            fetching.ask(self.reads, now)
            loading.asks = max(loading.asks, now + 1)
        elif loading.asks <= now:
            loading.ask(self.reads, now, min(fetching.asks, others), self._free())
        whole = fetching.whole if fetching.whole > now else inf
        return min(self.computed, self.stored, judged, whole, fetching.asks, loading.asks, loading.end)

    def _free(self) -> Free | None:
        """Results go before what a load brings for the same memory."""
        load, compute = self.current[LOAD], self.current[COMPUTE]
        if load is None or compute is None:
            return None
        results = self.stream.commands[compute].results
        if results is None or results.memory != self.stream.commands[load].fields["memory"]:
            return None
        return partial(results.free, end=int(self.computed))

    def _timeline(self, now: int) -> Timeline:
        if not all(self.ended):
            raise InternalError(f"command {self.ended.index(0)} of a stream waits for ever")
        spans = tuple(Span(*pair) for pair in zip(self.begun, self.ended, strict=True))
        busy = dict.fromkeys(ENGINES, 0)
        for command, span in zip(self.stream.commands, spans, strict=True):
            busy[command.engine] += span.end - span.begin
        return Timeline(spans, now if spans else 0, busy)

    def _end(self, now: int) -> None:
        ends = (self.loading.end, self.computed, self.stored)
        for engine, number in enumerate(self.current):
            if number is not None and now >= ends[engine]:
                self.ended[number] = now
                self.current[engine] = None
                if engine == LOAD:
                    self.loading.end = inf
                elif engine == COMPUTE:
                    self.computed = inf
                else:
                    self.stored = inf

    def _dispatch(self, now: int) -> bool:
        """A command into its queue, if it is checked and there is room; the one behind it comes meanwhile."""
        if self.following == len(self.stream.commands):
            return False
        if self.judged is None:
            if now < self.fetching.whole:
                return False
            self.judged = now + self.machine.checking(self.stream.commands[self.following])
            self.fetching.take(now)
            return True
        queue = self.queues[self.engines[self.following]]
        if now < self.judged or len(queue) == self.machine.queue:
            return False
        queue.append(self.following)
        self.following += 1
        self.judged = None
        return True

    def _start(self, engine: int, now: int) -> bool:
        queue = self.queues[engine]
        if self.current[engine] is not None or not queue:
            return False
        number = queue[0]
        if not all(self.ended[other] > 0 for other in self.stream.waits[number]):
            return False
        queue.popleft()
        self.current[engine], self.begun[number] = number, now
        command = self.stream.commands[number]
        if engine == LOAD:
            self._load(command, now + self.machine.load.start_up)
        elif engine == COMPUTE:
            self.computed = now + command.cycles
        else:
            self.stored = self._store(command, now + self.machine.store.start_up)
        return True

    def _load(self, command: Command, now: int) -> None:
        memory = CONSTANTS if command.fields["place"] == 0 else RAM
        unpacker = self.machine.unpacker
        unpacking = None
        if unpacker is not None and command.code is not None:
            unpacking = Unpacking(unpacker, command.code, self.reads.memories[memory].further)
        self.loading.start(memory, self.bus.runs(command.fields), now, unpacking)

    def _store(self, command: Command, now: int) -> int:
        """Stores have the words that go to themselves."""
        words = sum(count for _, count in self.bus.runs(command.fields))
        return now + self.bus.ram.first + words * (1 + self.bus.ram.further) + self.machine.answering


def shared(machine: Machine, stream: Synchronised, bus: Bus) -> Timeline:
    return _Play(machine, stream, bus).play()
