"""Many files from strangers, damaged: what each kind came to, as JSON on one line a kind.

    PYTHONPATH=tests .venv/bin/python tests/fuzz/strangers_campaign.py --count 100000

The same numbers give the same files.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from support.strangers import KINDS, Kind, fault, results

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "strangers.json"


def main() -> int:
    parser = argparse.ArgumentParser(description="Read damaged files.")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000, help="of all kinds together")
    parser.add_argument("--kind", default="", help="of those whose name has this in it")
    parser.add_argument("--write", action="store_true", help="store what comes out")
    given = parser.parse_args()
    rows = [_row(kind, given.first, given.count * kind.share // 100) for kind in KINDS if given.kind in kind.name]
    if given.write:
        stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(stored | {row["kind"]: row for row in rows}, indent=1) + "\n")
    return 1 if any(row["faults"] for row in rows) else 0


def _row(kind: Kind, first: int, count: int) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": kind.name, "tried": 0, "read": 0, "refused": 0, "faults": 0, "seconds": 0.0}
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        for result in results(kind, range(first, first + count), Path(folder)):
            wrong = fault(result)
            row["tried"] += 1
            row["faults" if wrong else "refused" if result.status else "read"] += 1
            row["seconds"] = round(max(row["seconds"], result.seconds), 1)
            if wrong:
                print(f"{kind} {result.number}: {wrong}", file=sys.stderr, flush=True)
    print(json.dumps(row), flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main())
