"""What becomes of each operator of a front end: the rows of docs/coverage.md, which scripts/coverage.py writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Coverage:
    """``how`` in a few words; ``note``: what is refused of it and why, in Markdown."""

    operator: str
    how: str
    note: str = ""


EXACT = "CPU kernel"
FALLBACK = "TIR fallback"
FOLDED = "known at import"
REFUSED = "refused"


def table(rows: list[Coverage]) -> str:
    """As Markdown, by operator."""
    lines = ["| operator | how | notes |", "|---|---|---|"]
    for row in sorted(rows, key=lambda row: row.operator.lower()):
        lines.append(f"| `{row.operator}` | {row.how} | {row.note} |")
    return "\n".join(lines)
