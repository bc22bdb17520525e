"""``uaccel run --trace FILE``: when the CPU and the engines of accelerators worked, for Perfetto."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from uaccel.basics.files import write_atomically
from uaccel.session.timeline import Job, Recorder

OPTION = "--trace"
TraceOption = Annotated[
    Path | None,
    typer.Option(
        OPTION, metavar="FILE.json", help="Write when the CPU and the accelerators' engines worked, for Perfetto."
    ),
]


@contextlib.contextmanager
def recorded(wanted: bool) -> Iterator[list[Job]]:
    """What device models tell until the end of the block, where that is wanted; the list is filled then."""
    jobs: list[Job] = []
    if not wanted:
        yield jobs
        return
    with Recorder() as recorder:
        yield jobs
    jobs += recorder.jobs


def write_trace(path: Path, document: Mapping[str, Any]) -> None:
    def write(stream: IO[bytes]) -> None:
        stream.write((json.dumps(document, indent=1) + "\n").encode())

    write_atomically(path, write, OPTION)
