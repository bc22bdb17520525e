"""Damaged files: each is imported, or refused in one line; some of them here, two thousand in the longest run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.hostile.torch_mutants import bases, mutant
from uaccel.errors import ModelError
from uaccel.frontend.torch.importer import import_torch


def complaint(path: Path) -> str:
    """Empty where there is none."""
    try:
        import_torch(path)
    except ModelError as error:
        return str(error)
    return ""


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    model = next(bases(tmp_path))
    said = [complaint(mutant(model, tmp_path / "mutant.pt2", seed)) for seed in range(60)]
    assert all(text.isprintable() for text in said)
    assert 30 <= sum(text != "" for text in said) < 60


@pytest.mark.parametrize(
    ("count", "first"),
    [pytest.param(60, 5000, marks=pytest.mark.slow), pytest.param(2000, 0, marks=pytest.mark.long)],
)
def test_many_damaged_files(count: int, first: int, tmp_path: Path) -> None:
    """No code runs, no exit status but 0 and 1, no signal, at most 2 GB and a minute of a processor."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "support.hostile.torch_mutants", str(count), str(first)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    statuses = json.loads(done.stdout)["statuses"]
    assert sum(statuses.values()) == count
    assert min(statuses["0"], statuses["1"]) > count // 20
