"""How commands come: words of the bus wait in a small memory, ahead of the command that is put together of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import inf

from uaccel.basics.numbers import pieces
from uaccel.streams.bus import CONSTANTS, FIRST_COMMAND, Bus
from uaccel.streams.reads import Reads
from uaccel.streams.words import WORD


class Fetching:
    """``sizes`` of the commands in bytes. ``asks``: when it asks for words next; ``whole``: when the command is that
    comes next. Both are infinite while they depend on what has not happened."""

    def __init__(self, bus: Bus, sizes: Sequence[int], start: int) -> None:
        self._bus = bus
        self._step = min(WORD, bus.word)
        """Bytes of a command that are put together in a cycle, at most."""
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
        """The next command is put together from the next cycle on."""
        self._command += 1
        self._next = now + 1
        self.whole = inf
        self._advance()

    def _advance(self) -> None:
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
        """There has to be room for a whole burst."""
        asked = len(self._came)
        if asked == self._words:
            return inf
        needed = asked + self._bus.fetched - self._bus.room
        if needed > len(self._used):
            return inf
        return max(self._last, self._used[needed - 1] if needed > 0 else 0) + 1
