"""What verification says of a run on a board: the numbers, and in words what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from uaccel.model import ImportedModel
from uaccel.pipeline import Compiled
from uaccel.running.compare import Comparison
from uaccel.running.execute import Measured
from uaccel.running.layers import WrongLayer, layers_verdict, tolerance_of
from uaccel.running.verify import (
    Computed,
    Reference,
    Samples,
    before_what_hides,
    changed_meaning,
    find_inside,
    first_wrong_layer,
    is_exact,
    verify,
)

FAILED: Final = "verification failed"
Again = Callable[[tuple[str, ...]], "WrongLayer | None"]
"""Compiles with regions that end after the named layers, runs that, and gives the first wrong layer."""


@dataclass(frozen=True)
class Verdict:
    """``complaint`` is what is wrong, in words; empty where nothing is."""

    report: dict[str, Any]
    complaint: str = ""
    sample: int = 0
    """The one that the complaint is about."""


def layers_to_read(compiled: Compiled, *, every_layer: bool) -> Sequence[int]:
    """Those before what hides differences; all of them where layers are asked for, or must be judged one by one
    because an accelerator does not claim the model's own arithmetic."""
    if every_layer or not is_exact(compiled):
        return range(len(compiled.program.layers))
    return before_what_hides(compiled).layers


def judge(compiled: Compiled, measured: Measured, *, every_layer: bool = False, again: Again | None = None) -> Verdict:
    """``again`` finds the layer in a wrong region; without it the region is named."""
    return judge_values(
        compiled,
        Reference.of(compiled),
        measured.samples,
        measured.outputs,
        measured.computed,
        sequence=measured.run.sequence,
        every_layer=every_layer,
        again=again,
    )


def judge_values(
    compiled: Compiled,
    reference: Reference,
    samples: Samples,
    outputs: Samples,
    computed: Computed,
    *,
    sequence: bool = False,
    every_layer: bool = False,
    again: Again | None = None,
) -> Verdict:
    """The same of values, wherever they come from."""
    exact, tolerance = is_exact(compiled), largest_tolerance(compiled)
    watched = before_what_hides(compiled) if exact else None
    found = verify(
        reference, samples, outputs, tolerance=tolerance, sequence=sequence, watched=watched, computed=computed
    )
    verdict = _told(found, samples)
    report, complaint = verdict.report, verdict.complaint
    if computed and (every_layer or not exact):
        wrong = first_wrong_layer(compiled, samples, computed)
        wrong = find_inside(wrong, again) if wrong is not None and again is not None else wrong
        report |= layers_verdict(len(computed[0]), wrong)
        if not exact:
            report["within_tolerance"], complaint = wrong is None, ""
        if wrong is not None:
            return Verdict(report, f"{FAILED}: the first wrong layer is {wrong}", wrong.sample)
    changed = "" if sequence else changed_meaning(compiled, reference, samples, tolerance)
    return Verdict(report, f"{FAILED}: {changed}", 0) if changed else replace(verdict, complaint=complaint)


def largest_tolerance(compiled: Compiled) -> float:
    """What any of the engines that compute something may differ by."""
    return max(map(tolerance_of, compiled.partitioned.calls.values()), default=0.0)


def judge_outputs(
    model: ImportedModel, samples: Samples, outputs: Samples, tolerance: float, *, sequence: bool
) -> Verdict:
    """The same for firmware of which only the model is known."""
    return _told(verify(Reference(model), samples, outputs, tolerance=tolerance, sequence=sequence), samples)


def _told(found: Comparison, samples: Samples) -> Verdict:
    report = found.to_json() | {"samples": len(samples), "tensors": found.tensors}
    if found.beyond is None:
        return Verdict(report)
    return Verdict(report, f"{FAILED}: {found.beyond}", found.beyond.sample)
