"""How far a batch of inferences is, and what it will take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

LONG: Final = 5.0
"""Seconds, from which on a batch says what it will take."""


class Told:
    """Says how far a batch is, and once what it will take where that is long."""

    def __init__(self, total: int, progress: Callable[[str], None], count: Callable[[int, int], None]) -> None:
        self._text = f"run {total} inference{'s' if total > 1 else ''}"
        self._total = total
        self._progress = progress
        self._count = count
        self._begun = 0.0

    def begin(self) -> None:
        """Now the first one runs."""
        self._progress(self._text)

    def done(self, done: int, _total: int, before: int = 0) -> None:
        """So many are done of those that this call is about; others were done ``before``."""
        done += before
        if not done:
            self._begun = time.monotonic()
        elif done == 1:
            whole = (time.monotonic() - self._begun) * self._total
            if whole > LONG:
                self._progress(f"{self._text}, about {whole:.0f} s")
        self._count(done, self._total)
