"""Simulates a machine whose fetching, loading and storing share a bus, from event to event (:func:`shared`).

The parts are the words of the bus (``streams.bursts``), the fetching of commands, what writes a load on chip, and the
engines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from math import inf

from uaccel.accelerator.machine import ENGINES, BusySpan, Timeline
from uaccel.accelerator.streams.bursts import Burst, OutstandingReads, Reads, Runs
from uaccel.accelerator.streams.commands import COMPUTE, LOAD, NUMBERS, STORE, WORD, Synchronised
from uaccel.accelerator.streams.machine import (
    BLOCK,
    CONSTANTS,
    FIRST_COMMAND,
    RAM,
    Bus,
    Code,
    Command,
    Machine,
    Results,
    Unpacker,
)
from uaccel.errors import InternalError
from uaccel.util.text import pieces

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
                there = min(end - self._at, per_word - self._at % per_word)
                self._next = max(self._next, self._came[self._at // per_word]) + there
                self._at += there
                if self._at % per_word == 0 or self._at == self._ends[-1]:
                    self._used.append(self._next - 1)
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


def _is_sparse(results: Results) -> bool:
    """Whether no two cycles that follow each other have writes."""
    if results.members > 1 and results.step < 2:
        return False
    return results.groups == 1 or results.period - (results.members - 1) * results.step > 1


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

    def take(self, offered: int, free: Free) -> int:
        """When a word is taken that is offered from this cycle on."""
        taken = offered if self._there else max(offered, self._before)
        self._there += 1
        self.left -= 1
        if self._there == self._words or not self.left:
            self._there = 0
            self._before, self._written = self._written, free(max(taken, self._written) + 1)
        return taken

    def never_waits(self, offered: int, step: int, results: Results | None) -> bool:
        """Whether each word is taken as it is offered: from cycle ``offered`` on one every ``step`` cycles. It is where
        vectors are a cycle late at most, beside results that leave every second cycle free."""
        late = self._written - offered - (self._there == 0 and self._words > 1)
        return late <= 0 and (results is None or (self._words * step > 1 and _is_sparse(results)))

    def take_all(self, burst: Burst, free: Free) -> None:
        """Takes the words of a burst as they are offered: the times of the last two vectors are all that is kept."""
        self.left -= burst.words
        there = (self._there + burst.words) % self._words if self.left else 0
        last = burst.words - 1 - there
        for number in (last - (self._there + last) % self._words - 1, last):
            if number >= 0:
                self._before, self._written = self._written, free(max(burst.when(number), self._written) + 1)
        self._there = there

    def is_early(self, free: int, run: int, step: int) -> bool:
        """Whether, in runs of so many words from cycle ``free`` on, each vector is written before the next one is
        whole, even a cycle late. Then no word waits, and a vector's time depends on its last word alone."""
        last = run % self._words or self._words
        late = self._written - free - (self._words > 1)
        return late <= 0 and self._there == 0 and self._words * step > 1 and last * step > 1

    def rewrite(self, last: int, run: int, step: int, each: int, free: Free) -> None:
        """Says when the last two vectors were written, where runs were passed over that are early: ``last`` is the
        cycle of the last word, and runs come every ``each`` cycles."""
        short = (run % self._words or self._words) * step
        self._before = free(last - (short if run > self._words else each) + 1)
        self._written = free(last + 1)

    @property
    def end(self) -> int:
        return self._written + 1

    def since(self, time: int) -> tuple[object, ...]:
        """What the next words depend on; times are counted from ``time``."""
        return self._there, self.left, self._written - time, self._before - time

    def later(self, cycles: int) -> None:
        """As if all had been written so much later."""
        self._written += cycles
        self._before += cycles


# When a load that decompresses takes words.


