"""Judges a run as right or wrong, in numbers and in words, and looks for the wrong layer in a wrong region."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from uaccel.build.archive_reader import Metadata
from uaccel.codegen.archive import document
from uaccel.model import Array, ImportedModel
from uaccel.pipeline import Compiled, Progress
from uaccel.runner.compare import Comparison, Verdict
from uaccel.runner.compiled import ArchiveSubject, reference_of_archive, run_compiled
from uaccel.runner.data_sets import FOLDERS, DataSet
from uaccel.runner.differences import Allowance, allowance
from uaccel.runner.execute import Looks, RunResult
from uaccel.runner.job import Job
from uaccel.runner.onnx_runtime import computes_in_half
from uaccel.runner.real_meaning import real_opinion
from uaccel.runner.reference import Opinion, compared
from uaccel.runner.runtimes import ONNX_RUNTIME, ask, own_moves
from uaccel.runner.verify import (
    Computed,
    Reference,
    Samples,
    WrongLayer,
    changed_meaning,
    find_inside,
    first_wrong_layer,
    layers_verdict,
    verify,
)

# The verdict on a run on a board: numbers for the report, and one line that says what is wrong.

FAILED: Final = "verification failed"
LOOK: Final = "; --verify layers looks for the layer"
# Compiles with regions that end after the named layers, runs that, and gives the first wrong layer.
Again = Callable[[tuple[str, ...]], "WrongLayer | None"]


class CompiledSubject(ArchiveSubject):
    """Tells it of firmware that was compiled here, so that everything about it is known."""

    def __init__(self, compiled: Compiled, reference: Reference | None = None) -> None:
        told = {"meanings": reference_of_archive(compiled)}
        super().__init__(reference or Reference.of(compiled), Metadata(b"", document(compiled.generated, told)))
        self.compiled = compiled

    def first_wrong(self, samples: Samples, computed: Computed) -> WrongLayer | None:
        return first_wrong_layer(self.compiled, samples, computed, self.differences)

    def changed(self, samples: Samples) -> str:
        return changed_meaning(self.compiled, self.reference, samples, self.stated.tolerance)

    def unjudged(self) -> str:
        return ""


def judge(
    subject: ArchiveSubject, measured: RunResult, *, every_layer: bool = False, again: Again | None = None
) -> Verdict:
    """Judges a run, wherever it was. ``again`` finds the layer in a wrong region; without it the region is named.

    If all engines are exact, outputs and watched tensors must equal the model's meaning bit for bit. Otherwise watched
    tensors are not compared, and each layer is held to its own tolerance. The deviation of the outputs then is reported
    but is no fault, as small deviations add up on the way through the model and no bound for them is known. Only if the
    device showed no layers, the outputs are held to the largest tolerance of any engine.

    A wrong layer is the best complaint, as it says where the fault lies. Then comes a pass that changed the model, then
    the first output that is off. A sequence is not asked for passes: those are compared from the initial state.
    """
    exact, tolerance = subject.stated.exact, subject.stated.tolerance
    samples, computed, sequence = measured.samples, measured.computed, measured.run.sequence
    found = verify(
        subject.reference,
        samples,
        measured.outputs,
        tolerance=tolerance,
        sequence=sequence,
        watched=subject.watched if exact else None,
        computed=computed,
    )
    verdict = _told(found, samples)
    report, complaint = (
        verdict.report | {"not_compared": measured.unread or subject.unjudged() or None},
        verdict.complaint + LOOK if verdict.complaint and not every_layer else verdict.complaint,
    )
    if computed and (every_layer or not exact):
        wrong = subject.first_wrong(samples, computed)
        wrong = find_inside(wrong, again) if wrong is not None and again is not None else wrong
        report |= layers_verdict(len(computed[0]), wrong)
        if subject.differences:
            report["differences"] = [*report.get("differences", []), *subject.differences]
        if not exact:
            report["within_tolerance"], complaint = wrong is None, ""
        if wrong is not None:
            return Verdict(report, f"{FAILED}: the first wrong layer is {wrong}", wrong.sample)
    changed = "" if sequence else subject.changed(samples)
    return Verdict(report, f"{FAILED}: {changed}", 0) if changed else Verdict(report, complaint, verdict.sample)


def _told(found: Comparison, samples: Samples) -> Verdict:
    report = found.to_json() | {"samples": len(samples), "tensors": found.tensors}
    if found.beyond is None:
        return Verdict(report)
    return Verdict(report, f"{FAILED}: {found.beyond}", found.beyond.sample)


# What other references than the exact meaning say. Then the verdict rests on them as well.

EXACT: Final = "exact meaning"


def with_opinions(
    verdict: Verdict,
    model: ImportedModel,
    path: Path,
    samples: Samples,
    outputs: Samples,
    *,
    exact: bool = True,
    sequence: bool = False,
) -> Verdict:
    """Compares the outputs with each other reference there is. One that disagrees makes the verdict a failure.

    ``model`` is the model as it was imported, and ``path`` the file that the runtime of its format executes.
    ``exact``: no accelerator has an arithmetic of its own."""
    opinion, complaint, asked = runtime_opinion(model, path, samples, outputs, exact=exact, sequence=sequence)
    real = real_opinion(model, samples, outputs)
    report = asked | ({} if real is None else {"real_meaning": real.to_json()})
    return _also(verdict, report, opinion, complaint)


def _also(verdict: Verdict, report: dict[str, Any], opinion: Opinion | None, complaint: str) -> Verdict:
    """Adds to a verdict what another reference says; its ``complaint`` counts if there is none yet."""
    report = verdict.report | report
    if complaint and opinion is not None and opinion.first is not None and not verdict.complaint:
        report |= {"bit_exact": False, "first_difference": opinion.first.to_json()}
        return Verdict(report, f"{FAILED}: {complaint}", opinion.first.sample)
    return replace(verdict, report=report)


def verdict_on(
    subject: ArchiveSubject,
    path: Path,
    measured: RunResult,
    *,
    every_layer: bool = False,
    again: Again | None = None,
) -> Verdict:
    """Judges a run by the exact meaning and by each other reference there is; arguments as of those functions."""
    verdict, sequence = judge(subject, measured, every_layer=every_layer, again=again), measured.run.sequence
    asked = subject.reference.model, path, measured.samples, measured.outputs
    return with_opinions(verdict, *asked, exact=subject.stated.exact, sequence=sequence)


def runtime_opinion(
    model: ImportedModel, path: Path, samples: Samples, outputs: Samples, *, exact: bool = True, sequence: bool = False
) -> tuple[Opinion | None, str, dict[str, Any]]:
    """Compares with the runtime of the model's format.

    Outputs of an accelerator with an arithmetic of its own differ from it rightly. Then the exact meaning, by which its
    layers were judged, is compared with the runtime instead. Returns the comparison, in words where the runtime
    disagrees, and as JSON what the verdict rests on."""
    said, silent = ask(model, path, samples, continues=sequence)
    report: dict[str, Any] = {"against": [EXACT], "no_opinion": [silence.to_json() for silence in silent]}
    if said is None:
        return None, "", report
    outputs = outputs if exact else _meant(model, samples, sequence=sequence)
    allowed = allowance(model, said.runtime.name, half=said.half)
    name = f"{said.runtime.title} {said.version}"
    opinion = _compared(model, path, samples, outputs, name, said.outputs, allowed, sequence=sequence)
    report["against"].append(said.runtime.name)
    return opinion, opinion.complaint(allowed), report | {"runtime": opinion.to_json()}


def _compared(
    model: ImportedModel,
    path: Path,
    samples: Samples,
    outputs: Samples,
    name: str,
    wanted: Sequence[Sequence[Array] | None],
    allowed: Allowance,
    *,
    sequence: bool = False,
) -> Opinion:
    """Compares outputs with a reference's. Only where they are too far off, the runtime is asked how far it moves."""
    found = compared(model, name, outputs, wanted, allowed)
    if not allowed.measured or not found.complaint(allowed):
        return found
    return compared(model, name, outputs, wanted, allowed, own_moves(model, path, samples, continues=sequence))


