"""When the commands of a stream run whose fetching, loading and storing share a bus: from one event to the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf
from typing import Final

from uaccel.basics.numbers import pieces
from uaccel.errors import InternalError
from uaccel.machines.timeline import ENGINES, Span, Timeline
from uaccel.streams.bus import CONSTANTS, FIRST_COMMAND, RAM, Bus
from uaccel.streams.machine import Machine
from uaccel.streams.tokens import Synchronised
from uaccel.streams.words import WORD

LOAD, COMPUTE, STORE = range(len(ENGINES))
FETCH: Final = COMPUTE
"""Of those that ask for the bus: the compute engine never does."""
CHANNELS: Final = ((FETCH, LOAD), (STORE,))
"""Who shares words, the first one first."""


class _Request:
    """What one of the bus's users still moves: words from ``word`` on, then further runs. ``since``: when it asks;
    ``least``: when it ends at the earliest; ``more``: how much behind its last word."""

    def __init__(self, memory: int, runs: Iterator[tuple[int, int]], since: int, least: int = 0, more: int = 0) -> None:
        self.memory = memory
        self.runs = runs
        self.since = since
        self.least = least
        self.more = more
        self.begun = False
        self.word, self.left = next(runs)

    def moved(self, words: int) -> bool:
        """Whether that was all."""
        self.word += words
        self.left -= words
        if not self.left:
            self.word, self.left = next(self.runs, (0, 0))
        return not self.left


class _Arbiter:
    """Until when each channel is taken. ``ends``: when each user's last word came."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.memories = {RAM: bus.ram, CONSTANTS: bus.constants}
        self.behind = {RAM: -1, CONSTANTS: -1}
        self.free = [0 for _ in CHANNELS]
        self.requests: dict[int, _Request] = {}
        self.ends: dict[int, int] = {}

    def grant(self, now: int, quiet: float) -> None:
        """To the first that asks. While nobody else does, and nothing else happens until ``quiet``, all it wants."""
        for channel, users in enumerate(CHANNELS):
            asking = [who for who in users if who in self.requests and self.requests[who].since <= now]
            if asking and self.free[channel] <= now:
                others = [self._when(who) for who in (FETCH, LOAD, STORE) if who != asking[0]]
                ends = [end for end in self.ends.values() if end > now]
                self._move(asking[0], channel, now, min([quiet, *others, *ends]))

    def _when(self, who: int) -> float:
        """It may have the bus, or end."""
        request = self.requests.get(who)
        return inf if request is None else max(request.since, self.free[who == STORE])

    def _move(self, who: int, channel: int, now: int, until: float) -> None:
        request = self.requests[who]
        memory = self.memories[request.memory]
        full, done = self.bus.burst * (1 + memory.further), False
        while not done:
            words = min(request.left, self.bus.burst)
            if memory.ahead:
                wait = 0 if request.begun else max(0, request.since + memory.first - now)
                now += words + wait
            else:
                now += memory.cycles(words, goes_on=self.behind[request.memory] == request.word)
            request.begun = True
            rest = request.left - words
            bursts = rest // self.bus.burst if until == inf else min(rest // self.bus.burst, _begun(now, until, full))
            now += bursts * full
            words += bursts * self.bus.burst
            self.behind[request.memory] = request.word + words
            done = request.moved(words)
            if now >= until:
                break
        self.free[channel] = now
        if done:
            del self.requests[who]
            self.ends[who] = max(now, request.least) + request.more

    def next(self) -> float:
        """When somebody may have it."""
        return min(map(self._when, self.requests), default=inf)


def _begun(now: float, until: float, each: int) -> int:
    """How many, one after the other from now on, begin before a time."""
    return max(0, pieces(int(until - now), each))