class Unpacking:
    """Simulates one load that decompresses: when it takes an offered word, and when it has given all bytes.

    The state: ``_words`` were taken, ``_given`` bytes were given before cycle ``_now``, and the next byte's long
    prefix was counted for ``_alone`` cycles.
    """

    def __init__(self, unpacker: Unpacker, code: Code, further: int) -> None:
        self._code, self._rate, self._behind = code, unpacker.bytes_per_cycle, unpacker.behind
        # Whether a word can complete more bytes than are given until the next word comes. If none can, words never
        # wait, and ``end`` alone tells the time.
        self.is_slow = code.most > self._rate * (1 + further)
        self._words = self._given = self._now = self._alone = 0

    def take(self, offered: int) -> int:
        """When a word is taken that is offered from this cycle on: once the older of the two held words is used up."""
        self._give(self._code.before(self._words), inf)
        taken = max(offered, self._now)
        self._give(self._code.whole(self._words), taken + 1)
        self._now = max(self._now, taken + 1)
        self._words += 1
        return taken

    def end(self, last: int) -> int:
        """The last cycle of the load, whose last word comes in cycle ``last``."""
        words = len(self._code.ends)
        if not self.is_slow:
            self._words, self._given, self._now = words, self._code.whole(words - 1), last + 1
        self._give(self._code.ends[-1], inf)
        return self._now + self._behind - 1

    def _give(self, count: int, until: float) -> None:
        """Gives bytes, ``count`` in all at most and before cycle ``until``, as far as the words that are there allow.

        A cycle gives up to ``bytes_per_cycle`` bytes of one block. A byte with a long prefix is the first of its
        cycle, since its ones are counted in the cycles before.
        """
        there, long = self._code.whole(self._words), self._code.long
        while self._given < min(count, there) and self._now < until:
            self._now += 1
            if self._alone < long.get(self._given, 0):
                self._alone += 1
                continue
            self._alone = 0
            together = min(self._rate, there - self._given, BLOCK - self._given % BLOCK)
            self._given += next((n for n in range(1, together) if self._given + n in long), together)


# When the commands of a stream run whose fetching, loading and storing share a bus: simulated from event to event.


