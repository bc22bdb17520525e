"""Random streams under the sanitizers: every one ends, well or with an error of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from uaccel.accelerator import Accelerator
from uaccel.testing import compile_with_each, run_sanitized

PROGRAM = Path(__file__).with_name("fuzz.c")


@pytest.mark.parametrize(("seed", "streams"), [(1, 20000), pytest.param(2, 500000, marks=pytest.mark.long)])
def test_random_streams_end(npu: Accelerator, tmp_path: Path, seed: int, streams: int) -> None:
    counts = [int(count) for count in run_sanitized(npu, PROGRAM, tmp_path, seed, streams).split()]
    assert sum(counts) == streams
    assert min(counts) > 0, f"streams by the error that they ended with: {counts}"
    assert counts[0] > streams // 50, "hardly any stream came to its end"


@pytest.mark.slow
def test_driver_and_model_compile_everywhere(npu: Accelerator, tmp_path: Path) -> None:
    assert "gcc" in compile_with_each(npu, tmp_path)
