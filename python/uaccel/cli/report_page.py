"""``uaccel run --report FILE`` and ``uaccel report``: the page, written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Annotated, Any

import typer

from uaccel.basics.files import write_atomically

REPORT = "--report"
ReportOption = Annotated[
    Path | None, typer.Option(REPORT, metavar="FILE.html", help="Write a page that shows the run, for any browser.")
]


def write_page(path: Path, text: str, option: str = REPORT) -> None:
    def write(stream: IO[bytes]) -> None:
        stream.write(text.encode("utf-8", "replace"))

    write_atomically(path, write, option)


def write_page_where(path: Path | None, report: dict[str, Any]) -> None:
    """Of one run, where a page is asked for."""
    if path is not None:
        from uaccel.report import page

        write_page(path, page([report]))
