"""``uaccel report RESULTS.jsonl...``: a page about a sweep, or about several in their order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from uaccel.cli.report_page import write_page
from uaccel.errors import InputError

SUFFIX: Final = ".jsonl"


def is_sweep(subjects: Sequence[Path], quantized: Path | None) -> bool:
    """Whether they are results of sweeps, all of them or none."""
    found = [subject.suffix == SUFFIX for subject in subjects]
    if any(found) and not all(found):
        other = subjects[found.index(False)]
        raise InputError(f"{other} is no sweep's results, and others given are; give {SUFFIX} files alone, or none")
    if any(found) and quantized is not None:
        raise InputError("--quantized is for the page of one run, and a sweep's results are given; leave it away")
    return all(found)


def write_sweep_page(subjects: Sequence[Path], target: Path, option: str) -> dict[str, Any]:
    """Write it, and tell what it shows."""
    from uaccel.report import page_of_results

    text, sweeps = page_of_results(subjects)
    write_page(target, text, option)
    told = [{"results": str(sweep.path), "label": sweep.label, "rows": len(sweep.rows)} for sweep in sweeps]
    return {"report": str(target), "bytes": target.stat().st_size, "sweeps": told}
