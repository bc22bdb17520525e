"""What a sweep came to, and first of all what went wrong: each row's line of error, and its log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from uaccel.report.section import Section
from uaccel.report.swept import Sweep, SweptRow
from uaccel.report.words import seconds


def section(sweeps: Sequence[Sweep]) -> Section:
    """Of the last sweep; wrong bytes before what failed to run."""
    rows = sweeps[-1].rows
    bad = sorted((row for row in rows if not row.good), key=lambda row: row.status != "wrong")
    counts = Counter(row.status for row in rows)
    context = {
        "rows": bad,
        "good": not bad,
        "verdict": _verdict(rows, bad),
        "counts": ", ".join(f"{count} {status}" for status, count in sorted(counts.items())),
        "took": seconds(sum(row.took for row in rows)),
        "sweeps": [(sweep.label, str(sweep.path), len(sweep.rows)) for sweep in sweeps],
    }
    return Section("failures", "Failures" if bad else "Verdict", "failures.html", context)


def _verdict(rows: Sequence[SweptRow], bad: Sequence[SweptRow]) -> str:
    if not bad:
        judged = sum(row.status == "right" for row in rows)
        unjudged = f"; {len(rows) - judged} ran without a comparison" if judged < len(rows) else ""
        return f"No row of {len(rows)} failed{unjudged}."
    wrong = sum(row.status == "wrong" for row in bad)
    words = [f"{wrong} computed wrong"] if wrong else []
    words += [f"{len(bad) - wrong} failed"] if len(bad) > wrong else []
    return f"Of {len(rows)} rows {' and '.join(words)}."
