"""When a load's words go to a memory on chip: as vectors, between what the compute engine writes."""

from __future__ import annotations

from collections.abc import Callable

Free = Callable[[int], int]
"""The next cycle from one on in which nothing else is written."""


class Gather:
    """A vector has so many ``words``, or fewer where a run ends. It is written in the cycle behind its last word, or as
    soon as that can be; one vector may wait while the next one's words come. ``left``: words of the run."""

    def __init__(self, words: int) -> None:
        self._words = words
        self._there = 0
        self._written = self._before = -1
        self.left = 0

    def is_late(self, now: int) -> bool:
        """Whether what came is written only later."""
        return self._written > now

    def take(self, offered: int, free: Free) -> int:
        """When a word is taken."""
        taken = offered if self._there else max(offered, self._before)
        self._there += 1
        self.left -= 1
        if self._there == self._words or not self.left:
            self._there = 0
            self._before, self._written = self._written, free(max(taken, self._written) + 1)
        return taken

    def take_all(self, words: int, last: int) -> None:
        """So many words, the last one in this cycle; nothing else is written."""
        self.left -= words
        self._there = (self._there + words) % self._words if self.left else 0
        self._before, self._written = last, last + 1

    @property
    def end(self) -> int:
        return self._written + 1