class _Play:
    def __init__(self, machine: Machine, stream: Synchronised, bus: Bus) -> None:
        self.machine, self.stream, self.bus = machine, stream, bus
        self.arbiter = _Arbiter(bus)
        self.queues: list[deque[int]] = [deque() for _ in ENGINES]
        self.current: list[int | None] = [None for _ in ENGINES]
        self.computed: float = inf
        self.begun = [0] * len(stream.commands)
        self.ended = [0] * len(stream.commands)
        self.following = self.asked = self.fetched = 0
        self.judged: int | None = None
        self.engines = [ENGINES.index(command.engine) for command in stream.commands]

    def play(self) -> Timeline:
        now = self.machine.fetch.start_up
        while True:
            self._end(now)
            while self._dispatch(now) or any(self._start(engine, now) for engine in range(len(ENGINES))):
                pass
            judged = inf if self.judged is None or self.judged <= now else self.judged
            self.arbiter.grant(now, min(self.computed, judged))
            later = [end for end in self.arbiter.ends.values() if end > now]
            event = min([self.computed, judged, self.arbiter.next(), *later])
            if event == inf:
                return self._timeline(now)
            now = int(event)

    def _timeline(self, now: int) -> Timeline:
        if not all(self.ended):
            raise InternalError(f"command {self.ended.index(0)} of a stream waits for ever")
        spans = tuple(Span(*pair) for pair in zip(self.begun, self.ended, strict=True))
        busy = dict.fromkeys(ENGINES, 0)
        for command, span in zip(self.stream.commands, spans, strict=True):
            busy[command.engine] += span.end - span.begin
        return Timeline(spans, now if spans else 0, busy)

    def _end(self, now: int) -> None:
        for engine, number in enumerate(self.current):
            if number is not None and now >= self._end_of(engine):
                self.ended[number] = now
                self.current[engine] = None
                self.computed = inf if engine == COMPUTE else self.computed

    def _end_of(self, engine: int) -> float:
        if engine == COMPUTE:
            return self.computed
        return inf if engine in self.arbiter.requests else self.arbiter.ends[engine]

    def _dispatch(self, now: int) -> bool:
        """A command into its queue, if it is checked and there is room; the one behind it comes meanwhile."""
        if self.following == len(self.stream.commands):
            return False
        if self.judged is None:
            if self.asked == self.following:
                self._ask(now)
            if FETCH in self.arbiter.requests or self.arbiter.ends.get(FETCH, 0) > now:
                return False
            self.judged = now + self.machine.checking(self.stream.commands[self.following])
            if self.asked < len(self.stream.commands):
                self._ask(now)
            return True
        queue = self.queues[self.engines[self.following]]
        if now < self.judged or len(queue) == self.machine.queue:
            return False
        queue.append(self.following)
        self.following += 1
        self.judged = None
        return True

    def _ask(self, now: int) -> None:
        """For what of the next command does not lie in the last word that came."""
        command = self.stream.commands[self.asked]
        first = pieces(self.fetched, self.bus.word)
        self.asked += 1
        self.fetched += command.size
        words = pieces(self.fetched, self.bus.word) - first
        least = now + (0 if first else self.bus.constants.first) + command.size // WORD
        if words:
            request = _Request(CONSTANTS, iter([(FIRST_COMMAND + first, words)]), now, least)
            request.begun = first > 0
            self.arbiter.requests[FETCH] = request
        else:
            self.arbiter.ends[FETCH] = least

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
        if engine == COMPUTE:
            self.computed = now + command.cycles
        else:
            dma = self.machine.load if engine == LOAD else self.machine.store
            memory = CONSTANTS if command.fields["place"] == 0 else RAM
            since, unpacker = now + dma.start_up, self.machine.unpacker
            least, more = 0, self.machine.answering if engine == STORE else 0
            if unpacker is not None and command.fields.get("coded"):
                first = self.arbiter.memories[memory].first
                least, more = since + first + unpacker.cycles(command.fields["pitch_run"]), unpacker.behind
            self.arbiter.requests[engine] = _Request(memory, self.bus.runs(command.fields), since, least, more)
        return True


def shared(machine: Machine, stream: Synchronised, bus: Bus) -> Timeline:
    return _Play(machine, stream, bus).play()
