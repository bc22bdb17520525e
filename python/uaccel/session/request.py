"""One request on its way, and the pieces of an object that a ``read`` brings back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from uaccel.session.ids import Error
from uaccel.session.message import Message

OnData = Callable[[int, bytes], bool]
"""Takes an offset and bytes; tells whether they were new."""


@dataclass
class Request:
    """``label`` is what messages call it; ``limit`` how many seconds it may run the model."""

    message: Message
    label: str
    limit: float = 0.0
    on_data: OnData | None = None
    sequence: int = 0
    frame: bytes = b""
    started: float | None = None
    """When the device said that the model runs."""
    repaired: bool = False
    """Sent again because a later one was answered first."""
    reply: bytes | None = None
    error: Error | None = None

    @property
    def done(self) -> bool:
        return self.reply is not None or self.error is not None


@dataclass
class Pieces:
    """An object as it arrives, in any order and more than once; ``size`` may become known only at the end."""

    size: int | None = None
    _pieces: dict[int, bytes] = field(default_factory=dict)

    def add(self, offset: int, data: bytes) -> bool:
        """Whether the piece is new."""
        if len(self._pieces.get(offset, b"")) >= len(data):
            return False
        self._pieces[offset] = data
        return True

    def missing(self) -> list[tuple[int, int]]:
        """Offset and length of each gap; the size must be known."""
        assert self.size is not None
        gaps, end = [], 0
        for offset in sorted(self._pieces):
            if offset > end:
                gaps.append((end, min(offset, self.size) - end))
            end = max(end, offset + len(self._pieces[offset]))
        if end < self.size:
            gaps.append((end, self.size - end))
        return gaps

    def value(self) -> bytes:
        """All of it; nothing must be missing."""
        assert self.size is not None
        whole = bytearray(self.size)
        for offset, data in self._pieces.items():
            if offset < self.size:
                whole[offset : offset + len(data)] = data[: self.size - offset]
        return bytes(whole)
