"""Computes when the commands of a stream run, and what they cost.

Without a shared bus one pass in the commands' order is enough (:func:`timeline`). With a bus, fetching and loading
compete for its words, and :func:`shared` simulates the machine from event to event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import inf
from typing import Final

from uaccel.accelerator.description import OBJECTIVES
from uaccel.accelerator.machine import ENGINES, BusySpan, Engines, Timeline
from uaccel.accelerator.streams.commands import WORD, Synchronised
from uaccel.accelerator.streams.machine import CONSTANTS, FIRST_COMMAND, RAM, Bus, Command, Machine, Outside, Unpacking
from uaccel.errors import InternalError
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

# The words on the bus: fetching and loads ask for bursts, one in a cycle, and these come in the order of the requests.

Take = Callable[[int], int]  # The cycle in which a word is taken that is offered from the given one on.
NEVER: Final = -inf


@dataclass(frozen=True)
class Burst:
    """Holds when the words of a burst are taken: from ``begin`` on one every ``step`` cycles; or else at ``times``."""

    begin: int
    step: int
    words: int
    times: tuple[int, ...] = ()

    def when(self, number: int) -> int:
        return self.times[number] if self.times else self.begin + number * self.step

    @property
    def last(self) -> int:
        return self.when(self.words - 1)


class Reads:
    """Answers when the words of a burst come. ``free``: the first cycle in which the bus has no word yet.

    For each memory it keeps the word behind its last burst, and the cycle in which it gave its last word.
    """

    def __init__(self, bus: Bus) -> None:
        self.memories: dict[int, Outside] = {RAM: bus.ram, CONSTANTS: bus.constants}
        self.free = 0
        self._behind = {RAM: -1, CONSTANTS: -1}
        self._gave = {RAM: NEVER, CONSTANTS: NEVER}

    def ask(self, memory: int, word: int, words: int, now: int, take: Take | None = None) -> Burst:
        """When ``words`` from ``word`` on come that are asked for ``now``. A memory that takes addresses ahead needs
        its first wait from the request on. Any other begins to wait when it was asked, the bus has taken the word
        before, and the memory has given its own last word."""
        outside = self.memories[memory]
        if outside.ahead:
            begin = max(now + outside.first, self.free)
        else:
            wait = outside.further if self._behind[memory] == word else outside.first
            begin = int(max(max(now, self.free - 1) + wait, self._gave[memory] + wait + 1))
        burst = Burst(begin, 1 + outside.further, words)
        self._gave[memory] = burst.last
        if take is not None:
            burst = self._taken(burst, memory, take)
        self._behind[memory] = word + words
        self.free = burst.last + 1
        return burst

    def _taken(self, burst: Burst, memory: int, take: Take) -> Burst:
        """The burst with the cycles in which ``take`` accepts its words. A memory prepares its next word while one is
        offered: the next comes ``step`` cycles after that one was offered, or right after it was taken if that is
        later."""
        times, given = [], burst.begin
        for _ in range(burst.words):
            times.append(take(given))
            self._gave[memory] = given
            given = max(given + burst.step, times[-1] + 1)
        return Burst(burst.begin, burst.step, burst.words, tuple(times))


class OutstandingReads:
    """Counts the words that were asked for and have not come: more may be asked for while they are below ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bursts: deque[Burst] = deque()

    def asked(self, burst: Burst, now: int) -> int:
        """Says from when on the next burst may be asked for: the cycle behind the one that brings the outstanding words
        below ``most``, which is the coming of word number ``outstanding - most`` (from 0)."""
        while self._bursts and self._bursts[0].last < now:
            self._bursts.popleft()
        self._bursts.append(burst)
        spare = sum(one.words for one in self._bursts) - self._most
        for one in self._bursts:
            if spare < one.words:
                return now + 1 if spare < 0 else max(now, one.when(spare)) + 1
            spare -= one.words
        return now + 1


# How commands come: words of the bus wait in a small buffer until a command is put together of them.


