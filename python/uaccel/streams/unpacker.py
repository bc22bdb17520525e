"""What loads bring as a code, and how long unpacking keeps the words of the bus waiting."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from uaccel.basics.numbers import pieces
from uaccel.streams.code import BLOCK, Code, code_of
from uaccel.streams.layer import Layer, Part


@dataclass(frozen=True, eq=False)
class Unpacker:
    """Gives up to ``bytes_per_cycle``, a word's first ones ``behind`` cycles later. ``known``: the codes by layer and
    part of it. ``word``: bytes of the bus."""

    bytes_per_cycle: int
    behind: int = 0
    word: int = 8
    known: dict[tuple[int, range, range], tuple[Layer, Code]] = field(default_factory=dict)

    def code(self, layer: Layer, part: Part) -> Code:
        """Of a part's weights."""
        key = (id(layer), part.blocks, part.steps)
        if key not in self.known:
            self.known[key] = (layer, code_of(layer.weights(part.blocks, part.steps), 8 * self.word))
        return self.known[key][1]

    def cycles(self, size: int) -> int:
        """That so many bytes take at least, behind the first word."""
        return pieces(size, self.bytes_per_cycle)


class Unpacking:
    """A load that unpacks: when it takes a word that it is offered, and when it has given all bytes."""

    def __init__(self, unpacker: Unpacker, code: Code, further: int) -> None:
        self._code, self._rate, self._behind = code, unpacker.bytes_per_cycle, unpacker.behind
        self.is_slow = code.most > self._rate * (1 + further)
        """Whether a word can have more bytes than go while the next one comes."""
        self._words = self._given = self._now = self._alone = 0

    def take(self, offered: int) -> int:
        """Once no more bits wait than the unpacker holds."""
        self._give(self._code.before(self._words), inf)
        taken = max(offered, self._now)
        self._give(self._code.whole(self._words), taken + 1)
        self._now = max(self._now, taken + 1)
        self._words += 1
        return taken

    def end(self, last: int) -> int:
        """With the last word."""
        words = len(self._code.ends)
        if not self.is_slow:
            self._words, self._given, self._now = words, self._code.whole(words - 1), last + 1
        self._give(self._code.ends[-1], inf)
        return self._now + self._behind - 1

    def _give(self, count: int, until: float) -> None:
        """Up to so many bytes of the words that are there. None go together with those of the next block."""
        there, long = self._code.whole(self._words), self._code.long
        while self._given < min(count, there) and self._now < until:
            self._now += 1
            if self._alone < long.get(self._given, 0):
                self._alone += 1
                continue
            self._alone = 0
            together = min(self._rate, there - self._given, BLOCK - self._given % BLOCK)
            self._given += next((n for n in range(1, together) if self._given + n in long), together)
