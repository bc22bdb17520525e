"""Firmwares to measure, and who does it: this process one after the other, or several processes at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol

from uaccel.board import Board
from uaccel.cache import Cache
from uaccel.errors import DeviceError, InternalError, UaccelError, VerificationError
from uaccel.lab.pool import Pool
from uaccel.running.firmware import Firmware
from uaccel.running.taken import Progress, Taken, emulated, measure

_BY_STATUS: Final[dict[int, type[UaccelError]]] = {
    kind.exit_status: kind for kind in (VerificationError, DeviceError, InternalError)
}


@dataclass(frozen=True)
class Candidate:
    """``number`` is the caller's; ``progress`` is told what this process does."""

    number: int
    firmware: Firmware
    board: Board
    port: str
    cache: Cache | None
    progress: Progress


class Workers(Protocol):
    """``exact``: what they measure does not depend on what else the computer does, and so may be kept."""

    exact: bool

    def run(self, candidates: Iterator[Candidate], until: float | None) -> Iterator[tuple[int, Taken]]:
        """By number, as they come; the next candidate is asked for when somebody is free. What is not measured by
        then, on the monotonic clock, is left out."""
        ...

    def __enter__(self) -> Workers: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def workers(board: Board, port: str, jobs: int) -> Workers:
    """Several for an emulated board. A real one is one user's at a time, and a time that was measured beside other
    work is no time."""
    exact = emulated(board, port)
    return _Several(jobs) if exact and jobs > 1 else _OneByOne(exact)


class _OneByOne:
    def __init__(self, exact: bool) -> None:
        self.exact = exact

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def run(self, candidates: Iterator[Candidate], until: float | None) -> Iterator[tuple[int, Taken]]:
        while until is None or time.monotonic() < until:
            one = next(candidates, None)
            if one is None:
                return
            yield one.number, measure(one.firmware, one.board, one.progress, one.port, one.cache)


class _Several:
    exact = True

    def __init__(self, jobs: int) -> None:
        self._pool = Pool(_work, jobs)

    def __enter__(self) -> Workers:
        self._pool.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.__exit__(kind, error, trace)

    def run(self, candidates: Iterator[Candidate], until: float | None) -> Iterator[tuple[int, Taken]]:
        for outcome in self._pool.run(map(_item, candidates), until):
            if outcome.failure:
                raise UaccelError(f"measuring failed: {outcome.failure}; {_last_line(outcome.log)}")
            if "error" in outcome.result:
                told = outcome.result
                raise _BY_STATUS.get(told["exit_status"], UaccelError)(told["error"])
            yield outcome.item[0], Taken.from_json(outcome.result["taken"])


def _item(one: Candidate) -> tuple[Any, ...]:
    """As plain data."""
    one.progress("build and measure")
    return one.number, one.firmware.to_json(), dict(one.firmware.files()), one.board, one.port, one.cache


def _work(item: tuple[Any, ...]) -> dict[str, Any]:
    """In a process of its own, without a compiler of models."""
    _, data, files, board, port, cache = item
    firmware = Firmware.from_json(data, lambda: files)
    try:
        return {"taken": measure(firmware, board, lambda _step: None, port, cache).to_json()}
    except UaccelError as error:
        return {"error": str(error), "exit_status": error.exit_status}


def _last_line(log: str) -> str:
    lines = log.strip().splitlines()
    return f"its last words: {lines[-1]}" if lines else "it said nothing; try it with --jobs 1"
