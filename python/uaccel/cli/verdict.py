"""What ``--verify`` found, as data and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.execute import Difference


def verdict(difference: Difference | None) -> dict[str, Any]:
    return {"bit_exact": difference is None, "first_difference": difference.to_json() if difference else None}


def difference_words(difference: Difference) -> str:
    where = ",".join(map(str, difference.index))
    return (
        f'verification failed: sample {difference.sample}, output "{difference.output}" element [{where}] '
        f"is {difference.got}, expected {difference.expected}"
    )


def show_verified(console: Console, report: dict[str, Any]) -> None:
    from uaccel.cli.tables import show_lines

    if report.get("verify", {}).get("bit_exact"):
        runs = "the run" if report["runs"] == 1 else f"all {report['runs']} runs"
        show_lines(console, [("Verified", f"every output of {runs} equals the exact meaning")], style="green")