def _meant(model: ImportedModel, samples: Samples, *, sequence: bool = False) -> list[list[Array]]:
    meaning = Reference(model)
    return [meaning.run(sample, continues=sequence and n > 0)[0] for n, sample in enumerate(samples)]


def with_data_sets(
    verdict: Verdict, subject: ArchiveSubject, path: Path, measured: RunResult, sets: Sequence[DataSet]
) -> Verdict:
    """Compares with the outputs that lie beside the model, which may differ from it as those of its runtime may."""
    if not sets:
        return verdict
    model = subject.reference.model
    outputs = measured.outputs if subject.stated.exact else _meant(model, measured.samples)
    again = len(measured.run.outputs) - 1  # the first one may run several times
    known = [*[sets[0].outputs] * again, *(one.outputs for one in sets)][: len(outputs)]
    used = [one.name for one in sets][: len(outputs) - again]
    allowed = allowance(model, ONNX_RUNTIME.name, half=computes_in_half(path))
    name = used[0] if len(used) == 1 else f"{FOLDERS}*"
    wanted = [*known, *[None] * (len(outputs) - len(known))]
    found = _compared(model, path, measured.samples, outputs, name, wanted, allowed)
    found.verb = "states"
    report = {"data_sets": {"folders": used} | (found.to_json() if any(known) else {})}
    return _also(verdict, report, found, found.complaint(allowed))


# Bisection of a wrong region: the model is compiled with its regions cut, run, and judged again.


def bisect_region(
    job: Job, cuts: tuple[str, ...], samples: list[list[Array]], progress: Progress, **how: Any
) -> WrongLayer | None:
    """Compiles and runs the model with regions that end after these layers, and returns the first wrong layer.

    ``how``: arguments of :class:`~uaccel.runner.execute.BoardBench`."""
    progress("cut the wrong region in two and run again")
    compiled = replace(job, wishes=replace(job.wishes, cuts=cuts)).compiled(progress)
    looks = Looks(samples[1:], read=range(len(compiled.program.layers)))
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        where = job.board, samples[:1], Path(folder) / "project", progress
        measured = run_compiled(compiled, *where, looks=looks, **how)
    return first_wrong_layer(compiled, samples, measured.computed)
