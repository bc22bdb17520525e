"""Many files from strangers, damaged: what each kind came to, as JSON on one line a kind.

    PYTHONPATH=tests .venv/bin/python tests/fuzz/strangers_campaign.py --count 100000 --kind ONNX

The same numbers give the same files. Those that something is wrong with are kept in the folder ``--keep``.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from fuzz.strangers import KINDS, Kind, fault, results

PYTORCH, MOST_PYTORCH = "PyTorch", 2_000
RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "strangers.json"


def main() -> int:
    parser = argparse.ArgumentParser(description="Read damaged files.")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=0, help="of each kind; else as many as the longest tests try")
    parser.add_argument("--kind", default="", help="of those whose name has this in it")
    parser.add_argument("--keep", type=Path, default=None)
    parser.add_argument("--write", action="store_true", help="store what comes out")
    given = parser.parse_args()
    kinds = [kind for kind in KINDS if given.kind in kind.name]
    rows = [_row(kind, range(given.first, given.first + (given.count or kind.most)), given.keep) for kind in kinds]
    if given.kind in PYTORCH:
        rows.append(_pytorch(given.first, given.count or MOST_PYTORCH))
    if given.write:
        stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(stored | {row["kind"]: row for row in rows}, indent=1) + "\n")
    return 1 if any(row["faults"] for row in rows) else 0


def _row(kind: Kind, numbers: range, keep: Path | None) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": kind.name, "tried": 0, "read": 0, "refused": 0, "faults": 0, "seconds": 0.0}
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        for result in results(kind, numbers, Path(folder)):
            wrong = fault(result)
            row["tried"] += 1
            row["faults" if wrong else "refused" if result.status else "read"] += 1
            row["seconds"] = round(max(row["seconds"], result.seconds), 1)
            if wrong:
                print(f"{kind} {result.number}: {wrong}", file=sys.stderr, flush=True)
                if keep:
                    data = kind.make(random.Random(result.number))
                    (keep / f"{result.number}_{kind.file}").write_bytes(data)
    print(json.dumps(row), flush=True)
    return row


def _pytorch(first: int, count: int) -> dict[str, Any]:
    """Each in a process that is forked off one with PyTorch loaded."""
    from support.hostile.torch_mutants import run

    ended = run(count, first)
    wrong = sum(one.bad for one in ended)
    read = sum(one.status == 0 and not one.bad for one in ended)
    refused, seconds = count - read - wrong, round(max(one.seconds for one in ended), 1)
    row = {"kind": PYTORCH, "tried": count, "read": read, "refused": refused, "faults": wrong, "seconds": seconds}
    print(json.dumps(row), flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main())
