"""When commands run: three engines side by side, each with its commands in their order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

ENGINES: Final = ("load", "compute", "store")
"""In the order in which data pass them; neighbours give each other tokens."""


class Span(NamedTuple):
    begin: int
    end: int


@dataclass(frozen=True)
class Timeline:
    """``spans`` by command; ``busy`` by engine, of ``total`` cycles."""

    spans: tuple[Span, ...]
    total: int
    busy: dict[str, int]

    @property
    def commands(self) -> int:
        """How many there are."""
        return len(self.spans)


@dataclass
class Engines:
    """Takes commands one after the other. ``free``: from when on an engine can begin the next."""

    spans: list[Span] = field(default_factory=list)
    free: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENGINES, 0))
    busy: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENGINES, 0))

    def run(self, engine: str, cycles: int, awaited: Iterable[int]) -> Span:
        """A command that waits for its engine, and until all of ``awaited``."""
        begin = max([self.free[engine], *awaited])
        span = Span(begin, begin + cycles)
        self.free[engine] = span.end
        self.busy[engine] += cycles
        self.spans.append(span)
        return span

    @property
    def timeline(self) -> Timeline:
        return Timeline(tuple(self.spans), max(self.free.values()), self.busy)
