"""Repeated blocks of a network: runs of steps that come again right behind themselves, alike in all that is shown."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

LONGEST = 64
"""Steps of a block."""
FEWEST = 4
"""Steps that must vanish into a fold."""


@dataclass(frozen=True)
class Fold:
    """``times`` blocks of ``period`` steps from step ``first`` on."""

    first: int
    period: int
    times: int

    @property
    def end(self) -> int:
        return self.first + self.period * self.times


def folds(signatures: Sequence[Hashable]) -> list[Fold]:
    """Those that do not overlap; at each place the one that covers most, of equal ones that with the shortest block."""
    found: list[Fold] = []
    at = 0
    while at < len(signatures):
        best = _best(signatures, at)
        if best is None:
            at += 1
        else:
            found.append(best)
            at = best.end
    return found


def _best(signatures: Sequence[Hashable], at: int) -> Fold | None:
    best: Fold | None = None
    for period in range(1, min(LONGEST, (len(signatures) - at) // 2) + 1):
        times = 1
        block = signatures[at : at + period]
        while signatures[at + times * period : at + (times + 1) * period] == block:
            times += 1
        covered = period * times
        if times > 1 and covered >= FEWEST and (best is None or covered > best.end - best.first):
            best = Fold(at, period, times)
    return best
