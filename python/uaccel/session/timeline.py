"""When the engines of accelerators' device models worked: what the models tell while a session runs."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

VARIABLE: Final = "UACCEL_DEVICE_TIMELINE"
"""Names the file; processes and emulators that are started hand it on to the models."""


@dataclass(frozen=True)
class Span:
    """One command on an engine, in cycles since the device's reset."""

    engine: str
    command: int
    begin: int
    end: int


@dataclass(frozen=True)
class Job:
    """What one start of a device set off; ``spans`` is empty where the model does not tell them."""

    device: str
    begin: int
    end: int
    spans: tuple[Span, ...]

    @property
    def cycles(self) -> int:
        return self.end - self.begin


class Recorder:
    """While it is entered, device models that are started write down what they do; then ``jobs`` holds it."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self._before: str | None = None
        self._file = Path()

    def __enter__(self) -> Recorder:
        number, name = tempfile.mkstemp(prefix="uaccel-", suffix=".timeline")
        os.close(number)
        self._file = Path(name)
        self._before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = name
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = self._before
        self.jobs = read_jobs(self._file.read_text().splitlines())
        self._file.unlink()


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


def read_jobs(lines: list[str]) -> list[Job]:
    """In the order in which they were started."""
    jobs: list[Job] = []
    spans: dict[str, list[Span]] = {}
    for line in lines:
        device, what, *rest = line.split()
        if what == "span":
            command, begin, end = map(int, rest[1:])
            spans.setdefault(device, []).append(Span(rest[0], command, begin, end))
        else:
            begin, end = map(int, rest)
            jobs.append(Job(device, begin, end, tuple(spans.pop(device, ()))))
    return jobs
