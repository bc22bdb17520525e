"""Adds to a verdict what other references than the exact meaning say, and what the verdict so rests on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from uaccel.model import ImportedModel
from uaccel.runner.compare import Verdict
from uaccel.runner.differences import allowance
from uaccel.runner.real_meaning import real_opinion
from uaccel.runner.reference import Opinion, Samples, compared
from uaccel.runner.runtimes import ask
from uaccel.runner.verdict import FAILED

EXACT: Final = "exact meaning"


def with_opinions(
    verdict: Verdict, model: ImportedModel, path: Path, samples: Samples, outputs: Samples, *, sequence: bool = False
) -> Verdict:
    """Compares the outputs with each other reference there is. One that disagrees makes the verdict a failure.

    ``model`` is the model as it was imported, and ``path`` the file that the runtime of its format executes."""
    opinion, complaint, asked = runtime_opinion(model, path, samples, outputs, sequence=sequence)
    real = real_opinion(model, samples, outputs)
    report = asked | ({} if real is None else {"real_meaning": real.to_json()})
    if complaint and opinion is not None and opinion.first is not None and not verdict.complaint:
        report |= {"bit_exact": False, "first_difference": opinion.first.to_json()}
        return Verdict(verdict.report | report, f"{FAILED}: {complaint}", opinion.first.sample)
    return replace(verdict, report=verdict.report | report)


def runtime_opinion(
    model: ImportedModel, path: Path, samples: Samples, outputs: Samples, *, sequence: bool = False
) -> tuple[Opinion | None, str, dict[str, Any]]:
    """Compares with the runtime of the model's format.

    Returns the comparison, in words where the runtime disagrees, and as JSON what the verdict rests on."""
    said, silent = ask(model, path, samples, continues=sequence)
    report: dict[str, Any] = {"against": [EXACT], "no_opinion": [silence.to_json() for silence in silent]}
    if said is None:
        return None, "", report
    allowed = allowance(model, said.runtime.name, half=said.half)
    opinion = compared(model, f"{said.runtime.title} {said.version}", outputs, said.outputs, allowed)
    report["against"].append(said.runtime.name)
    return opinion, opinion.complaint(allowed), report | {"runtime": opinion.to_json()}
