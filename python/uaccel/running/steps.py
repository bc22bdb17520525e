"""Who is told how far a run is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from uaccel.session.session import LogLine


class Steps(Protocol):
    """Called with each step as it begins."""

    def __call__(self, description: str) -> None: ...
    def count(self, done: int, total: int) -> None:
        """So many parts of the step are done, of how many."""

    def log(self, line: LogLine) -> None:
        """The device's log says something."""


class Quiet:
    """Tells nobody."""

    def __call__(self, description: str) -> None:
        pass

    def count(self, done: int, total: int) -> None:
        pass

    def log(self, line: LogLine) -> None:
        pass
