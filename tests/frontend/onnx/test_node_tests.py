"""The official tests of ONNX operators: what passed when node_tests.json was recorded passes still.

scripts/onnx_node_tests.py records anew; every step back is a person's decision.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.oracle.onnx_node_cases import cases, judge

PARTS = 8
RUN_IN_C = 20
"""One of so many is also compiled and run."""


def _record() -> dict[str, Any]:
    text = Path(__file__).with_name("node_tests.json").read_text(encoding="utf-8")
    record: dict[str, Any] = json.loads(text)
    return record


def test_the_record_counts_what_it_lists() -> None:
    record = _record()
    found = {"compiled": 0, "executed": 0, "refused": 0, "wrong": 0}
    for entry in record["operators"].values():
        for status, names in entry.items():
            found["compiled" if status == "passed" else status] += len(names)
    assert {status: count for status, count in found.items() if count} == record["counts"]


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_what_passed_passes_still(part: int, tmp_path: Path) -> None:
    passed = {name for entry in _record()["operators"].values() for name in entry["passed"]}
    chosen = sorted((case for case in cases() if case.name in passed), key=lambda case: case.name)[part::PARTS]
    assert chosen, "the onnx package has none of the tests that are recorded"
    failures = []
    for number, case in enumerate(chosen):
        verdict = judge(case, tmp_path, run_c=number % RUN_IN_C == 0)
        if verdict.status != "compiled":
            failures.append(f"{case.name}: {verdict.status}: {verdict.reason}")
    assert not failures, "\n".join(failures)
