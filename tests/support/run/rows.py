"""What rows of a sweep wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def alike(results: Any) -> dict[str, Any]:
    """What must not depend on when and where a row ran."""
    found = {}
    for result in results:
        report = dict(result["report"])
        for layer in report.get("layers", ()):
            layer.pop("seconds")
        report.pop("seconds", None)
        timed = ["seconds"]
        if "latency" in report and not report["latency"]["estimated"]:  # It is of these seconds.
            timed += [f"latency.{name}" for name in report.pop("latency")]
        figures = {name: value for name, value in result["figures"].items() if name not in timed}
        found[result["title"]] = (result["status"], figures, result["error"], report, result["row"])
    return found
