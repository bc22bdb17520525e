"""Stored runs, and a browser to look at pages with."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.models.networks import OWN
from support.run.browser import browser
from support.run.command import process

__all__ = ["browser"]


@pytest.fixture(scope="session")
def gesture(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run on an emulated board, partly on an accelerator, with all details."""
    if shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not there to run the board")
    options = ("--board", "mps2_an386", "--accelerator", "matrix8", "--verify", "layers", "--details", "--json")
    done = process("run", OWN / "gesture.tflite", *options, cwd=tmp_path_factory.mktemp("run"))
    assert done.status == 0, done.err
    return done.report


@pytest.fixture
def stored(gesture: dict[str, Any]) -> dict[str, Any]:
    """The same, to change."""
    return copy.deepcopy(gesture)


def write(data: dict[str, Any], path: Path) -> Path:
    path.write_text(json.dumps(data), encoding="utf-8")
    return path
