"""What ``uaccel sweep`` writes beside its results: JUnit XML and a Parquet table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uaccel.basics.files import require_writable

if TYPE_CHECKING:
    from uaccel.lab.expected import Behind
    from uaccel.lab.work import Result

JunitOption = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE.xml", help="Write JUnit XML for a CI server, a case per row.")
]
ParquetOption = Annotated[
    Path | None, typer.Option("--parquet", metavar="FILE.parquet", help="Write a table of all rows and figures.")
]
LabelOption = Annotated[
    str | None,
    typer.Option("--label", metavar="TEXT", help="What a history calls this sweep (the matrix file's git commit)."),
]


@dataclass(frozen=True)
class Files:
    """Those that are asked for; that they can be written is seen before the work begins."""

    junit: Path | None
    parquet: Path | None

    def require(self) -> None:
        """One line, where it will not work."""
        if self.junit is not None:
            require_writable(self.junit, "--junit")
        if self.parquet is not None:
            from uaccel.lab.parquet import pyarrow

            pyarrow()
            require_writable(self.parquet, "--parquet")

    def write(self, name: str, results: Sequence[Result], worse: Sequence[Behind]) -> None:
        """``name`` is the matrix's."""
        if self.junit is not None:
            from uaccel.lab.junit import write_junit

            write_junit(self.junit, name, results, worse)
        if self.parquet is not None:
            from uaccel.lab.parquet import write_parquet

            write_parquet(self.parquet, results)
