"""Time as a process has it: what it waited for a processor, on a busy computer, does not count."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

LOOK_SECONDS: Final = 0.05
"""Until it is asked again how long the process has waited."""


class FairClock:
    """Runs no faster than the clock of the wall, and never back."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._looked_at = self._waited = self._told = 0.0

    def __call__(self) -> float:
        now = time.monotonic()
        if now - self._looked_at > LOOK_SECONDS:
            self._looked_at = now
            self._waited = max(self._waited, *_waits(self._pid))
        self._told = max(self._told, now - self._waited)
        return self._told


def _waits(pid: int) -> Iterator[float]:
    """Seconds, of each thread; 0 alone where the system does not tell."""
    yield 0.0
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError, ValueError, IndexError):  # the thread has ended meanwhile
            yield int(file.read_text().split()[1]) / 1e9
