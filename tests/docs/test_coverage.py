"""docs/coverage.md is what scripts/coverage.py writes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    for package in ("onnx", "torch"):
        pytest.importorskip(package, reason=f"the {package} package is not installed")
    spec = importlib.util.spec_from_file_location("coverage_page", ROOT / "scripts" / "coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    assert text == module.page(), "run scripts/coverage.py"
