"""``uaccel run --trace FILE``: when the CPU and the engines of accelerators worked, for Perfetto."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from uaccel.basics.files import write_atomically
from uaccel.session.timeline import Job, Recorder

if TYPE_CHECKING:
    from uaccel.session.records import LayerTime
    from uaccel.telling.report import Accounted, Facts

OPTION = "--trace"
TraceOption = Annotated[
    Path | None,
    typer.Option(
        OPTION, metavar="FILE.json", help="Write when the CPU and the accelerators' engines worked, for Perfetto."
    ),
]


@contextlib.contextmanager
def recorded(path: Path | None) -> Iterator[list[Job]]:
    """What device models tell until the end of the block, where a trace is wanted; the list is filled then."""
    jobs: list[Job] = []
    if path is None:
        yield jobs
        return
    with Recorder() as recorder:
        yield jobs
    jobs += recorder.jobs


def write_trace(
    path: Path,
    title: str,
    layers: Sequence[Facts],
    times: Sequence[LayerTime],
    accounts: Mapping[int, Accounted],
    jobs: Sequence[Job],
) -> None:
    from uaccel.telling.trace import trace_of

    document = trace_of(title, layers, {time.layer: time for time in times}, accounts, jobs)

    def write(stream: IO[bytes]) -> None:
        stream.write((json.dumps(document, indent=1) + "\n").encode())

    write_atomically(path, write, OPTION)
