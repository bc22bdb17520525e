"""ONNX files that are wrong by structure: each is compiled or refused in one line, within the bounds of SECURITY.md."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="the onnx package is not installed")

from support.onnx_campaign import fault, results
from support.onnx_seeds import official, own, quantised_networks


def try_mutants(numbers: range, seeds: list[list[object]], folder: Path) -> None:
    found = list(results(numbers, seeds, folder))
    assert [f"{result.number}: {fault(result)}" for result in found if fault(result)] == []
    assert [result.number for result in found] == list(numbers)
    compiled = sum(result.status == 0 for result in found)
    assert len(numbers) // 10 < compiled < len(numbers) // 2


def test_some_mutants_of_small_models(tmp_path: Path) -> None:
    try_mutants(range(40), [own()], tmp_path)


@pytest.mark.slow
def test_more_mutants(tmp_path: Path) -> None:
    try_mutants(range(200), [own(), quantised_networks(), official()], tmp_path)


@pytest.mark.long
def test_ten_thousand_mutants(tmp_path: Path) -> None:
    try_mutants(range(10_000), [own(), quantised_networks(), official()], tmp_path)