class _Loading:
    """Simulates the load engine: it asks for the words of a run, then of the next one. ``asks``: when it asks next;
    ``end``: when its command ends. Both are infinite while that is not known."""

    _runs: Runs

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._memory = self._word = self._left = 0
        self._window, self._gather = OutstandingReads(bus.under_way), Gather(bus.gathered)
        self._unpacking: Unpacking | None = None
        self.asks = self.end = inf
        self._known: tuple[object, ...] = ()  # The state before the last run, and when the bus was free then.
        self._free = 0

    def start(self, memory: int, runs: Runs, now: int, unpacking: Unpacking | None) -> None:
        self._memory, self._runs, self._unpacking = memory, runs, unpacking
        self._word, self._left = runs.take()
        self.asks, self.end = now, inf
        self._known = ()

    def interrupted(self, now: int) -> None:
        """Fetching has asked for words: the next burst is asked for in the next cycle at the earliest."""
        self.asks = max(self.asks, now + 1)
        self._known = ()

    def go_on(self, reads: Reads, until: float, results: Results | None, end: float) -> None:
        """Asks for all bursts that are asked for before ``until``, when something else may happen.

        Short runs are many, and soon each one is like the one before it, only later: where two begin in the same state,
        all further ones that are alike take as long, and are passed over at once. Results delay none of them if each
        vector is written before the next one is whole."""
        while self.asks < until:
            if self._is_alike(reads, results):
                state, free = self._state(reads, results), reads.free
                if state == self._known:
                    self._skip(reads, until, free - self._free, results, end)
                    self._known = ()
                    continue
                self._known, self._free = state, free
            else:
                self._known = ()
            self.ask(reads, int(self.asks), until, results, end)

    def _is_alike(self, reads: Reads, results: Results | None) -> bool:
        """Whether the runs to come may be passed over."""
        if self._left >= self._bus.burst or self._unpacking is not None or not self._runs.alike:
            return False
        step = 1 + reads.memories[self._memory].further
        return results is None or (_is_sparse(results) and self._gather.is_early(reads.free, self._left, step))

    def _state(self, reads: Reads, results: Results | None) -> tuple[object, ...]:
        """All that the next bursts depend on beside the time, which is counted from when the bus is free."""
        free = reads.free
        own = (results is None, self._left, self.asks - free, self._window.since(free))
        gather = self._gather.since(free) if results is None else ()
        return (*own, *gather, *reads.since(free, self._memory, self._word))

    def _skip(self, reads: Reads, until: float, each: int, results: Results | None, end: float) -> None:
        """Passes over runs that take ``each`` cycles and are asked for before ``until``. The last run of a plane stays:
        what follows it is another distance away."""
        runs = self._runs.alike
        if until < inf:
            runs = min(runs, int(until - 1 - self.asks) // each + 1)
        words = self._runs.skip(runs)
        self._word += words
        self.asks += runs * each
        self._window.later(runs * each)
        reads.later(runs * each, self._memory, words)
        if results is None:
            self._gather.later(runs * each)
        else:
            step = 1 + reads.memories[self._memory].further
            self._gather.rewrite(reads.free - 1, self._left, step, each, partial(results.free, end=int(end)))

    def ask(self, reads: Reads, now: int, until: float, results: Results | None, end: float) -> None:
        """Asks for a burst. ``results``: what else is written on chip until ``end``, None if nothing.

        Full bursts that follow each other without a gap count as one, which saves events and changes no time. There is
        no gap where the next burst is asked for in time: with ``first`` words outstanding where the memory takes
        addresses ahead, with one word outstanding elsewhere, since the burst goes on. Only so many are joined
        that all are asked for before ``until``, when something else may happen.
        """
        most, memory = self._bus.burst, reads.memories[self._memory]
        words = min(self._left, most)
        free: Free = int if results is None else partial(results.free, end=int(end))
        if self._unpacking is not None:
            take = self._unpacking.take if self._unpacking.is_slow else None
        else:
            plain = self._gather.never_waits(reads.free, 1 + memory.further, results)
            take = None if plain else partial(self._gather.take, free=free)
        if take is None and words == most and self._bus.under_way > (memory.first if memory.ahead else 1):
            each = most * (1 + memory.further)
            room = max(now, reads.free - self._bus.under_way)
            spare = self._left if until == inf else int(max(0, until - room)) // each * most
            words = max(words, min(self._left, spare) // most * most)
        self._gather.left = self._left
        burst = reads.ask(self._memory, self._word, words, now, take)
        if take is None:
            self._gather.take_all(burst, free)
        self._word += words
        self._left -= words
        self.asks = self._window.asked(burst, now + (words - 1) // most)
        if not self._left:
            self._word, self._left = self._runs.take()
        if not self._left:
            self.asks = inf
            self.end = self._gather.end if self._unpacking is None else self._unpacking.end(burst.last)


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
        self.engines = [NUMBERS[command.engine] for command in stream.commands]

    def play(self) -> Timeline:
        """Lets happen all that can in a cycle, in a fixed order, and goes on with the cycle of the next event."""
        now, (loads, computes, stores) = 0, self.queues
        while True:
            self._end(now)
            while (
                self._dispatch(now)
                or (loads and self._start(LOAD, now))
                or (computes and self._start(COMPUTE, now))
                or (stores and self._start(STORE, now))
            ):
                pass
            event = self._ask(now)
            if event == inf:
                return self._timeline(now)
            now = int(event)

    def _ask(self, now: int) -> float:
        """Asks for a burst, fetching before loading. The result is when something happens next."""
        fetching, loading = self.fetching, self.loading
        others = min(self.computed, self.stored)
        if self.judged is not None and now < self.judged < others:
            others = self.judged
        if fetching.asks <= now:
            fetching.ask(self.reads, now)
            loading.interrupted(now)
        elif loading.asks <= now:
            until = min(fetching.asks, others, fetching.whole if fetching.whole > now else inf)
            loading.go_on(self.reads, max(until, now + 1), self._written_beside(), self.computed)
        if now < fetching.whole < others:
            others = fetching.whole
        return min(others, fetching.asks, loading.asks, loading.end)

    def _written_beside(self) -> Results | None:
        """What the running computation writes to the memory that is loaded, which goes first; None where nothing."""
        load, compute = self.current[LOAD], self.current[COMPUTE]
        if load is None or compute is None:
            return None
        results = self.stream.commands[compute].results
        if results is None or results.memory != self.stream.commands[load].fields["memory"]:
            return None
        return results

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
        if now < min(ends):
            return
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
        for other in self.stream.waits[number]:
            if not self.ended[other]:
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
        self.loading.start(memory, Runs(self.bus, command.fields), now, unpacking)

    def _store(self, command: Command, now: int) -> int:
        """When a store ends: it has the channel for writing to itself, so nothing delays its words."""
        words = Runs(self.bus, command.fields).words
        return now + self.bus.ram.first + words * (1 + self.bus.ram.further) + self.machine.answering


def shared(machine: Machine, stream: Synchronised, bus: Bus) -> Timeline:
    """Computes when the commands run if fetching, loading and storing share a bus."""
    return _Play(machine, stream, bus).play()
