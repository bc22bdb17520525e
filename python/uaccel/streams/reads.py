"""The words that come: bursts that fetching and loads ask for, one in a cycle, and that come in this order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

from uaccel.streams.bus import CONSTANTS, RAM, Bus, Outside

Take = Callable[[int], int]
"""When a word is taken that is offered from a cycle on."""
NEVER: Final = -inf


@dataclass(frozen=True)
class Burst:
    """Its first word is taken in cycle ``begin``, each further one ``step`` cycles later; or at ``times``."""

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
    """``free``: from when on the next word may come."""

    def __init__(self, bus: Bus) -> None:
        self.memories: dict[int, Outside] = {RAM: bus.ram, CONSTANTS: bus.constants}
        self.free = 0
        self._behind = {RAM: -1, CONSTANTS: -1}
        self._gave = {RAM: NEVER, CONSTANTS: NEVER}

    def ask(self, memory: int, word: int, words: int, now: int, take: Take | None = None) -> Burst:
        """When ``words`` from ``word`` on come that are asked for ``now``."""
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
        """A memory that waits has its next word ready while one is offered."""
        times, given = [], burst.begin
        for _ in range(burst.words):
            times.append(take(given))
            self._gave[memory] = given
            given = max(given + burst.step, times[-1] + 1)
        return Burst(burst.begin, burst.step, burst.words, tuple(times))


class Window:
    """Words that were asked for and did not come: a user asks for more while they are fewer than ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bursts: deque[Burst] = deque()

    def asked(self, burst: Burst, now: int) -> int:
        """From when on the next burst may be asked for."""
        while self._bursts and self._bursts[0].last < now:
            self._bursts.popleft()
        self._bursts.append(burst)
        spare = sum(one.words for one in self._bursts) - self._most
        for one in self._bursts:
            if spare < one.words:
                return now + 1 if spare < 0 else max(now, one.when(spare)) + 1
            spare -= one.words
        return now + 1
