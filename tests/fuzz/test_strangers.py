"""Files from strangers, wrong by structure: each is read or refused in one line, within the bounds of SECURITY.md.

PYTHONPATH=tests .venv/bin/python tests/fuzz/strangers_campaign.py --count 10000
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.strangers import KINDS, Kind, fault, results

QUICK = 12


def try_mutants(kind: Kind, numbers: range, folder: Path) -> None:
    if kind.needs:
        pytest.importorskip(kind.needs, reason=f"the {kind.needs} package is not installed")
    found = list(results(kind, numbers, folder))
    assert [f"{result.number}: {fault(result)}" for result in found if fault(result)] == []
    assert [result.number for result in found] == list(numbers)
    taken = sum(result.status == 0 for result in found)
    if len(numbers) > QUICK:
        assert len(numbers) // 50 < taken < len(numbers), "mutants that all fare alike show little"


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * kind.slow, id=str(kind)) for kind in KINDS]
)
def test_some_mutants(kind: Kind, tmp_path: Path) -> None:
    try_mutants(kind, range(QUICK), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_thousands_of_mutants(kind: Kind, tmp_path: Path) -> None:
    try_mutants(kind, range(kind.most), tmp_path)


FAULTS = {
    "a bug": "raise KeyError('x')",
    "a crash": "__import__('ctypes').string_at(0)",
    "memory": "bytearray(1 << 34)",
    "many lines": "raise ModelError('x' * 9000)",
}


@pytest.mark.parametrize("body", FAULTS.values(), ids=FAULTS)
def test_a_fault_would_be_found(body: str, tmp_path: Path) -> None:
    def take(path: Path) -> None:
        from uaccel.errors import ModelError

        exec(body, {"ModelError": ModelError})

    (result,) = results(Kind("planted", "mutant", lambda rng: b"", take, 0), [0], tmp_path)
    assert fault(result)
