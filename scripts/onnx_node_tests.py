"""Run the official tests of ONNX operators and record how each one ends, in tests/frontend/onnx/node_tests.json.

    PYTHONPATH=tests .venv/bin/python scripts/onnx_node_tests.py

It takes some minutes. tests/frontend/onnx/test_node_tests.py holds later versions against the record.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests" / "frontend" / "onnx" / "node_tests.json"


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    import onnx

    from support.oracle.onnx_node_cases import cases, judge

    operators: dict[str, dict[str, Any]] = {}
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        for case in sorted(cases(), key=lambda case: case.name):
            verdict = judge(case, Path(folder))
            counts[verdict.status] += 1
            entry = operators.setdefault(case.op, {"passed": [], "executed": {}, "refused": {}, "wrong": {}})
            if verdict.status == "compiled":
                entry["passed"].append(case.name)
            else:
                entry[verdict.status][case.name] = verdict.reason
            print(f"{case.name}: {verdict.status} {verdict.reason}"[:160], flush=True)
    record = {"onnx": onnx.__version__, "counts": dict(sorted(counts.items())), "operators": operators}
    text = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False)
    RECORD.write_text(f"{text}\n", encoding="utf-8")
    print(f"{RECORD}: {dict(counts)}")


if __name__ == "__main__":
    main()
