"""Says when words come over a bus that is shared: bursts that are asked for, and the runs of a transfer they bring."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from math import inf
from typing import Final, NamedTuple

from uaccel.accelerator.streams.machine import CONSTANTS, PLACE, RAM, Bus, Outside

# The words on the bus: fetching and loads ask for bursts, one in a cycle, and these come in the order of the requests.

Take = Callable[[int], int]  # The cycle in which a word is taken that is offered from the given one on.
NEVER: Final = -inf


class Burst(NamedTuple):
    """Holds when the words of a burst are taken: from ``begin`` on one every ``step`` cycles; or else at ``times``."""

    begin: int
    step: int
    words: int
    last: int
    times: tuple[int, ...] = ()

    def when(self, number: int) -> int:
        return self.times[number] if self.times else self.begin + number * self.step

    def later(self, cycles: int) -> Burst:
        times = tuple(time + cycles for time in self.times)
        return Burst(self.begin + cycles, self.step, self.words, self.last + cycles, times)


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
        step = 1 + outside.further
        burst = Burst(begin, step, words, begin + (words - 1) * step)
        self._gave[memory] = burst.last
        if take is not None:
            burst = self._taken(burst, memory, take)
        self._behind[memory] = word + words
        self.free = burst.last + 1
        return burst

    def since(self, time: int, memory: int, word: int) -> tuple[object, ...]:
        """What a burst from ``word`` on depends on; times are counted from ``time``."""
        return self._gave[memory] - time, word - self._behind[memory]

    def later(self, cycles: int, memory: int, words: int) -> None:
        """As if all had been asked for so much later, and so many words further on."""
        self.free += cycles
        self._gave[memory] += cycles
        self._behind[memory] += words

    def _taken(self, burst: Burst, memory: int, take: Take) -> Burst:
        """The burst with the cycles in which ``take`` accepts its words. A memory prepares its next word while one is
        offered: the next comes ``step`` cycles after that one was offered, or right after it was taken if that is
        later."""
        times, given = [], burst.begin
        for _ in range(burst.words):
            times.append(take(given))
            self._gave[memory] = given
            given = max(given + burst.step, times[-1] + 1)
        return Burst(burst.begin, burst.step, burst.words, times[-1], tuple(times))


class OutstandingReads:
    """Counts the words that were asked for and have not come: more may be asked for while they are below ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bursts: deque[Burst] = deque()
        self._words = 0

    def asked(self, burst: Burst, now: int) -> int:
        """Says from when on the next burst may be asked for: the cycle behind the one that brings the outstanding words
        below ``most``, which is the coming of word number ``outstanding - most`` (from 0)."""
        bursts = self._bursts
        while bursts and bursts[0].last < now:
            self._words -= bursts.popleft().words
        bursts.append(burst)
        self._words += burst.words
        spare = self._words - self._most
        if spare < 0:
            return now + 1
        for one in bursts:
            if spare < one.words:
                return max(now, one.when(spare)) + 1
            spare -= one.words
        return now + 1

    def since(self, time: int) -> tuple[object, ...]:
        """What the answers depend on; times are counted from ``time``."""
        return tuple(burst.later(-time) for burst in self._bursts)

    def later(self, cycles: int) -> None:
        """As if all had been asked for so much later."""
        self._bursts = deque(burst.later(cycles) for burst in self._bursts)


class Runs:
    """Gives the runs of a transfer one after the other, in words of the bus."""

    def __init__(self, bus: Bus, fields: Mapping[str, int]) -> None:
        self._bus, self._fields = bus, fields
        self._plane = self._run = 0

    def take(self) -> tuple[int, int]:
        """The first word of the next run, and how many it touches; no words where there is no run."""
        fields = self._fields
        if self._run == fields["runs"]:
            self._plane, self._run = self._plane + 1, 0
        if self._plane >= fields["planes"]:
            return 0, 0
        begin = fields["place"] * PLACE * self._bus.word + fields["offset"]
        begin += self._plane * fields["stride_plane"] + self._run * fields["stride_run"]
        self._run += 1
        return self._bus.words(begin, fields["run"])

    @property
    def alike(self) -> int:
        """How many of the runs to come are as many words as the last one, in equal distances from it."""
        return 0 if self._fields["stride_run"] % self._bus.word else self._fields["runs"] - self._run

    def skip(self, runs: int) -> int:
        """Passes over runs that are alike: the result is the distance in words."""
        self._run += runs
        return runs * self._fields["stride_run"] // self._bus.word

    @property
    def words(self) -> int:
        """The words of all runs."""
        fields = self._fields
        if fields["stride_run"] % self._bus.word or fields["stride_plane"] % self._bus.word:
            return sum(count for _, count in self._bus.runs(fields))
        return fields["runs"] * fields["planes"] * self._bus.words(fields["offset"], fields["run"])[1]
