"""Packages that are kept away while others are imported."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from uaccel.tvm_api.absent import absent


def test_a_package_is_absent_inside_and_there_behind() -> None:
    sys.modules.pop("this", None)
    with absent("this"), pytest.raises(ImportError, match="this"):
        importlib.import_module("this")
    assert "this" not in sys.modules


def test_a_package_that_is_loaded_stays() -> None:
    with absent("json"):
        import json
    assert json is sys.modules["json"]


@pytest.mark.slow
def test_the_compiler_does_not_load_pytorch() -> None:
    """It would take three times as long to start."""
    pytest.importorskip("torch")
    code = "import uaccel.pipeline, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
