"""What the CPU computes though accelerators were asked: why, and what it would save if one took it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from uaccel.basics.words import CPU
from uaccel.report.run import Run, Step
from uaccel.report.section import DETAILS, Section
from uaccel.report.words import count, percent


@dataclass(frozen=True)
class Refusal:
    """``cost`` is what the CPU takes, ``saves`` at most what is left of it where the accelerator computed the layer."""

    step: Step
    accelerator: str
    reason: str
    cost: float
    saves: float


def section(run: Run) -> Section:
    asked = run.data.get("accelerators") or ()
    title = "Not offloaded"
    if not asked:
        return Section("offload", title, missing="No accelerator was asked; --accelerator NAME asks one.")
    if "decisions" not in run.data:
        return Section("offload", title, missing=f"This result does not hold why; {DETAILS}.")
    refusals = sorted(refusals_of(run), key=lambda refusal: -refusal.saves)
    if not refusals:
        return Section("offload", title, missing="Nothing was refused: accelerators compute every layer.")
    context = {
        "rows": [_row(run, refusal) for refusal in refusals],
        "reasons": _reasons(run, refusals),
        "unit": run.unit or "products",
        "whole": run.total,
    }
    return Section("offload", title, "offload.html", context)


def refusals_of(run: Run) -> Iterator[Refusal]:
    """One for each layer of the CPU and each accelerator that does not take it: its last word."""
    for step in run.steps:
        if step.engine != CPU or step.facts.get("view"):
            continue
        decision = run.decisions.get(step.name, {})
        reasons: dict[str, str] = {}
        for rejection in decision.get("rejections", ()):
            known = reasons.get(rejection["accelerator"], "")
            new = rejection["reason"]
            reasons[rejection["accelerator"]] = f"{known}; {new}" if known and new not in known else known or new
        cost = step.cost if run.total else float(step.macs)
        for accelerator, reason in reasons.items():
            yield Refusal(step, accelerator, reason, cost, max(0.0, cost - _least(run, step, accelerator)))


def _least(run: Run, step: Step, accelerator: str) -> float:
    """What the accelerator would take at best, as far as its description says; 0 where it does not."""
    if run.unit not in ("cycles", "instructions"):
        return 0.0
    engine: dict[str, Any] = next((e for e in run.data.get("engines", ()) if e["name"] == accelerator), {})
    products, bandwidth = engine.get("macs_per_cycle"), engine.get("bytes_per_cycle")
    moved = sum(run.values.get(name, {}).get("bytes") or 0 for name in (*step.inputs, *step.outputs))
    moved += run.constants.get(step.name, 0)
    return max(step.macs / products if products else 0.0, moved / bandwidth if bandwidth else 0.0)


def _row(run: Run, refusal: Refusal) -> dict[str, Any]:
    return {
        "refusal": refusal,
        "cost": count(refusal.cost),
        "saves": count(refusal.saves),
        "share": percent(refusal.saves, run.total) if run.total else "",
    }


def _reasons(run: Run, refusals: list[Refusal]) -> list[tuple[str, str, int, str]]:
    """Each sentence once, with what the layers that it keeps would save together, the largest first."""
    found: dict[tuple[str, str], list[Refusal]] = {}
    for refusal in refusals:
        found.setdefault((refusal.accelerator, refusal.reason), []).append(refusal)
    ranked = sorted(found.items(), key=lambda entry: -sum(refusal.saves for refusal in entry[1]))
    return [
        (engine, reason, len(of), percent(sum(refusal.saves for refusal in of), run.total) if run.total else "")
        for (engine, reason), of in ranked
    ]
