"""Defines ``uaccel sweep``, which runs a matrix of models, boards, accelerators and options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uaccel.cli.command import Command, group
from uaccel.cli.output import ShownSteps, emit, new_table, progress, say, show_lines
from uaccel.errors import InputError, UaccelError, VerificationError
from uaccel.runner.sweep.options import LabOptions, PoolLimits
from uaccel.util.files import require_writable
from uaccel.util.option import argument, option
from uaccel.util.text import named

# Files besides the results: JUnit XML and a Parquet table.

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.runner.sweep.matrix import SweepMatrix, SweepRow
    from uaccel.runner.sweep.results import Regression, Stored
    from uaccel.runner.sweep.row_result import RowResult
    from uaccel.runner.sweep.sweep import SweepEngine, Swept


@dataclass(frozen=True)
class Files:
    """Writes the further files that are asked for; checks before the work that they can be written."""

    PANEL = "What is told"
    junit: Path | None = option(None, "Write JUnit XML for a CI server, a case per row.", metavar="FILE.xml")
    parquet: Path | None = option(None, "Write a table of all rows and figures.", metavar="FILE.parquet")

    def require(self) -> None:
        """Raises an error if a file cannot be written, or a package for it is missing."""
        if self.junit is not None:
            require_writable(self.junit, "--junit")
        if self.parquet is not None:
            from uaccel.runner.sweep.results import pyarrow

            pyarrow()
            require_writable(self.parquet, "--parquet")

    def write(self, name: str, results: Sequence[RowResult], worse: Sequence[Regression]) -> None:
        """Writes the files; ``name`` is that of the matrix."""
        if self.junit is not None:
            from uaccel.runner.sweep.results import write_junit

            write_junit(self.junit, name, results, worse)
        if self.parquet is not None:
            from uaccel.runner.sweep.results import write_parquet

            write_parquet(self.parquet, results)


# The command: rows on all cores of this computer or on workers, and figures that must not get worse.

MOST_TOLD = 20


class SweepCommand(Command):
    """Run every row of a matrix file, on all cores or in a lab, and hold its figures to those that are stored.

    A sweep that was interrupted goes on where it was.
    """

    matrix: Path = argument("What to run: models, boards, accelerators.", "MATRIX.toml")
    output: Path | None = option(None, "Where results go; what it has is not run again.", "-o", metavar="RESULTS.jsonl")
    jobs: int | None = option(None, "So many at once (one for each core).", "-j", metavar="N", least=1)
    again: bool = option(False, "Run also what the results have already.")
    accept: bool = option(False, "Store these figures as those that must hold from now on.")
    label: str | None = option(None, "What a history calls this sweep (the matrix file's git commit).", metavar="TEXT")
    limits: PoolLimits = group()
    lab: LabOptions = group()
    files: Files = group()

    def run(self) -> None:
        from uaccel.runner.sweep.matrix import read_matrix
        from uaccel.runner.sweep.results import read_expected
        from uaccel.runner.sweep.row_result import commit_of

        matrix = self.matrix
        wanted = read_matrix(matrix)
        target = self.output or matrix.with_suffix(".jsonl")
        require_writable(target, "-o")
        self.files.require()
        stored = read_expected(wanted.expected)
        if self.accept and not wanted.figures:
            raise InputError(f"{matrix} has no [figures], so that --accept would store nothing; say which must hold")
        rows = _rows(wanted)
        engine = self._engine(len(rows))
        named = commit_of(matrix.parent) if self.label is None else self.label
        with progress() as step:
            swept = _swept(rows, target, engine, self.again, step, named)
        worse = _behind(wanted, swept, stored, self.accept)
        self.files.write(matrix.stem, swept.results, worse)
        report = _report(wanted, target, swept, worse)
        emit(report, self.as_json, lambda console: _show(console, report))
        _complain(swept.results, worse, target)

    def _engine(self, rows: int) -> _Engine:
        """Returns the processes of this computer, or the workers of a lab."""
        from uaccel.runner.sweep.sweep import local_pool, processes

        lab, limits, count = self.lab, self.limits, min(self.jobs or processes(), rows)
        if lab.scheduler is None:
            return _Engine(lambda: local_pool(count, limits), f"{count} at once")
        from uaccel.runner.sweep.farm import Farm
        from uaccel.runner.sweep.scheduler import exposure, keys_for

        address, keys = lab.scheduler, keys_for(lab.scheduler, lab.tls)
        if self.jobs is not None:
            raise InputError("-j is for the cores of this computer; with --scheduler each worker says how many it has")
        if exposed := exposure(address):
            say(exposed)
        return _Engine(lambda: Farm(address, limits, keys, lab.wait), f"by the workers of {address}")


def _behind(wanted: SweepMatrix, swept: Swept, stored: Stored, accept: bool) -> list[Regression]:
    """Finds figures that fell behind the stored ones; if they are accepted, they are stored, so that none is behind."""
    from uaccel.runner.sweep.results import behind, write_expected

    if not accept:
        return behind(swept.results, wanted.figures, stored)
    write_expected(wanted.expected, swept.results, wanted.figures)
    return []


def _rows(wanted: SweepMatrix) -> list[SweepRow]:
    from uaccel.runner.sweep.matrix import all_rows

    rows = all_rows(wanted)
    title, count = Counter(row.title for row in rows).most_common(1)[0]
    if count > 1:
        raise InputError(f"{wanted.path}: {count} rows are called '{title}'; rename a model, or give one a name")
    return rows


@dataclass(frozen=True)
class _Engine:
    """Opens the workers of a sweep; ``place`` says in words where rows are run."""

    open: Callable[[], AbstractContextManager[SweepEngine]]
    place: str


def _swept(rows: list[SweepRow], target: Path, engine: _Engine, again: bool, step: ShownSteps, label: str) -> Swept:
    from uaccel.runner.sweep.results import SweepResults
    from uaccel.runner.sweep.row_result import GOOD
    from uaccel.runner.sweep.sweep import sweep

    def told(result: RowResult, done: int, total: int) -> None:
        if result.status not in GOOD:
            say(f"{result.status}: {result.row.title}: {result.error}")
        step.count(done, total)

    step(f"run {len(rows)} row{'s' if len(rows) > 1 else ''}, {engine.place}")
    with engine.open() as workers:
        return sweep(rows, SweepResults(target), workers, again=again, label=label, told=told)


def _report(wanted: SweepMatrix, target: Path, swept: Swept, worse: Sequence[Regression]) -> dict[str, Any]:
    counts = Counter(result.status for result in swept.results)
    return {
        "matrix": str(wanted.path),
        "results": str(target),
        "rows": len(swept.results),
        "taken_over": swept.taken_over,
        "counts": dict(counts),
        "behind": list(map(asdict, worse)),
        "expected": str(wanted.expected),
        "list": [
            {
                "title": result.row.title,
                **named(result, "status", "figures", "error", "exit_status", "took"),
            }
            for result in swept.results
        ],
    }


def _complain(results: Sequence[RowResult], worse: Sequence[Regression], target: Path) -> None:
    """Raises an error for the worst that happened: wrong rows, then failed ones, then figures that fell behind."""
    from uaccel.runner.sweep.row_result import FAILED, WRONG

    wrong = [result for result in results if result.status == WRONG]
    failed = [result for result in results if result.status == FAILED]
    if wrong:
        raise VerificationError(
            f"{len(wrong)} of {len(results)} rows are wrong, {wrong[0].row.title} first; see {target}"
        )
    if failed:
        one = f"{failed[0].row.title}: {failed[0].error}"
        raise UaccelError(f"{len(failed)} of {len(results)} rows failed, first {one}")
    if worse:
        count = f"{len(worse)} figure{'s' if len(worse) > 1 else ''}"
        raise UaccelError(f"{count} fell behind, first {worse[0]}; --accept stores them if they shall be so")


# What a row's time is shown by: the first that any row has.
_TIMES: Final = {
    "latency.cycles": "Cycles",
    "accelerator_cycles": "Cycles of accelerators",
    "instructions": "Instructions",
}


def _show(console: Console, report: dict[str, Any]) -> None:
    rows = report["list"]
    time = next((name for name in _TIMES if any(name in row["figures"] for row in rows)), "instructions")
    table = new_table("~Row", "~Result", f">{_TIMES[time]}", ">RAM, bytes", ">Flash, bytes", ">Took, s")
    for row in rows:
        figures = row["figures"]
        shown = [figures.get(name) for name in (time, "ram.total", "flash.total")]
        cells = [f"{value:,.0f}" if value else "" for value in shown]
        table.add_row(row["title"], row["status"], *cells, f"{row['took']:.1f}")
    console.print(table)
    counts = ", ".join(f"{count} {status}" for status, count in sorted(report["counts"].items()))
    before = f", {report['taken_over']} of them from before" if report["taken_over"] else ""
    lines = [("Rows", f"{report['rows']}: {counts}{before}"), ("Results", report["results"])]
    worse = report["behind"][:MOST_TOLD]
    words = [f"{one['title']}: {one['figure']} {one['stored']:,.10g} -> {one['now']:,.10g}" for one in worse]
    show_lines(console, [*lines, *(("Behind", told) for told in words)])