class Fetching:
    """Simulates the fetching of commands with these ``sizes`` in bytes.

    ``asks``: when it asks for words next; ``whole``: when the next command is complete. Both are infinite while they
    depend on what has not happened. Commands are put together in units of ``_step`` bytes, one a cycle.
    """

    def __init__(self, bus: Bus, sizes: Sequence[int], start: int) -> None:
        self._bus = bus
        self._step = min(WORD, bus.word)  # Bytes of a command that are put together in a cycle, at most.
        self._ends = list(accumulate(size // self._step for size in sizes))
        self._words = pieces(sum(sizes), bus.word)
        self._came: list[int] = []
        self._used: list[int] = []
        self._command = self._at = 0
        self._next = start
        self.asks: float = start if sizes else inf
        self.whole: float = inf

    def ask(self, reads: Reads, now: int) -> None:
        asked = len(self._came)
        words = min(self._bus.fetched, self._words - asked)
        burst = reads.ask(CONSTANTS, FIRST_COMMAND + asked, words, now)
        self._came += [burst.when(number) + self._bus.held for number in range(words)]
        self._last = now
        self._advance()

    def take(self, now: int) -> None:
        """Takes the complete command: the next one is put together from the next cycle on."""
        self._command += 1
        self._next = now + 1
        self.whole = inf
        self._advance()

    def _advance(self) -> None:
        """Puts the next command together as far as its words have been asked for, and notes which words are used up."""
        if self._command < len(self._ends) and self.whole == inf:
            end, per_word = self._ends[self._command], self._bus.word // self._step
            while self._at < end and self._at // per_word < len(self._came):
                when = max(self._next, self._came[self._at // per_word])
                self._next = when + 1
                self._at += 1
                if self._at % per_word == 0 or self._at == self._ends[-1]:
                    self._used.append(when)
            if self._at == end:
                self.whole = self._next
        self.asks = self._when()

    def _when(self) -> float:
        """When the next burst is asked for: one a cycle at most, and once the buffer has room for all of it."""
        asked = len(self._came)
        if asked == self._words:
            return inf
        needed = asked + self._bus.fetched - self._bus.room
        if needed > len(self._used):
            return inf
        return max(self._last, self._used[needed - 1] if needed > 0 else 0) + 1


# When a load's words are written on chip: gathered to vectors, between the compute engine's writes.

Free = Callable[[int], int]  # The first cycle, not before the given one, in which nothing else is written.


class Gather:
    """Simulates how a load gathers ``words`` words to a vector, fewer where a run ends, and writes it on chip.

    A vector is written in the cycle behind its last word, or as soon after as the memory is free. One vector may wait
    while the words of the next one come, so a vector's first word needs the last vector but one to be written
    (``_before``). ``left``: words of the run that have not come.
    """

    def __init__(self, words: int) -> None:
        self._words = words
        self._there = 0
        self._written = self._before = -1
        self.left = 0

    def is_late(self, now: int) -> bool:
        """Whether the last vector is written only after this cycle."""
        return self._written > now

    def take(self, offered: int, free: Free) -> int:
        """When a word is taken that is offered from this cycle on."""
        taken = offered if self._there else max(offered, self._before)
        self._there += 1
        self.left -= 1
        if self._there == self._words or not self.left:
            self._there = 0
            self._before, self._written = self._written, free(max(taken, self._written) + 1)
        return taken

    def take_all(self, words: int, last: int) -> None:
        """Takes so many words at once, the last one in cycle ``last``, where nothing else is written."""
        self.left -= words
        self._there = (self._there + words) % self._words if self.left else 0
        self._before, self._written = last, last + 1

    @property
    def end(self) -> int:
        return self._written + 1


# When the commands of a stream run whose fetching, loading and storing share a bus: simulated from event to event.

LOAD, COMPUTE, STORE = range(len(ENGINES))


class _Loading:
    """Simulates the load engine: it asks for the words of a run, then of the next one. ``asks``: when it asks next;
    ``end``: when its command ends. Both are infinite while that is not known."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._runs: Iterator[tuple[int, int]] = iter(())
        self._memory = self._word = self._left = 0
        self._window, self._gather = OutstandingReads(bus.under_way), Gather(bus.gathered)
        self._unpacking: Unpacking | None = None
        self.asks = self.end = inf

    def start(self, memory: int, runs: Iterator[tuple[int, int]], now: int, unpacking: Unpacking | None) -> None:
        self._memory, self._runs, self._unpacking = memory, runs, unpacking
        self._word, self._left = next(runs)
        self.asks, self.end = now, inf

    def ask(self, reads: Reads, now: int, until: float, free: Free | None) -> None:
        """Asks for a burst. ``free``: when the memory on chip can be written, None if always.

        Full bursts that follow each other without a gap count as one, which saves events and changes no time. There is
        no gap where the next burst is asked for in time: with ``first`` words outstanding where the memory takes
        addresses ahead, with one word outstanding elsewhere, since the burst goes on. Only so many are joined
        that all are asked for before ``until``, when something else may happen.
        """
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
        """How it takes words, of which none is offered before cycle ``offered``; None: each at once."""
        if self._unpacking is not None:
            return self._unpacking.take if self._unpacking.is_slow else None
        if free is None and not self._gather.is_late(offered):
            return None
        return partial(self._gather.take, free=free or int)


class _Play:
    """Simulates the machine: fetching, dispatch, queues, engines and the bus. The state at a time: ``following`` is the
    next command to enter a queue, ``judged`` when it will have been checked (None: it is not complete), ``current`` the
    running command of each engine. Times that are not known are infinite."""

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
        """Lets happen all that can in a cycle, in a fixed order, and goes on with the cycle of the next event."""
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
        """Asks for one burst at most, fetching before loading. The result is when something happens next."""
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
        """When a load may write on chip: results of the running computation go first; None where there are none."""
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
        spans = tuple(BusySpan(*pair) for pair in zip(self.begun, self.ended, strict=True))
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
        """Puts a command into its queue, once it is checked and there is room; the one behind it comes meanwhile.
        The result is whether something happened."""
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
        """Starts the first command of an idle engine's queue, once all that it waits for has ended."""
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
        """When a store ends: it has the channel for writing to itself, so nothing delays its words."""
        words = sum(count for _, count in self.bus.runs(command.fields))
        return now + self.bus.ram.first + words * (1 + self.bus.ram.further) + self.machine.answering


def shared(machine: Machine, stream: Synchronised, bus: Bus) -> Timeline:
    """Computes when the commands run if fetching, loading and storing share a bus."""
    return _Play(machine, stream, bus).play()


# When the commands of a stream run: engines with fetching, full queues and tokens.


def fetching(machine: Machine, size: int) -> int:
    """The cycles that fetching a command of so many bytes takes, on the bus where there is one."""
    if machine.bus is None:
        return pieces(size, machine.fetch.bytes_per_cycle)
    return pieces(size, machine.bus.word) * (1 + machine.bus.constants.further)


class Estimate:
    """Computes when commands run that are given one by one.

    Without a shared bus this is exact, as a command depends on earlier ones only: on its engine, on those that it waits
    for, on the fetching of all before it, and on room in its queue, which the command ``machine.queue`` places before
    it in the queue leaves when it begins. With a bus, fetching competes with loads, so the time that it takes counts as
    the load engine's, too.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.engines = Engines()
        self.begun = {engine: deque([0] * machine.queue, machine.queue) for engine in ENGINES}
        self.fetched = machine.fetch.start_up

    def copy(self) -> Estimate:
        """The same, to go on in another way."""
        other = Estimate(self.machine)
        other.engines, other.fetched = self.engines.copy(), self.fetched
        other.begun = {engine: begun.copy() for engine, begun in self.begun.items()}
        return other

    def end(self, busy: Mapping[str, int]) -> int:
        """When all is done if each engine is busy for so long after what it has run."""
        return max(free + busy.get(engine, 0) for engine, free in self.engines.free.items())

    def skip(self, cycles: int) -> None:
        """Passes over commands that take so long in all, and with which nothing else runs."""
        end = max(self.engines.free.values()) + cycles
        for engine in ENGINES:
            self.engines.free[engine] = end
            self.engines.busy[engine] += cycles

    def run(self, command: Command, waits: Iterable[int]) -> None:
        """Runs the next command, which waits for those with these numbers."""
        engines, begun = self.engines, self.begun[command.engine]
        fetch = fetching(self.machine, command.size)
        if self.machine.bus is not None:
            engines.free["load"] += fetch
            engines.busy["load"] += fetch
        self.fetched = max(self.fetched + fetch, begun[0])
        awaited = (engines.spans[number].end for number in waits)
        begun.append(engines.run(command.engine, command.cycles, (self.fetched, *awaited)).begin)


def timeline(machine: Machine, stream: Synchronised) -> Timeline:
    """Computes when the commands of a stream run."""
    if machine.bus is not None:
        return shared(machine, stream, machine.bus)
    estimate = Estimate(machine)
    for command, waits in zip(stream.commands, stream.waits, strict=True):
        estimate.run(command, waits)
    return estimate.engines.timeline
