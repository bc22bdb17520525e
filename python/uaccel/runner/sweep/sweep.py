"""Runs the rows of a matrix: good results from before are taken over, the rest is worked on as workers are free."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from uaccel.runner.sweep.matrix import SweepRow
from uaccel.runner.sweep.options import PoolLimits
from uaccel.runner.sweep.pool import PoolOutcome, WorkerPool
from uaccel.runner.sweep.results import SweepResults
from uaccel.runner.sweep.row_result import FAILED, GOOD, RowResult, work_here
from uaccel.util.reads import still_true

Item = tuple[str, Mapping[str, Any]]


class SweepEngine(Protocol):
    """Works through items and gives an outcome for each, in the order in which they come."""

    def run(self, items: Sequence[Item]) -> Iterator[PoolOutcome]: ...


@dataclass(frozen=True)
class Swept:
    """Holds the results in the matrix's order; ``taken_over``: how many of them were there before."""

    results: tuple[RowResult, ...]
    taken_over: int


def processes() -> int:
    """Returns how many processes to start: one for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def local_pool(count: int, limits: PoolLimits) -> WorkerPool:
    """Makes a pool of processes on this computer, which use the user's cache."""
    return WorkerPool(work_here, count, limits)


def sweep(
    rows: Sequence[SweepRow],
    results: SweepResults,
    engine: SweepEngine,
    *,
    again: bool = False,
    label: str = "",
    told: Callable[[RowResult, int, int], None] = lambda result, done, total: None,
) -> Swept:
    """Returns every row's result. ``again`` also runs what the file has; new results get the ``label``; ``told`` hears
    of each result as it comes.

    A result is taken over if its digest, of all that it is known to depend on, is that of a row, if it was good, and if
    what was read for it would be found again. Rows with the same digest are run once. Each result is on the disk before
    the next one is waited for."""
    digests = [row.digest() for row in rows]
    stored = {} if again else {d: r for d, r in results.read().items() if r.status in GOOD and d in digests}
    before = {digest: result for digest, result in stored.items() if still_true(result.reads)}
    wanted: dict[str, SweepRow] = {d: row for d, row in zip(digests, rows, strict=True) if d not in before}
    found = dict(before)
    with results:
        for outcome in _outcomes(engine, wanted):
            result = replace(outcome, label=label)
            found[result.digest] = result
            results.add(result)
            told(result, len(found), len(set(digests)))
    return Swept(tuple(found[digest] for digest in dict.fromkeys(digests)), len(before))


def _outcomes(engine: SweepEngine, wanted: Mapping[str, SweepRow]) -> Iterable[RowResult]:
    items: list[Item] = [(digest, row.to_json()) for digest, row in wanted.items()]
    for outcome in engine.run(items):
        digest, _ = outcome.item
        if outcome.result is None:
            yield RowResult(digest, wanted[digest], FAILED, {}, outcome.failure, 1, outcome.log, outcome.attempts)
        else:
            yield _checked(outcome, digest, wanted[digest])


def _checked(outcome: PoolOutcome, digest: str, row: SweepRow) -> RowResult:
    """Returns the row's result. What a worker gives may be of any form, and of another row."""
    own = {"row": row.to_json(), "attempts": outcome.attempts, "label": ""}
    try:
        result = RowResult.from_json(outcome.result | own)
        if result.digest != digest:
            raise ValueError("it is of another row")
    except ValueError as error:
        return RowResult(digest, row, FAILED, {}, f"what came back is no result of it: {error}", 1)
    return result
