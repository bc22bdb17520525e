"""What each layer takes: bars by engine, a product's price, and the estimate beside the measurement."""

from __future__ import annotations

from typing import Any

from uaccel.report.run import Run, Step
from uaccel.report.section import Section
from uaccel.report.words import count, percent, seconds


def section(run: Run) -> Section:
    if not run.total:
        missing = (
            "Layers were not measured: this board counts no instructions. Run on an emulated board, or with --profile."
        )
        return Section("times", "Time per layer", missing=missing)
    rows = [_row(run, step) for step in run.steps if step.cost or not step.facts.get("view")]
    most = max(row["cost"] for row in rows)
    for row in rows:
        row |= {"cpu_width": 100 * row["cpu"] / most, "device_width": 100 * row["device"] / most}
    context = {
        "rows": rows,
        "unit": run.unit,
        "total": _amount(run, run.total),
        "engines": [(run.engine_class(name), name) for name in run.engines],
        "has_macs": any(row["per_product"] is not None for row in rows),
        "has_estimates": any(row["estimate"] for row in rows),
        "estimate_unit": "instructions" if run.unit != "seconds" else "",
    }
    return Section("times", "Time per layer", "times.html", context)


def _row(run: Run, step: Step) -> dict[str, Any]:
    estimated = step.facts.get("estimate") or {}
    estimate = estimated.get("instructions", 0) + estimated.get("cycles", 0)
    measured = sum(row.get("instructions") or 0 for row in step.rows) + step.device
    comparable = estimate and measured and run.unit != "seconds"
    return {
        "number": step.number,
        "name": step.name,
        "op": step.op,
        "engine": step.engine,
        "class": run.engine_class(step.engine),
        "cpu": step.cpu or 0,
        "device": step.device,
        "cost": step.cost,
        "words": _amount(run, step.cost),
        "share": percent(step.cost, run.total),
        "parts": _parts(run, step),
        "per_product": step.cost / step.macs if step.macs and step.cost and run.unit != "seconds" else None,
        "estimate": estimate if comparable else None,
        "measured": measured if comparable else None,
        "off": f"{100 * (estimate / measured - 1):+.0f} %" if comparable else "",
    }


def _parts(run: Run, step: Step) -> str:
    """Of what an accelerator computes: its own cycles, and the driver's part."""
    return f"{_amount(run, step.cpu or 0)} of the CPU, {count(step.device)} of {step.engine}" if step.device else ""


def _amount(run: Run, number: float) -> str:
    return seconds(number) if run.unit == "seconds" else count(number)
