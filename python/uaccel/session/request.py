"""One request on its way, and the pieces of an object that a ``read`` brings back."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from uaccel.session.ids import Error
from uaccel.session.message import Message

OnData = Callable[[int, bytes], int]
"""Takes an offset and bytes; tells how many of them were new."""
LARGEST_OBJECT: Final = 1 << 26
"""Bytes of what a device sends in answer to one request, unless its size is known from elsewhere."""
MOST_GAPS: Final = 1024


@dataclass
class Request:
    """``label`` is what messages call it; ``limit`` how many seconds it may run the model.

    ``unattended``: nobody waits for its answer, and a refusal ends the session.
    """

    message: Message
    label: str
    limit: float = 0.0
    on_data: OnData | None = None
    unattended: bool = False
    sequence: int = 0
    frame: bytes = b""
    ends: float | None = None
    """When the model must be done, since the device has said that it runs."""
    repaired: bool = False
    """Sent again because a later one was answered first."""
    reply: bytes | None = None
    error: Error | None = None

    @property
    def done(self) -> bool:
        return self.reply is not None or self.error is not None


class Pieces:
    """An object as it arrives, in any order and more than once; ``size`` may become known only at the end.

    Until then it has ``most`` bytes at most. Whatever arrives, no more memory is taken than for that.
    """

    def __init__(self, size: int | None = None, *, most: int = LARGEST_OBJECT) -> None:
        self.size = size
        self._most = most if size is None else size
        self._data = bytearray()
        self._there: list[tuple[int, int]] = []
        """Where pieces that touch each other begin and end, in order."""

    def add(self, offset: int, data: bytes) -> int:
        """How many bytes of the piece are new. What lies beyond the end is left out; so is what makes a gap too many,
        which can be asked for again."""
        begin, end = offset, min(offset + len(data), self._most)
        first = bisect_left(self._there, begin, key=lambda span: span[1])
        last = bisect_right(self._there, end, lo=first, key=lambda span: span[0])
        met = self._there[first:last]
        known = sum(min(end, stop) - max(begin, start) for start, stop in met)
        if begin >= end or known == end - begin or (not met and len(self._there) >= MOST_GAPS):
            return 0
        self._there[first:last] = [(min(begin, met[0][0]), max(end, met[-1][1])) if met else (begin, end)]
        self._data.extend(bytes(max(0, end - len(self._data))))
        self._data[begin:end] = data[: end - begin]
        return end - begin - known

    def missing(self) -> list[tuple[int, int]]:
        """Offset and length of each gap; the size must be known."""
        assert self.size is not None
        gaps, end = [], 0
        for start, stop in [*self._there, (self.size, self.size)]:
            if min(start, self.size) > end:
                gaps.append((end, min(start, self.size) - end))
            end = stop
        return gaps

    def value(self) -> bytes:
        """All of it; nothing must be missing."""
        return bytes(self._data[: self.size])
