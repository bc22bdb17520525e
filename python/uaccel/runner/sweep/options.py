"""Holds the options about what a run may take, and about the scheduler whose workers do it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from uaccel.util.option import option, read_size


@dataclass(frozen=True)
class PoolLimits:
    """Limits one item: seconds, bytes of memory of its process, bytes of a file that it writes; None is no limit."""

    PANEL = "What a run may take"
    seconds: float | None = option(
        None, "What one run may take, with its build.", "--limit-seconds", metavar="N", least=1
    )
    memory: int | None = option(
        None, "What the process of one run may take, as 2G.", "--limit-memory", metavar="SIZE", read=read_size
    )
    output: int | None = None

    def within(self, other: PoolLimits) -> PoolLimits:
        """Returns the smaller one of each limit."""
        pairs = {one.name: (getattr(self, one.name), getattr(other, one.name)) for one in fields(self)}
        return PoolLimits(
            **{name: min((v for v in pair if v is not None), default=None) for name, pair in pairs.items()}
        )


@dataclass(frozen=True)
class LabOptions:
    """Says which scheduler has the workers, how long rows wait for one, and how to speak with it."""

    PANEL = "In a lab"
    scheduler: str | None = option(
        None, "Run on the workers of this Dask scheduler (tcp://HOST:8786).", metavar="ADDRESS"
    )
    wait: float = option(60.0, "How long rows wait for a worker that can run them.", metavar="SECONDS", least=1)
    tls: Path | None = option(
        None,
        "For tls://: one's own certificate, its key, and the certificate of who signs, in this order in PEM.",
        metavar="FILE.pem",
    )
