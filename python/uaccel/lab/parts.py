"""What a process of a worker does: a row as a whole, or that part of it which its computer can do."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from uaccel.cache import cache_of_user
from uaccel.errors import DeviceError, UaccelError
from uaccel.lab.row import Row
from uaccel.lab.work import FAILED, Result, result_of, work
from uaccel.running.request import RunRequest

WHOLE, BUILD, BOARD, JUDGE = "whole", "build", "board", "judge"
"""Whole where nothing but one computer is needed; the others for a board at a line."""


@dataclass(frozen=True)
class Job:
    """``row`` has this computer's paths; ``before`` is what the part before gave, or what was given besides the row;
    ``port``: where the board is."""

    kind: str
    digest: str
    row: Mapping[str, Any]
    before: Any = None
    port: str = ""


@dataclass(frozen=True)
class Part:
    """What one part hands to the next, and the seconds until then."""

    value: Any
    took: float


@dataclass(frozen=True)
class BoardFailed:
    """The board, or the line to it, failed; the row may do on another try."""

    error: str
    exit_status: int = DeviceError.exit_status


def act(job: Job) -> Any:
    """A result as JSON, a :class:`Part` or :class:`BoardFailed`."""
    if job.kind == WHOLE:
        return work((job.digest, job.row))
    row, begun = Row.from_json(job.row), time.monotonic()
    before = job.before.took if job.before is not None else 0.0
    if job.kind == JUDGE:
        result = _judged(job, row)
        return result | {"took": round(before + result["took"], 3)}
    try:
        value = _built(row) if job.kind == BUILD else _ran(job, row)
    except UaccelError as error:
        if job.kind == BOARD and isinstance(error, DeviceError):
            return BoardFailed(str(error), error.exit_status)
        failed = Result(job.digest, row, FAILED, error=str(error), exit_status=error.exit_status)
        return failed.to_json() | {"took": round(before + time.monotonic() - begun, 3)}
    return Part(value, before + time.monotonic() - begun)


def _built(row: Row) -> Any:
    from uaccel.running.apart import build_apart

    return build_apart(_at_line(row), cache_of_user())


def _ran(job: Job, row: Row) -> Any:
    from uaccel.running.apart import run_apart

    return run_apart(job.before.value, _at_line(row, job.port))


def _judged(job: Job, row: Row) -> dict[str, Any]:
    from uaccel.running.apart import judge_apart

    return result_of(job.digest, row, lambda: judge_apart(job.before.value, _at_line(row), cache_of_user()))


def _at_line(row: Row, port: str = "auto") -> RunRequest:
    """Its run at a port; which one it is there matters to the part that uses it alone."""
    request = row.request()
    return replace(request, wishes=replace(request.wishes, port=port))
