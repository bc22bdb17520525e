"""Many ONNX files that are wrong by structure, each compiled: none may kill the process or be called a bug of uaccel's.

    PYTHONPATH=tests .venv/bin/python tests/fuzz/onnx_campaign.py --count 10000

The same numbers give the same files. Of those that something is wrong with, the file is kept in the folder ``--keep``.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile mutants of ONNX models.")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, default=None)
    parser.add_argument("--reasons", action="store_true", help="say what the refused ones are refused for")
    arguments = parser.parse_args()
    from support.onnx_campaign import fault, results, seed_of
    from support.onnx_mutants import mutant
    from support.onnx_seeds import official, own, quantised_networks

    seeds = [own(), quantised_networks(), official()]
    others = [model for group in seeds for model in group]
    statuses: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    slowest, largest, begun = 0.0, 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        numbers = range(arguments.first, arguments.first + arguments.count)
        for done, result in enumerate(results(numbers, seeds, Path(folder)), 1):
            wrong = fault(result)
            statuses["faults" if wrong else "compiled" if result.status == 0 else "refused"] += 1
            slowest, largest = max(slowest, result.seconds), max(largest, result.megabytes)
            if wrong:
                print(f"{result.number}: {wrong}", flush=True)
                if arguments.keep:
                    data = mutant(seed_of(result.number, seeds), result.number, others)
                    (arguments.keep / f"{result.number}.onnx").write_bytes(data)
            elif result.status:
                reasons[_kind(result.words)] += 1
            if done % 500 == 0:
                spent = time.monotonic() - begun
                print(f"{done} in {spent:.0f} s: {dict(statuses)}, at most {slowest:.1f} s, {largest} MB", flush=True)
    print(f"{dict(statuses)}, at most {slowest:.1f} s and {largest} MB")
    if arguments.reasons:
        print("\n".join(f"{count:6d} {reason}" for reason, count in reasons.most_common(60)))
    return 1 if statuses["faults"] else 0


def _kind(words: Any) -> str:
    return re.sub(r'"[^"]*"|\[[^]]*\]|-?\d[\d.]*', "#", str(words).partition("mutant.onnx")[2])[:100]


if __name__ == "__main__":
    sys.exit(main())
