"""How far tensors are from what they should be: a histogram for each that was compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from uaccel.report.run import Run
from uaccel.report.section import Section
from uaccel.report.words import count, percent

NOTHING: Final = "Nothing was compared; --verify compares outputs, --verify layers each layer."


def section(run: Run) -> Section:
    verify = run.section("verify")
    title = "Precision"
    if not verify:
        return Section("precision", title, missing=NOTHING)
    found = verify.get("differences") or []
    if not found:
        exact = verify.get("bit_exact") and not verify.get("first_wrong_layer")
        many = count(verify.get("compared"))
        words = f"No bit differs in {many} compared elements." if exact else "This result holds no histograms."
        return Section("precision", title, missing=words)
    context = {
        "tensors": [_histogram(entry) for entry in found],
        "snr": verify.get("snr_db"),
        "tolerance": verify.get("tolerance"),
        "agrees": verify.get("top_class_agrees"),
    }
    return Section("precision", title, "precision.html", context)


def _histogram(entry: Mapping[str, Any]) -> dict[str, Any]:
    """``counts`` by difference in steps; the outermost stand for all beyond."""
    bins = sorted(((int(step), number) for step, number in entry["counts"].items()), key=lambda pair: pair[0])
    whole = sum(number for _, number in bins) or 1
    most = max((number for _, number in bins), default=1)
    same = dict(bins).get(0, 0)
    rows = [(f"{step:+d}" if step else "0", count(number), 100 * number / most) for step, number in bins]
    named = {"name": entry["tensor"], "what": entry.get("what", "")}
    return named | {"rows": rows, "same": percent(same, whole), "whole": count(whole)}
