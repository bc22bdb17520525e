"""The cable between a board and this computer: a pseudo-terminal that stays while the board is flashed and reset."""

from __future__ import annotations

import os
import tty
from contextlib import suppress
from pathlib import Path
from typing import Final

CHUNK: Final = 1 << 12


class Terminal:
    """``path`` leads to it, under the same name each time it is plugged in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ends: tuple[int, int] | None = None
        self._waiting = b""
        self.plug()

    @property
    def descriptor(self) -> int | None:
        """The board's end; None while unplugged."""
        return None if self._ends is None else self._ends[0]

    @property
    def is_full(self) -> bool:
        """Whether what the board has sent still waits for a reader."""
        return bool(self._waiting)

    def plug(self) -> None:
        """As a USB plug goes in. The other end is kept open: it would forget that it is no keyboard and screen."""
        if self._ends is None:
            board, computer = os.openpty()
            tty.setraw(computer)
            os.set_blocking(board, False)
            self._ends = board, computer
            self.path.unlink(missing_ok=True)
            self.path.symlink_to(os.ttyname(computer))

    def unplug(self) -> None:
        """As a USB plug comes out: who has the port open sees it vanish."""
        if self._ends is not None:
            for end in self._ends:
                os.close(end)
            self._ends, self._waiting = None, b""
            self.path.unlink(missing_ok=True)

    def give(self, data: bytes = b"") -> None:
        """The board has sent something; what finds no room waits, or is lost where nothing is plugged in."""
        if self._ends is None:
            return
        self._waiting += data
        with suppress(BlockingIOError):
            while self._waiting:
                self._waiting = self._waiting[os.write(self._ends[0], self._waiting) :]

    def drop(self) -> None:
        """Nobody reads: what waits is lost."""
        self._waiting = b""

    def take(self) -> bytes:
        """What the computer has sent."""
        if self._ends is None:
            return b""
        try:
            return os.read(self._ends[0], CHUNK)
        except BlockingIOError:
            return b""
