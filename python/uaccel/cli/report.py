"""Defines ``uaccel report``, which writes pages about runs and sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import typer

from uaccel.cli.command import given_of, group
from uaccel.cli.options import Cached, ModelOptions
from uaccel.cli.output import emit, progress, write_page
from uaccel.errors import InputError, VerificationError, need
from uaccel.frontend import SUFFIXES
from uaccel.frontend.bundle import stem
from uaccel.runner.options import ProjectRunOptions
from uaccel.runner.request import RunRequest
from uaccel.util.files import require_writable
from uaccel.util.option import argument, option

# Pages about one sweep, or about several in their order.

SUFFIX: Final = ".jsonl"


def is_sweep(subjects: Sequence[Path], quantized: Path | None) -> bool:
    """Says whether the subjects are results of sweeps; either all must be or none."""
    found = [subject.suffix == SUFFIX for subject in subjects]
    if any(found) and not all(found):
        other = subjects[found.index(False)]
        raise InputError(f"{other} is no sweep's results, and others given are; give {SUFFIX} files alone, or none")
    if any(found) and quantized is not None:
        raise InputError("--quantized is for the page of one run, and a sweep's results are given; leave it away")
    return all(found)


def write_sweep_page(subjects: Sequence[Path], target: Path, option: str) -> dict[str, Any]:
    """Writes the page, and returns what it shows."""
    from uaccel.report import page_of_results

    text, sweeps = page_of_results(subjects)
    write_page(target, text, option)
    told = [{"results": str(sweep.path), "label": sweep.label, "rows": len(sweep.rows)} for sweep in sweeps]
    return {"report": str(target), "bytes": target.stat().st_size, "sweeps": told}


# Pages about a run that is made now, or about runs that were stored.

OUTPUT = "-o"


class ReportCommand(ModelOptions, Cached):
    """Compile, run and verify a model and write a page about it; or a page about runs or sweeps that were stored."""

    context: typer.Context
    subjects: tuple[Path, ...] = argument(
        f"A model file ({SUFFIXES}), what 'run --json' wrote, or 'sweep': several are compared.",
        "MODEL|RUN.json|RESULTS.jsonl...",
    )
    output: Path | None = option(None, "The page (MODEL.html otherwise).", "-o", metavar="FILE.html")
    quantized: Path | None = option(
        None,
        "What 'quantize --json' wrote when it made this model: the page shows each layer's signal to noise.",
        metavar="Q.json",
    )
    frontier: bool = option(False, "Show what less RAM costs in time, too: every way to run the model by rows.")
    wishes: ProjectRunOptions = group(only=("inputs", "port"))

    def run(self) -> None:
        target = self.output or Path(f"{stem(self.subjects[0])}.html")
        require_writable(target, OUTPUT)
        sweep = is_sweep(self.subjects, self.quantized)
        if sweep or any(subject.suffix == ".json" for subject in self.subjects):
            self._refuse()
            of_sweep = sweep and write_sweep_page(self.subjects, target, OUTPUT)
            report = of_sweep or _of_stored(self.subjects, target, self.quantized)
            emit(report, self.as_json, lambda console: console.print(_words(report), soft_wrap=True))
            return
        model, *others = self.subjects
        if others:
            raise InputError(
                f"{others[0]}: of models one at a time; compare what 'run --json --details' writes of each"
            )
        _require(self.quantized, model)
        wishes = replace(self.wishes, verify="layers", details=True)
        self._of_model(self.request(model, wishes=wishes, beside=True), target)

    def _refuse(self) -> None:
        """Raises an error for options about running, since a stored run is over."""
        given = given_of(self.context, ("subjects", "output", "quantized", "json"))
        if given:
            raise InputError(f"{given[0]} is for a model, and a stored run is given; leave it away")

    def _of_model(self, request: RunRequest, target: Path) -> None:
        with progress() as step:
            from uaccel.runner.job import frontier_report
            from uaccel.runner.perform import perform

            ran = perform(request, step, self.cache)
            run = ran.report if not self.frontier else ran.report | {"frontier": frontier_report(request.what(), step)}
            step("write the page")
            from uaccel.report import page, with_quantised

            run = run if self.quantized is None else with_quantised(run, self.quantized)
            write_page(target, page([run]), OUTPUT)
        report = _told(target, [run])
        emit(report, self.as_json, lambda console: console.print(_words(report), soft_wrap=True))
        need(not ran.complaint, ran.complaint, VerificationError)


def _require(quantized: Path | None, model: Path) -> None:
    """Checks the quantiser's file before the run that it would be shown with."""
    if quantized is not None:
        from uaccel.report import require_quantised

        require_quantised(quantized, model)


def _of_stored(subjects: Sequence[Path], target: Path, quantized: Path | None) -> dict[str, Any]:
    from uaccel.report import page_of_files

    if quantized is not None and len(subjects) > 1:
        raise InputError("--quantized is for the page of one run, and several are compared; leave it away")
    text, runs = page_of_files(subjects, quantized)
    write_page(target, text, OUTPUT)
    return _told(target, [run.data for run in runs])


def _told(target: Path, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    models = [{"model": run["model"], "board": run["board"]} for run in runs]
    return {"report": str(target), "bytes": target.stat().st_size, "runs": models}


def _words(report: Mapping[str, Any]) -> str:
    return f"  Report    {report['report']}, {report['bytes']:,} bytes: open it in a browser"
