"""Right or wrong, in words, and into a wrong region."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from uaccel.model import Array
from uaccel.pipeline import Compiled, Progress
from uaccel.runner.compare import Comparison, Verdict
from uaccel.runner.compiled import run_compiled
from uaccel.runner.execute import Looks, RunResult
from uaccel.runner.job import Job
from uaccel.runner.verify import (
    Computed,
    ObservedLayers,
    Reference,
    Samples,
    WrongLayer,
    before_what_hides,
    changed_meaning,
    find_inside,
    first_wrong_layer,
    is_exact,
    layers_verdict,
    tolerance_of,
    verify,
)

# What verification says of a run on a board: the numbers, and in words what is wrong.

FAILED: Final = "verification failed"
# Compiles with regions that end after the named layers, runs that, and gives the first wrong layer.
Again = Callable[[tuple[str, ...]], "WrongLayer | None"]


class Subject(Protocol):
    """What verification must know of firmware: of one that was compiled here, or of which the archive alone is known.

    ``tolerance``: what any of the engines that compute something may differ by. ``first_wrong``: by what each layer
    really got. ``changed``: in words, where a pass makes another model of it. ``unjudged``: in words, what cannot be
    compared whatever the device shows. ``differences``: how far layers are off, after ``first_wrong``.
    """

    @property
    def reference(self) -> Reference: ...
    @property
    def exact(self) -> bool: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def watched(self) -> ObservedLayers: ...
    @property
    def differences(self) -> list[dict[str, Any]]: ...
    def first_wrong(self, samples: Samples, computed: Computed) -> WrongLayer | None: ...
    def changed(self, samples: Samples) -> str: ...
    def unjudged(self) -> str: ...


class CompiledSubject:
    """Firmware that was compiled here."""

    def __init__(self, compiled: Compiled, reference: Reference | None = None) -> None:
        self.compiled = compiled
        self.reference = reference or Reference.of(compiled)
        self.differences: list[dict[str, Any]] = []

    @property
    def exact(self) -> bool:
        return is_exact(self.compiled)

    @property
    def tolerance(self) -> float:
        return largest_tolerance(self.compiled)

    @property
    def watched(self) -> ObservedLayers:
        return before_what_hides(self.compiled)

    def first_wrong(self, samples: Samples, computed: Computed) -> WrongLayer | None:
        return first_wrong_layer(self.compiled, samples, computed, self.differences)

    def changed(self, samples: Samples) -> str:
        return changed_meaning(self.compiled, self.reference, samples, self.tolerance)

    def unjudged(self) -> str:
        return ""


def layers_to_read(compiled: Compiled, *, every_layer: bool) -> Sequence[int]:
    """Those before what hides differences; all of them where layers are asked for, or must be judged one by one
    because an accelerator does not claim the model's own arithmetic."""
    if every_layer or not is_exact(compiled):
        return range(len(compiled.program.layers))
    return before_what_hides(compiled).layers


def judge(compiled: Compiled, measured: RunResult, *, every_layer: bool = False, again: Again | None = None) -> Verdict:
    """``again`` finds the layer in a wrong region; without it the region is named."""
    return judge_values(
        CompiledSubject(compiled),
        measured.samples,
        measured.outputs,
        measured.computed,
        sequence=measured.run.sequence,
        every_layer=every_layer,
        again=again,
        unread=measured.unread,
    )


def judge_values(
    subject: Subject,
    samples: Samples,
    outputs: Samples,
    computed: Computed,
    *,
    sequence: bool = False,
    every_layer: bool = False,
    again: Again | None = None,
    unread: str = "",
) -> Verdict:
    """The same of values, wherever they come from. ``unread``: why the device showed no layers that were wanted."""
    exact, watched = subject.exact, subject.watched if subject.exact else None
    found = verify(
        subject.reference,
        samples,
        outputs,
        tolerance=subject.tolerance,
        sequence=sequence,
        watched=watched,
        computed=computed,
    )
    verdict = _told(found, samples)
    report, complaint = verdict.report | {"not_compared": unread or subject.unjudged() or None}, verdict.complaint
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


def largest_tolerance(compiled: Compiled) -> float:
    """What any of the engines that compute something may differ by."""
    return max(map(tolerance_of, compiled.partitioned.calls.values()), default=0.0)


def _told(found: Comparison, samples: Samples) -> Verdict:
    report = found.to_json() | {"samples": len(samples), "tensors": found.tensors}
    if found.beyond is None:
        return Verdict(report)
    return Verdict(report, f"{FAILED}: {found.beyond}", found.beyond.sample)


# Into a wrong region: the model with its regions cut, compiled, run, and judged again.


def bisect_region(
    job: Job, cuts: tuple[str, ...], samples: list[list[Array]], progress: Progress, *, port: str, flashes: bool
) -> WrongLayer | None:
    """The first wrong layer where regions end after these layers."""
    progress("cut the wrong region in two and run again")
    compiled = replace(job, wishes=replace(job.wishes, cuts=cuts)).compiled(progress)
    looks = Looks(samples[1:], read=range(len(compiled.program.layers)))
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        project = Path(folder) / "project"
        measured = run_compiled(
            compiled, job.board, samples[:1], project, progress, looks=looks, port=port, flashes=flashes
        )
    return first_wrong_layer(compiled, samples, measured.computed)
