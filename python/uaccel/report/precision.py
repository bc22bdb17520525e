"""How far tensors are from what they should be: a histogram for each that was compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from uaccel.report.quantised import QUANTIZED
from uaccel.report.run import Run
from uaccel.report.section import Section
from uaccel.report.words import count, percent

TITLE: Final = "Precision"
NOTHING: Final = "Nothing was compared; --verify compares outputs, --verify layers each layer."


def section(run: Run) -> Section:
    verify, noise = run.section("verify"), _noise(run)
    found = verify.get("differences") or []
    words = "" if found else _words(verify)
    if not found and noise is None:
        return Section("precision", TITLE, missing=words)
    context = {
        "words": words,
        "noise": noise,
        "tensors": [_histogram(entry) for entry in found],
        "snr": verify.get("snr_db"),
        "tolerance": verify.get("tolerance"),
        "agrees": verify.get("top_class_agrees"),
    }
    return Section("precision", TITLE, "precision.html", context)


def _words(verify: Mapping[str, Any]) -> str:
    """Instead of histograms."""
    if not verify:
        return NOTHING
    exact = verify.get("bit_exact") and not verify.get("first_wrong_layer")
    many = count(verify.get("compared"))
    return f"No bit differs in {many} compared elements." if exact else "This result holds no histograms."


def _noise(run: Run) -> dict[str, Any] | None:
    """Of each layer against the float model, where it is known of the model."""
    told = run.section(QUANTIZED)
    if not told:
        return None
    known = [row["snr_db"] for row in told["layers"] if row["snr_db"] is not None]
    most = max([1.0, *known])
    rows = [
        {
            "name": row["name"],
            "op": row["op"],
            "words": "exact" if row["snr_db"] is None else f"{row['snr_db']:.1f} dB",
            "width": 100.0 if row["snr_db"] is None else max(0.0, 100 * row["snr_db"] / most),
            "largest": f"{row['max_difference']:.3g}",
            "least": bool(known) and row["snr_db"] == min(known),
        }
        for row in told["layers"]
    ]
    return {"rows": rows, "samples": count(told["samples"])}


def _histogram(entry: Mapping[str, Any]) -> dict[str, Any]:
    """``counts`` by difference in steps; the outermost stand for all beyond."""
    bins = sorted(((int(step), number) for step, number in entry["counts"].items()), key=lambda pair: pair[0])
    whole = sum(number for _, number in bins) or 1
    most = max((number for _, number in bins), default=1)
    same = dict(bins).get(0, 0)
    rows = [(f"{step:+d}" if step else "0", count(number), 100 * number / most) for step, number in bins]
    named = {"name": entry["tensor"], "what": entry.get("what", "")}
    return named | {"rows": rows, "same": percent(same, whole), "whole": count(whole)}
